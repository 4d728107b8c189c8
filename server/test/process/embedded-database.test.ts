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
import { createDataDir, type HeraldProcess, heraldJson, isRunning, postmasterPid, runHerald, startHerald } from '../support/process.ts'
import { call } from '../support/service.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0

// With a database in it, and no account yet: for all that is not about making one.
const emptyDatabase = await createDataDir()
await heraldJson(['migrate'], { HERALD_DATA_DIR: emptyDatabase })

function demoAuthorization(dataDir: string): string {
  return JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')).authorization
}

/** Leaves a mark that was answered with 200, and so must never be lost. */
async function leaveMark({ url }: HeraldProcess, dataDir: string, mark: string): Promise<void> {
  const authorization = demoAuthorization(dataDir)
  const { status } = await call(`${url}/v1/agents/demo-single`, { method: 'PATCH', authorization, body: { displayName: mark } })
  assert.equal(status, 200)
}

async function readMark({ url }: HeraldProcess, dataDir: string): Promise<string> {
  const { body } = await call(`${url}/v1/agents`, { authorization: demoAuthorization(dataDir) })
  return body.items.find((agent: { agentId: string }) => agent.agentId === 'demo-single').displayName
}

async function stopInOrder({ child, ended }: HeraldProcess): Promise<void> {
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
}

describe('the embedded database', { concurrency: 2 }, () => {
  test('Ctrl-C, even twice within a second as npm makes it, stops service and database in order, well within 10 s, and loses nothing', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const first = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(first, dataDir, 'kept')
    const postmaster = postmasterPid(dataDir) as number
    const startedAt = performance.now()
    first.child.kill('SIGINT')
    first.child.kill('SIGINT')
    assert.equal(await first.ended, 0)
    assert.ok(performance.now() - startedAt < 10_000)
    assert.ok(!isRunning(postmaster))
    assert.match(readFileSync(join(dataDir, 'postgres.log'), 'utf8'), /database system is shut down\n$/)

    const second = await startHerald({ HERALD_DATA_DIR: dataDir })
    assert.equal(await readMark(second, dataDir), 'kept')
    await stopInOrder(second)
  })

  test('after kill -9 of the service, the next start takes over the orphaned database', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const first = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(first, dataDir, 'before the kill')
    first.child.kill('SIGKILL')
    await first.ended
    const orphan = postmasterPid(dataDir) as number
    assert.ok(isRunning(orphan))

    const second = await startHerald({ HERALD_DATA_DIR: dataDir })
    assert.equal(postmasterPid(dataDir), orphan)
    assert.equal(await readMark(second, dataDir), 'before the kill')
    await stopInOrder(second)
    assert.ok(!isRunning(orphan))
  })

  test('after kill -9 of service and database, the stale lock file does not stop the next start', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const first = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(first, dataDir, 'before both kills')
    first.child.kill('SIGKILL')
    process.kill(postmasterPid(dataDir) as number, 'SIGKILL')
    await first.ended
    const second = await startHerald({ HERALD_DATA_DIR: dataDir })
    assert.equal(await readMark(second, dataDir), 'before both kills')
    await stopInOrder(second)
  })

  test('a lock file whose process id now belongs to another program, or to another PostgreSQL, does not stop the next start', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const first = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(first, dataDir, 'before the restart')
    const lockFile = join(dataDir, 'postgres', 'postmaster.pid')
    const lock = readFileSync(lockFile, 'utf8')
    first.child.kill('SIGKILL')
    process.kill(postmasterPid(dataDir) as number, 'SIGKILL')
    await first.ended

    const { uid, gid } = statSync(join(dataDir, 'postgres'))
    const other = spawn('sleep', ['60'], { ...(isRoot && { uid, gid }), cwd: '/' })
    const neighbourDir = await createDataDir(emptyDatabase)
    const neighbour = await startHerald({ HERALD_DATA_DIR: neighbourDir })
    try {
      for (const pid of [other.pid, postmasterPid(neighbourDir)]) {
        writeFileSync(lockFile, lock.replace(/^\d+/, String(pid)))
        const second = await startHerald({ HERALD_DATA_DIR: dataDir })
        assert.equal(await readMark(second, dataDir), 'before the restart')
        await stopInOrder(second)
      }
    } finally {
      other.kill()
    }
    assert.equal((await call(`${neighbour.url}/readyz`)).status, 200)
    await stopInOrder(neighbour)
  })

  test('when the database dies under the running service, it is started again and serves on, with all that was answered', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(herald, dataDir, 'before the crash')
    const postmaster = postmasterPid(dataDir) as number
    process.kill(postmaster, 'SIGKILL')
    await until('another one runs', () => postmasterPid(dataDir) !== postmaster && isRunning(postmasterPid(dataDir) ?? 0))
    await until('the service is ready', async () => (await call(`${herald.url}/readyz`)).status === 200)
    assert.equal(await readMark(herald, dataDir), 'before the crash')
    await stopInOrder(herald)
  })

  test('a second service on the same directory says so in one sentence, and the first is none the worse', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const first = await startHerald({ HERALD_DATA_DIR: dataDir })
    const second = await runHerald(['serve'], { HERALD_DATA_DIR: dataDir, HERALD_PORT: '0' })
    assert.equal(second.code, 1)
    assert.equal(second.stderr, `Another Herald service already runs on ${dataDir}; stop it, or set HERALD_DATA_DIR.\n`)
    await leaveMark(first, dataDir, 'still here')
    await stopInOrder(first)
  })

  test('a path too long for a socket, with spaces and quotes in it, works', async () => {
    const dataDir = join(await createDataDir(), `it's "long", ${'ą'.repeat(50)}`, 'x'.repeat(60))
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    await leaveMark(herald, dataDir, 'deep down')
    assert.equal((await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir })).length, 1)
    await stopInOrder(herald)
  })

  test('commands reach it whether the service runs or not; the last one to leave stops it', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const env = { HERALD_DATA_DIR: dataDir }
    const { accountId } = await heraldJson(['account', 'create', 'Shop'], env)
    assert.equal(postmasterPid(dataDir), undefined)

    const herald = await startHerald(env)
    const { integrationKey, secret } = await heraldJson(['key', 'create', String(accountId)], env)
    assert.equal((await call(`${herald.url}/v1/agents`, { authorization: `Bearer ${integrationKey}:${secret}` })).status, 200)
    assert.ok(isRunning(postmasterPid(dataDir) as number))
    await stopInOrder(herald)
    assert.equal(postmasterPid(dataDir), undefined)
    assert.equal((await heraldJson(['key', 'list', String(accountId)], env)).length, 1)
  })

  test('eight commands at once on a directory that does not exist yet all do their work', async () => {
    const dataDir = join(await createDataDir(), 'new')
    const env = { HERALD_DATA_DIR: dataDir }
    await Promise.all(Array.from({ length: 8 }, (_, index) => heraldJson(['account', 'create', `Account ${index}`], env)))
    assert.equal((await heraldJson(['account', 'list'], env)).length, 8)
    await until('nobody is left', () => postmasterPid(dataDir) === undefined)
  })

  test('eight who come at once, also after a crash, share one server; of eight who leave at once the last stops it', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const lockFile = join(dataDir, 'postgres', 'postmaster.pid')
    const noProcess = 2 ** 22 + 1
    for (let round = 0; round < 6; round += 1) {
      // What a crashed server leaves; and what a crash of the machine can leave of one that had just begun.
      if (round % 2 === 1) writeFileSync(lockFile, `${noProcess}\n${dataDir}/postgres\n1700000000\n5432\n/nowhere\n`)
      if (round === 4) writeFileSync(lockFile, '')
      const all = await Promise.all(Array.from({ length: 8 }, () => joinEmbeddedServer(dataDir, false, () => {})))
      await Promise.all(all.map(({ leave }) => leave()))
      await until('it is stopped', () => postmasterPid(dataDir) === undefined)
    }
  })

  test('while one process starts or stops it the others wait, and go on once that one is killed', async () => {
    const dataDir = await createDataDir(emptyDatabase)
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

  test('as root, PostgreSQL runs as an unprivileged user, also below a directory that only root may enter; fsync is on', {
    skip: !isRoot && 'not root',
  }, async () => {
    const closed = join(await createDataDir(), 'closed')
    mkdirSync(closed, { mode: 0o700 })
    const dataDir = join(closed, 'data')
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    const status = readFileSync(`/proc/${postmasterPid(dataDir)}/status`, 'utf8')
    assert.doesNotMatch(status, /^Uid:\s+0\s/m)
    assert.match(readFileSync(`/proc/${postmasterPid(dataDir)}/cmdline`, 'utf8'), /\0fsync=on\0/)
    await stopInOrder(herald)
  })

  test('a start by root leaves the lock to the owner of the data, also one that root left half made', {
    skip: !isRoot && 'not root',
  }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const lockFile = join(dataDir, 'start.lock')
    chownSync(lockFile, 0, 0)
    assert.equal((await runHerald(['account', 'list'], { HERALD_DATA_DIR: dataDir })).code, 0)
    assert.equal(statSync(lockFile).uid, statSync(join(dataDir, 'postgres')).uid)
  })

  const setpriv = '/usr/bin/setpriv'
  test('as root without the right to look into other processes, as in a container, it starts, serves and stops', {
    skip: (!isRoot || !existsSync(setpriv)) && 'not root',
  }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const env = { HERALD_DATA_DIR: dataDir }
    const wrapper = [setpriv, '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace']
    const first = await startHerald(env, wrapper)
    await leaveMark(first, dataDir, 'contained')
    first.child.kill('SIGKILL')
    await first.ended
    const second = await startHerald(env, wrapper)
    assert.equal(await readMark(second, dataDir), 'contained')
    const postmaster = postmasterPid(dataDir) as number
    await stopInOrder(second)
    assert.ok(!isRunning(postmaster))
  })

  test('the log of PostgreSQL holds neither statements nor values', async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    const [, , , , host] = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
    const client = new pg.Client({ host: host as string, user: 'herald', database: 'herald' })
    await client.connect()
    await assert.rejects(client.query(`select 'CANARY'::int`))
    await assert.rejects(client.query(`insert into accounts (name, modules) values ('CANARY', '{CANARY}')`))
    await assert.rejects(client.query('select $1::int', ['CANARY']))
    await client.end()
    await stopInOrder(herald)
    assert.doesNotMatch(readFileSync(join(dataDir, 'postgres.log'), 'utf8'), /CANARY|insert into/)
  })

  test('a start removes nothing that it did not make itself: a directory put aside stays', async () => {
    const dataDir = await createDataDir()
    await heraldJson(['account', 'create', 'First'], { HERALD_DATA_DIR: dataDir })
    const aside = join(dataDir, 'postgres.backup')
    renameSync(join(dataDir, 'postgres'), aside)
    utimesSync(aside, 0, 0)
    assert.deepEqual(await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir }), [])
    assert.ok(statSync(join(aside, 'PG_VERSION')))
  })

  test('Ctrl-C ends the service within 10 s even where the database is frozen', { skip: process.platform !== 'linux' }, async () => {
    const dataDir = await createDataDir(emptyDatabase)
    const herald = await startHerald({ HERALD_DATA_DIR: dataDir })
    const pids = [postmasterPid(dataDir) as number, ...childrenOf(postmasterPid(dataDir) as number)]
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    const startedAt = performance.now()
    herald.child.kill('SIGINT')
    await herald.ended
    assert.ok(performance.now() - startedAt < 10_000, `${performance.now() - startedAt} ms`)
    for (const pid of pids) process.kill(pid, 'SIGCONT')
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
