#!/usr/bin/env -S node --v8-pool-size=1
// One worker thread for garbage collection instead of Node's four: on two cores, four kept everything else waiting, PostgreSQL included. At
// 1,250 requests a second, the 99th percentile was 15 to 21 ms instead of 42.
// This file is plain JavaScript, so that a wrong Node version prints a sentence instead of a syntax error from the TypeScript files.
const [major] = process.versions.node.split('.')
if (Number(major) < 26) {
  console.error(
    `Herald runs on the Node 26 that npm installed beside it, not on ${process.version}: start it with "npm start" or "npx herald".`,
  )
  process.exit(1)
}
await import('../src/main.ts')
