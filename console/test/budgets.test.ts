import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createTestDatabase } from '../../server/test/support/database.ts'
import { spawnHerald } from '../../server/test/support/process.ts'
import { until } from '../../server/test/support/until.ts'
import { bundleConsole } from '../build.ts'
import { assertWithin, repeatIfSlow } from './support/timed.ts'

// The budgets of the console.

const MAX_BYTES = { '.js': 120_000, '.css': 20_000 }
const MAX_MS = 1_000

for (const [extension, maxBytes] of Object.entries(MAX_BYTES)) {
  test(`the ${extension} files have at most ${maxBytes / 1_000} kB, compressed`, async (t) => {
    const files = [...(await bundleConsole())].filter(([name]) => name.endsWith(extension))
    const bytes = files.reduce((sum, [, contents]) => sum + gzipSync(contents).length, 0)
    t.diagnostic(`${bytes} bytes`)
    assert.ok(files.length > 0 && bytes <= maxBytes, `${bytes}`)
  })
}

test('the console is built within a second', async (t) => {
  await repeatIfSlow(async () => {
    const from = performance.now()
    await bundleConsole()
    assertWithin(t, 'the build', performance.now() - from, MAX_MS)
  })
})

test('the first GET /console of a new process responds within a second', async (t) => {
  const { url: HERALD_DATABASE_URL } = await createTestDatabase()
  await repeatIfSlow(async () => {
    const { child, output, ended } = spawnHerald(['serve', '--only', 'api'], { HERALD_DATABASE_URL, HERALD_PORT: '0' })
    const { link } = (await until('the link is printed', () => /The console: (?<link>\S+)/.exec(output.stderr)?.groups)) as { link: string }
    const from = performance.now()
    const { status } = await fetch(link)
    const tookMs = performance.now() - from
    child.kill('SIGTERM')
    await ended
    assert.equal(status, 200)
    assertWithin(t, 'the first GET /console', tookMs, MAX_MS)
  })
})
