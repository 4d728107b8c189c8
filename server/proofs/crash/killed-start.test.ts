import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDataDir, heraldJson, isRunning, postmasterPid, spawnHerald, startHerald } from '../../test/support/process.ts'

// The moments themselves are what is tested here: times, not conditions.

describe('the embedded database', () => {
  test('killed at any moment of its first start, it starts the next time', async (t) => {
    const dataDir = join(await createDataDir(), 'new')
    const delays = Array.from({ length: 8 }, () => Math.round(Math.random() * 1_800))
    t.diagnostic(`killed after ${delays.join(', ')} ms`)
    for (const delayMs of delays) {
      const { child, ended } = spawnHerald(['serve'], { HERALD_DATA_DIR: dataDir, HERALD_PORT: '0' })
      await sleep(delayMs)
      child.kill('SIGKILL')
      await ended
    }
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    assert.equal((await fetch(`${herald.url}/readyz`)).status, 200)
    herald.child.kill('SIGTERM')
    assert.equal(await herald.ended, 0)
  })

  test('Ctrl-C just as it is being started again leaves nothing running', async () => {
    const emptyDatabase = await createDataDir()
    await heraldJson(['migrate'], { HERALD_DATA_DIR: emptyDatabase })
    for (const delayMs of [0, 20, 60, 120]) {
      const dataDir = await createDataDir(emptyDatabase)
      const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
      process.kill(postmasterPid(dataDir) as number, 'SIGKILL')
      await sleep(delayMs)
      herald.child.kill('SIGINT')
      assert.equal(await herald.ended, 0)
      const left = postmasterPid(dataDir)
      assert.ok(left === undefined || !isRunning(left), `after ${delayMs} ms`)
    }
  })
})
