import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import pg from 'pg'
import { joinEmbeddedServer } from '../../src/db/embedded/server.ts'
import {
  CONTAINED,
  eightComeAndLeave,
  killBoth,
  type LeftBehind,
  leaveMark,
  lockFileOf,
  readMark,
  SETPRIV,
  serviceOn,
  stopInOrder,
} from '../../test/support/embedded.ts'
import { createDataDir, heraldJson, isRunning, postmasterPid, startHerald } from '../../test/support/process.ts'

// What embedded-database.test.ts shows in one case each, in all of them.

const isRoot = process.getuid?.() === 0
const emptyDatabase = await createDataDir()
await heraldJson(['migrate'], { HERALD_DATA_DIR: emptyDatabase })

describe('the embedded database', () => {
  test('a lock file whose process id now belongs to another program, or to another PostgreSQL, does not stop the next start', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const { current, startAgain } = serviceOn(dataDir)
    await current()
    const { uid, gid } = statSync(join(dataDir, 'postgres'))
    const other = spawn('sleep', ['60'], { ...(isRoot && { uid, gid }), cwd: '/' })
    after(() => other.kill())
    const neighbourDir = await createDataDir(emptyDatabase)
    const neighbour = await joinEmbeddedServer(neighbourDir, false, () => {})
    for (const pid of [other.pid, postmasterPid(neighbourDir)]) {
      const first = await current()
      await leaveMark(first, dataDir, `before ${pid}`)
      const lock = await killBoth(first, dataDir)
      writeFileSync(lockFileOf(dataDir), lock.replace(/^\d+/, String(pid)))
      const second = await startAgain()
      assert.equal(await readMark(second, dataDir), `before ${pid}`)
      await stopInOrder(second)
    }
    assert.equal(other.exitCode, null)
    const client = new pg.Client(neighbour.connection)
    await client.connect()
    await client.end()
    await neighbour.leave()
  })

  test('eight who come at once, also after a crash, share one server; of eight who leave at once the last stops it', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const rounds: LeftBehind[] = ['nothing', 'a stale lock', 'nothing', 'a stale lock', 'an empty lock', 'a stale lock']
    for (const leftBehind of rounds) await eightComeAndLeave(dataDir, leftBehind)
  })

  test('as root without the right to look into other processes, as in a container, it takes over what a killed service has left', {
    skip: (!isRoot || !existsSync(SETPRIV)) && 'not root',
  }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const env = { HERALD_DATA_DIR: dataDir }
    const first = await startHerald(env, CONTAINED)
    await leaveMark(first, dataDir, 'contained')
    first.child.kill('SIGKILL')
    await first.ended
    const second = await startHerald(env, CONTAINED)
    assert.equal(await readMark(second, dataDir), 'contained')
    const postmaster = postmasterPid(dataDir) as number
    await stopInOrder(second)
    assert.ok(!isRunning(postmaster))
  })
})
