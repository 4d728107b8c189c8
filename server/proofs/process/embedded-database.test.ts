import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { joinEmbeddedServer } from '../../src/db/embedded/server.ts'
import {
  CONTAINED,
  eightComeAndLeave,
  killBoth,
  leaveMark,
  lockFileOf,
  readMark,
  SETPRIV,
  serviceOn,
  stopInOrder,
} from '../../test/support/embedded.ts'
import { createDataDir, heraldJson, isRunning, postmasterPid, runHerald, startHerald } from '../../test/support/process.ts'
import { call } from '../../test/support/service.ts'
import { until } from '../../test/support/until.ts'

const isRoot = process.getuid?.() === 0

// With a database in it, and no account yet: for all that is not about making one.
const emptyDatabase = await createDataDir()
await heraldJson(['migrate'], { HERALD_DATA_DIR: emptyDatabase })

describe('the embedded database', { concurrency: 2 }, () => {
  // One after the other on one directory: the start that shows what was survived is the one that the next test begins with.
  describe('with a service', { concurrency: 1 }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const env = { HERALD_DATA_DIR: dataDir }
    const { current, startAgain } = serviceOn(dataDir)

    test('Ctrl-C, even twice within a second as npm makes it, stops service and database in order, well within 10 s, and loses nothing', async () => {
      const first = await current()
      await leaveMark(first, dataDir, 'kept')
      const postmaster = postmasterPid(dataDir) as number
      const startedAt = performance.now()
      first.child.kill('SIGINT')
      first.child.kill('SIGINT')
      assert.equal(await first.ended, 0)
      assert.ok(performance.now() - startedAt < 10_000)
      assert.ok(!isRunning(postmaster))
      assert.match(readFileSync(join(dataDir, 'postgres.log'), 'utf8'), /database system is shut down\n$/)
      assert.equal(await readMark(await startAgain(), dataDir), 'kept')
    })

    test('after kill -9 of service and database, the stale lock file does not stop the next start', async () => {
      const first = await current()
      await leaveMark(first, dataDir, 'before both kills')
      await killBoth(first, dataDir)
      assert.equal(await readMark(await startAgain(), dataDir), 'before both kills')
    })

    test('a lock file whose process id now belongs to another PostgreSQL does not stop the next start', async () => {
      const neighbourDir = await createDataDir(emptyDatabase)
      const neighbour = await joinEmbeddedServer(neighbourDir, false, () => {})
      const first = await current()
      await leaveMark(first, dataDir, 'before the restart')
      const lock = await killBoth(first, dataDir)
      writeFileSync(lockFileOf(dataDir), lock.replace(/^\d+/, String(postmasterPid(neighbourDir))))
      assert.equal(await readMark(await startAgain(), dataDir), 'before the restart')
      const client = new pg.Client(neighbour.connection)
      await client.connect()
      await client.end()
      await neighbour.leave()
    })

    test('when the database dies under the running service, it is started again and serves on, with all that was answered', async () => {
      const herald = await current()
      await leaveMark(herald, dataDir, 'before the crash')
      const postmaster = postmasterPid(dataDir) as number
      process.kill(postmaster, 'SIGKILL')
      await until('another one runs', () => postmasterPid(dataDir) !== postmaster && isRunning(postmasterPid(dataDir) ?? 0))
      await until('the service is ready', async () => (await call(`${herald.url}/readyz`)).status === 200)
      assert.equal(await readMark(herald, dataDir), 'before the crash')
    })

    test('a second service on the same directory says so in one sentence, and the first is none the worse', async () => {
      const first = await current()
      const second = await runHerald(['serve'], { HERALD_DATA_DIR: dataDir, HERALD_PORT: '0' })
      assert.equal(second.code, 1)
      assert.equal(second.stderr, `Another Herald service already runs on ${dataDir}; stop it, or set HERALD_DATA_DIR.\n`)
      await leaveMark(first, dataDir, 'still here')
    })

    test('after kill -9 of the service, the next start takes over the orphaned database', async () => {
      const first = await current()
      await leaveMark(first, dataDir, 'before the kill')
      first.child.kill('SIGKILL')
      await first.ended
      const orphan = postmasterPid(dataDir) as number
      assert.ok(isRunning(orphan))
      const second = await startAgain()
      assert.equal(postmasterPid(dataDir), orphan)
      assert.equal(await readMark(second, dataDir), 'before the kill')
      await stopInOrder(second)
      assert.ok(!isRunning(orphan))
    })

    test('commands reach it whether the service runs or not; the last one to leave stops it', async () => {
      const { accountId } = await heraldJson(['account', 'create', 'Shop'], env)
      assert.equal(postmasterPid(dataDir), undefined)
      const herald = await startAgain()
      const { integrationKey, secret } = await heraldJson(['key', 'create', String(accountId)], env)
      assert.equal((await call(`${herald.url}/v1/agents`, { authorization: `Bearer ${integrationKey}:${secret}` })).status, 200)
      assert.ok(isRunning(postmasterPid(dataDir) as number))
      await stopInOrder(herald)
      assert.equal(postmasterPid(dataDir), undefined)
      assert.equal((await heraldJson(['key', 'list', String(accountId)], env)).length, 1)
    })

    test('Ctrl-C ends the service within 10 s even where the database is frozen', { skip: process.platform !== 'linux' }, async () => {
      const herald = await current()
      const pids = [postmasterPid(dataDir) as number, ...childrenOf(postmasterPid(dataDir) as number)]
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      const startedAt = performance.now()
      herald.child.kill('SIGINT')
      await herald.ended
      assert.ok(performance.now() - startedAt < 10_000, `${performance.now() - startedAt} ms`)
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    })
  })

  // One after the other on one directory: each leaves it as it was, but for the last.
  describe('without a service', { concurrency: 1 }, async () => {
    const dataDir = await createDataDir(emptyDatabase)

    test('eight who come at once, also after a crash, share one server; of eight who leave at once the last stops it', async () => {
      for (const leftBehind of ['nothing', 'a stale lock', 'an empty lock'] as const) await eightComeAndLeave(dataDir, leftBehind)
    })

    test('while one process starts or stops it the others wait, and go on once that one is killed', async () => {
      const hold = `new (require('node:sqlite').DatabaseSync)(${JSON.stringify(join(dataDir, 'start.lock'))}).exec('begin exclusive'); console.log('held'); setInterval(() => {}, 1e6)`
      const holder = spawn(process.execPath, ['-e', hold], { stdio: ['ignore', 'pipe', 'inherit'] })
      after(() => holder.kill('SIGKILL'))
      await once(holder.stdout as Readable, 'data')
      let isIn = false
      const joining = joinEmbeddedServer(dataDir, false, () => {}).then((server) => {
        isIn = true
        return server
      })
      // That nothing happens can only be seen by waiting: a start takes a tenth of this.
      await sleep(2_000)
      assert.ok(!isIn && postmasterPid(dataDir) === undefined)
      holder.kill('SIGKILL')
      const server = await joining
      assert.ok(isRunning(postmasterPid(dataDir) as number))
      await server.leave()
    })

    test('a start by root leaves the lock to the owner of the data, also one that root left half made', {
      skip: !isRoot && 'not root',
    }, async () => {
      const lockFile = join(dataDir, 'start.lock')
      chownSync(lockFile, 0, 0)
      assert.equal((await runHerald(['account', 'list'], { HERALD_DATA_DIR: dataDir })).code, 0)
      assert.equal(statSync(lockFile).uid, statSync(join(dataDir, 'postgres')).uid)
    })

    test('the log of PostgreSQL holds neither statements nor values', async () => {
      const { connection, leave } = await joinEmbeddedServer(dataDir, true, () => {})
      const client = new pg.Client(connection)
      await client.connect()
      await assert.rejects(client.query(`select 'CANARY'::int`))
      await assert.rejects(client.query(`insert into accounts (name, modules) values ('CANARY', '{CANARY}')`))
      await assert.rejects(client.query('select $1::int', ['CANARY']))
      await client.end()
      await leave()
      assert.doesNotMatch(readFileSync(join(dataDir, 'postgres.log'), 'utf8'), /CANARY|insert into/)
    })

    test('a start removes nothing that it did not make itself: a directory put aside stays', async () => {
      const aside = join(dataDir, 'postgres.backup')
      renameSync(join(dataDir, 'postgres'), aside)
      utimesSync(aside, 0, 0)
      assert.deepEqual(await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir }), [])
      assert.ok(statSync(join(aside, 'PG_VERSION')))
    })
  })

  test('a path too long for a socket, with spaces and quotes in it, works', async () => {
    const dataDir = join(await createDataDir(), `it's "long", ${'ą'.repeat(50)}`, 'x'.repeat(60))
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(herald, dataDir, 'deep down')
    assert.equal((await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir })).length, 1)
    await stopInOrder(herald)
  })

  test('eight commands at once on a directory that does not exist yet all do their work', async () => {
    const dataDir = join(await createDataDir(), 'new')
    const env = { HERALD_DATA_DIR: dataDir }
    await Promise.all(Array.from({ length: 8 }, (_, index) => heraldJson(['account', 'create', `Account ${index}`], env)))
    assert.equal((await heraldJson(['account', 'list'], env)).length, 8)
    await until('nobody is left', () => postmasterPid(dataDir) === undefined)
  })

  test('as root, PostgreSQL runs as an unprivileged user, also below a directory that only root may enter; fsync is on', {
    skip: !isRoot && 'not root',
  }, async () => {
    const closed = join(await createDataDir(), 'closed')
    mkdirSync(closed, { mode: 0o700 })
    const dataDir = join(closed, 'data')
    const { leave } = await joinEmbeddedServer(dataDir, true, () => {})
    const status = readFileSync(`/proc/${postmasterPid(dataDir)}/status`, 'utf8')
    assert.doesNotMatch(status, /^Uid:\s+0\s/m)
    assert.match(readFileSync(`/proc/${postmasterPid(dataDir)}/cmdline`, 'utf8'), /\0fsync=on\0/)
    await leave()
  })

  test('as root without the right to look into other processes, as in a container, it starts, serves and stops', {
    skip: (!isRoot || !existsSync(SETPRIV)) && 'not root',
  }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir }, CONTAINED)
    await leaveMark(herald, dataDir, 'contained')
    const postmaster = postmasterPid(dataDir) as number
    await stopInOrder(herald)
    assert.ok(!isRunning(postmaster))
  })
})

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return (
          readFileSync(`/proc/${name}/stat`, 'utf8')
            .replace(/^.*\) /s, '')
            .split(' ')[1] === String(pid)
        )
      } catch {
        return false
      }
    })
    .map(Number)
}
