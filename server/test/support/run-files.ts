import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'

const FILES = process.argv.slice(2).map((file) => resolve(file))
// Only the tests within a file have a time limit.
const NO_LIMIT = { timeout: 2 ** 31 - 1 }

/**
 * Runs the test files that the arguments name, one after the other, in this process. What a file starts ends with it (`after`). What the files
 * of a folder share, such as a running service, is in its `shared.ts`: it starts before the first file and ends after the last.
 */
for (const folder of new Set(FILES.map((file) => dirname(file)))) {
  const shared = join(folder, 'shared.ts')
  if (existsSync(shared)) await import(shared)
}
// All are registered at once, and node:test runs one at a time: if none were waiting, it would take the process for finished.
await Promise.all(FILES.map((file) => test(file.slice(file.indexOf('/test/') + 1), NO_LIMIT, () => import(file))))

/** Long enough for `after` of a `shared.ts`. */
const ENDS_WITHIN_MS = 60_000
// A test that fails may leave something open, which would keep the process running for ever.
setTimeout(() => {
  console.error(`The tests have ended, but their process has not; still open: ${process.getActiveResourcesInfo().join(', ')}.`)
  process.exit(1)
}, ENDS_WITHIN_MS).unref()
