import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Pool } from '../../../src/db/pool.ts'
import { createTestDatabase } from '../../../test/support/database.ts'
import {
  createDataDir,
  type HeraldProcess,
  heraldJson,
  postmasterPid,
  runHerald,
  START_TIMEOUT_MS,
  spawnHerald,
  startHerald,
  startLastingHerald,
} from '../../../test/support/process.ts'
import { call } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

const LAST_USEFUL_SIGNAL_MS = 1_500

describe('herald serve', { concurrency: 2 }, () => {
  // One after the other on one directory, which the first test creates.
  describe('before there is an account', { concurrency: 1 }, async () => {
    const env = { HERALD_DATA_DIR: await createDataDir() }

    test('fails to start, and leaves no process or account, if the credentials of the demo account cannot be written', async () => {
      const inTheWay = join(env.HERALD_DATA_DIR, 'demo.json.new')
      mkdirSync(inTheWay)
      const { code } = await runHerald(['serve'], { ...env, HERALD_PORT: '0' })
      assert.equal(code, 1)
      assert.equal(postmasterPid(env.HERALD_DATA_DIR), undefined)
      assert.deepEqual(await heraldJson(['account', 'list'], env), [])
      rmdirSync(inTheWay)
    })

    test('ignores PG… variables for the embedded database', async () => {
      const PG = {
        PGHOST: 'nowhere.invalid',
        PGPORT: '1',
        PGUSER: 'x',
        PGDATABASE: 'x',
        PGSSLMODE: 'require',
        PGOPTIONS: '-c search_path=nowhere',
      }
      assert.equal((await heraldJson(['account', 'create', 'Mine'], { ...env, ...PG })).name, 'Mine')
    })

    test('creates no demo account if there is an account before the first start', async () => {
      const herald = await startHerald(env)
      assert.deepEqual(
        (await heraldJson(['account', 'list'], env)).map(({ name }: { name: string }) => name),
        ['Mine'],
      )
      herald.child.kill('SIGTERM')
      assert.equal(await herald.ended, 0)
    })
  })

  describe('two nodes on a configured database', { concurrency: 1 }, async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ empty: true })
    let starting: Promise<[HeraldProcess, HeraldProcess]> | undefined
    function startedNodes(): Promise<[HeraldProcess, HeraldProcess]> {
      starting ??= Promise.all([startLastingHerald({ HERALD_DATABASE_URL }), startLastingHerald({ HERALD_DATABASE_URL })])
      return starting
    }

    test('start at once on an empty schema, without a demo account', async () => {
      for (const { url } of await startedNodes()) assert.equal((await call(`${url}/readyz`)).status, 200)
      assert.equal((await pool.query('select from accounts')).rowCount, 0)
    })

    test('stop within 10 s while a request hangs in the database', async () => {
      const [first] = await startedNodes()
      await whileRequestHangs(first.url, pool, async () => {
        const startedAt = performance.now()
        first.child.kill('SIGTERM')
        assert.equal(await first.ended, 0)
        assert.ok(performance.now() - startedAt < 10_000)
      })
    })

    // The hanging request keeps a stopping node for about two seconds. On a busy machine the second signal can come after that, which shows nothing.
    test('end at once on a second signal after more than a second', async () => {
      const [, second] = await startedNodes()
      let sentAfterMs = await signalTwice(second, pool)
      for (let triesLeft = 4; sentAfterMs > LAST_USEFUL_SIGNAL_MS && triesLeft > 0; triesLeft--)
        sentAfterMs = await signalTwice(await startLastingHerald({ HERALD_DATABASE_URL }), pool)
      assert.ok(sentAfterMs <= LAST_USEFUL_SIGNAL_MS, 'no second signal came in time')
    })
  })

  test('leaves no process after Ctrl-C during the first start', async () => {
    const dataDir = await createDataDir()
    const { child, ended } = spawnHerald(['serve'], { HERALD_DATA_DIR: dataDir, HERALD_PORT: '0' })
    await until('PostgreSQL runs', () => postmasterPid(dataDir), START_TIMEOUT_MS)
    child.kill('SIGINT')
    assert.equal(await ended, 0)
    assert.equal(postmasterPid(dataDir), undefined)
  })

  test('ends at once on Ctrl-C while it waits for a database that is away', async () => {
    const { child, output, ended } = spawnHerald(['serve'], { HERALD_DATABASE_URL: 'postgres://127.0.0.1:1/x', HERALD_PORT: '0' })
    await until('it waits', () => /Trying again/.test(output.stdout))
    const startedAt = performance.now()
    child.kill('SIGINT')
    assert.equal(await ended, 0)
    assert.ok(performance.now() - startedAt < 2_000)
  })
})

/** Checks what follows a second signal, if that comes in time. Returns when it came, counted from the first. */
async function signalTwice({ child, ended, url }: HeraldProcess, pool: Pool): Promise<number> {
  return whileRequestHangs(url, pool, async () => {
    const firstAt = performance.now()
    child.kill('SIGTERM')
    await until('more than a second has passed', () => performance.now() > firstAt + 1_100)
    const sentAfterMs = performance.now() - firstAt
    child.kill('SIGTERM')
    const code = await ended
    if (sentAfterMs <= LAST_USEFUL_SIGNAL_MS) {
      assert.equal(code, 1)
      assert.ok(performance.now() - firstAt < 2_500)
    }
    return sentAfterMs
  })
}

/** Runs `work` while a request to `url` waits for a lock in the database. */
async function whileRequestHangs<T>(url: string, pool: Pool, work: () => Promise<T>): Promise<T> {
  const blocker = await pool.connect()
  let waiting: Promise<unknown> | undefined
  try {
    await blocker.query('begin; lock table integration_keys')
    waiting = call(`${url}/v1/agents`).catch(() => undefined)
    await until('the request waits in the database', async () => {
      const { rowCount } = await pool.query(`select from pg_locks where not granted and relation = 'integration_keys'::regclass`)
      return rowCount === 1
    })
    return await work()
  } finally {
    await blocker.query('rollback')
    blocker.release()
    await waiting
  }
}
