#!/usr/bin/env node
// Plain JavaScript, so that a wrong Node gets a sentence instead of a syntax error in the TypeScript behind it.
const [major] = process.versions.node.split('.')
if (Number(major) < 26) {
  console.error(
    `The simulator runs on the Node 26 that npm installed beside it, not on ${process.version}: start it with "npx herald-simulator".`,
  )
  process.exit(1)
}
await import('../src/main.ts')
