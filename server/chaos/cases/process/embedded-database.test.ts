import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { joinEmbeddedServer } from '../../../src/db/embedded/server.ts'
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
} from '../../../test/support/embedded.ts'
import { createDataDir, heraldJson, isRunning, postmasterPid, runHerald, spawnHerald, startHerald } from '../../../test/support/process.ts'
import { call } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import { childrenOf } from '../../topology/signals.ts'

const isRoot = process.getuid?.() === 0

// A data directory with a database and no account, for the tests that are not about creating one.
const emptyDatabase = await createDataDir()
await heraldJson(['migrate'], { HERALD_DATA_DIR: emptyDatabase })

describe('the embedded database', { concurrency: 2 }, () => {
  // One after the other on one directory: each test begins with the service that the one before has started.
  describe('with a service', { concurrency: 1 }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const env = { HERALD_DATA_DIR: dataDir }
    const { current, startAgain } = serviceOn(dataDir)

    test('stops in order within 10 s and loses nothing after Ctrl-C, even twice within a second as npm sends it', async () => {
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

    test('starts with the stale lock file that a kill of service and database leaves', async () => {
      const first = await current()
      await leaveMark(first, dataDir, 'before both kills')
      await killBoth(first, dataDir)
      assert.equal(await readMark(await startAgain(), dataDir), 'before both kills')
    })

    test('starts when the process id in the lock file belongs to another program, or to another PostgreSQL', async () => {
      await current()
      const { uid, gid } = statSync(join(dataDir, 'postgres'))
      const other = spawn('sleep', ['600'], { ...(isRoot && { uid, gid }), cwd: '/' })
      after(() => other.kill())
      const neighbourDir = await createDataDir(emptyDatabase)
      const neighbour = await joinEmbeddedServer(neighbourDir, false, () => {})
      for (const pid of [other.pid, postmasterPid(neighbourDir)]) {
        const first = await current()
        await leaveMark(first, dataDir, `before ${pid}`)
        const lock = await killBoth(first, dataDir)
        writeFileSync(lockFileOf(dataDir), lock.replace(/^\d+/, String(pid)))
        assert.equal(await readMark(await startAgain(), dataDir), `before ${pid}`)
      }
      assert.equal(other.exitCode, null)
      const client = new pg.Client(neighbour.connection)
      await client.connect()
      await client.end()
      await neighbour.leave()
    })

    test('is restarted by the running service after a crash, and keeps all that was acknowledged', async () => {
      const herald = await current()
      await leaveMark(herald, dataDir, 'before the crash')
      const postmaster = postmasterPid(dataDir) as number
      process.kill(postmaster, 'SIGKILL')
      const killedAt = performance.now()
      await until('another one runs', () => postmasterPid(dataDir) !== postmaster && isRunning(postmasterPid(dataDir) ?? 0), 60_000)
      await until('the service is ready', async () => (await call(`${herald.url}/readyz`)).status === 200, 60_000)
      assert.ok(performance.now() - killedAt < 15_000, `${performance.now() - killedAt} ms`)
      assert.equal(await readMark(herald, dataDir), 'before the crash')
    })

    test('rejects a second service on the same directory in one sentence, and serves the first', async () => {
      const first = await current()
      const second = await runHerald(['serve'], { HERALD_DATA_DIR: dataDir, HERALD_PORT: '0' })
      assert.equal(second.code, 1)
      assert.equal(second.stderr, `Another Herald service already runs on ${dataDir}; stop it, or set HERALD_DATA_DIR.\n`)
      await leaveMark(first, dataDir, 'still here')
    })

    test('is taken over by the next service after a service was killed', async () => {
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

    test('serves commands whether the service runs or not, and is stopped by the last process that ends', async () => {
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

    test('does not delay the end of the service beyond 10 s when it is frozen', { skip: process.platform !== 'linux' }, async () => {
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

  // One after the other on one directory: each test except the last leaves it as it was.
  describe('without a service', { concurrency: 1 }, async () => {
    const dataDir = await createDataDir(emptyDatabase)

    test('is one server for eight processes that start at once, also after a crash, and is stopped by the last of eight that end at once', async () => {
      const rounds: LeftBehind[] = ['nothing', 'a stale lock', 'nothing', 'a stale lock', 'an empty lock', 'a stale lock']
      for (const leftBehind of rounds) await eightComeAndLeave(dataDir, leftBehind)
    })

    test('makes others wait while one process starts or stops it, until that process is killed', async () => {
      const hold = `new (require('node:sqlite').DatabaseSync)(${JSON.stringify(join(dataDir, 'start.lock'))}).exec('begin exclusive'); console.log('held'); setInterval(() => {}, 1e6)`
      const holder = spawn(process.execPath, ['-e', hold], { stdio: ['ignore', 'pipe', 'inherit'] })
      after(() => holder.kill('SIGKILL'))
      await once(holder.stdout as Readable, 'data')
      let isIn = false
      const joining = joinEmbeddedServer(dataDir, false, () => {}).then((server) => {
        isIn = true
        return server
      })
      // Only waiting can show that nothing happens: a start takes a tenth of this.
      await sleep(2_000)
      assert.ok(!isIn && postmasterPid(dataDir) === undefined)
      holder.kill('SIGKILL')
      const server = await joining
      assert.ok(isRunning(postmasterPid(dataDir) as number))
      await server.leave()
    })

    test('leaves the lock file to the owner of the data when root starts it', {
      skip: !isRoot && 'not root',
    }, async () => {
      const lockFile = join(dataDir, 'start.lock')
      chownSync(lockFile, 0, 0)
      assert.equal((await runHerald(['account', 'list'], { HERALD_DATA_DIR: dataDir })).code, 0)
      assert.equal(statSync(lockFile).uid, statSync(join(dataDir, 'postgres')).uid)
    })

    test('logs neither statements nor values', async () => {
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

    test('keeps a directory that an operator has moved aside', async () => {
      const aside = join(dataDir, 'postgres.backup')
      renameSync(join(dataDir, 'postgres'), aside)
      utimesSync(aside, 0, 0)
      assert.deepEqual(await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir }), [])
      assert.ok(statSync(join(aside, 'PG_VERSION')))
    })
  })

  test('works in a path too long for a socket, with spaces and quotes', async () => {
    const dataDir = join(await createDataDir(), `it's "long", ${'ą'.repeat(50)}`, 'x'.repeat(60))
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(herald, dataDir, 'deep down')
    assert.equal((await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir })).length, 1)
    await stopInOrder(herald)
  })

  test('serves eight commands at once on a directory that does not exist yet', async () => {
    const dataDir = join(await createDataDir(), 'new')
    const env = { HERALD_DATA_DIR: dataDir }
    await Promise.all(Array.from({ length: 8 }, (_, index) => heraldJson(['account', 'create', `Account ${index}`], env)))
    assert.equal((await heraldJson(['account', 'list'], env)).length, 8)
    await until('nobody is left', () => postmasterPid(dataDir) === undefined)
  })

  test('runs as an unprivileged user with fsync on, also below a directory that only root may enter', {
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

  test('starts, serves, is taken over after a kill, and stops if root may not inspect other processes, as in a container', {
    skip: (!isRoot || !existsSync(SETPRIV)) && 'not root',
  }, async () => {
    const env = { HERALD_DATA_DIR: await createDataDir(emptyDatabase) }
    const first = await startHerald(env, CONTAINED)
    await leaveMark(first, env.HERALD_DATA_DIR, 'contained')
    first.child.kill('SIGKILL')
    await first.ended
    const second = await startHerald(env, CONTAINED)
    assert.equal(await readMark(second, env.HERALD_DATA_DIR), 'contained')
    const postmaster = postmasterPid(env.HERALD_DATA_DIR) as number
    await stopInOrder(second)
    assert.ok(!isRunning(postmaster))
  })

  // These test the moments themselves, so they wait for times.
  test('starts after kills at any moment of its first start', async (t) => {
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
    await stopInOrder(herald)
  })

  test('does not run after Ctrl-C during its restart by the service', async () => {
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
