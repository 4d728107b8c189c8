#!/usr/bin/env -S node --v8-pool-size=1
// One thread beside the first to clear memory up, where Node would have four: on two cores they kept everything else waiting, PostgreSQL too.
// Requests at the 99th percentile took 15 to 21 ms instead of 42, at 1,250 a second.
// Plain JavaScript, so that a wrong Node gets a sentence instead of a syntax error in the TypeScript behind it.
const [major] = process.versions.node.split('.')
if (Number(major) < 26) {
  console.error(
    `Herald runs on the Node 26 that npm installed beside it, not on ${process.version}: start it with "npm start" or "npx herald".`,
  )
  process.exit(1)
}
await import('../src/main.ts')
