import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import pg from 'pg'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { freePort } from '../support/ports.ts'
import { createDataDir, heraldJson, runHeraldProcess, spawnHerald, startHerald, untilReady } from '../support/process.ts'
import { call } from '../support/service.ts'
import { until } from '../support/until.ts'

describe('herald serve', { concurrency: 2 }, () => {
  test('fails with an error that names a wrong setting, and creates nothing', async () => {
    const dataDir = join(await createDataDir(), 'untouched')
    const { code, stdout, stderr } = await runHeraldProcess(['serve'], {
      HERALD_DATA_DIR: dataDir,
      HERALD_PORT: 'eighty',
      HERALD_LIMITS: 'none',
    })
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.equal(stderr, 'HERALD_PORT must be a whole number from 0 to 65535.\nHERALD_LIMITS must be one of memory, database.\n')
    assert.throws(() => statSync(dataDir))
  })

  test('fails with a readable error if its port is in use, and leaves no database running', async () => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { code, stderr } = await runHeraldProcess(['serve', '--only', 'api'], { HERALD_DATABASE_URL, HERALD_PORT: `${port}` })
    other.close()
    assert.equal(code, 1)
    assert.equal(stderr, `Can't listen on 127.0.0.1 port ${port}: the port is in use by another program (HERALD_HOST and HERALD_PORT).\n`)
  })

  test('waits for a database that disconnects during the start', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    async function waiting(): Promise<number[]> {
      const text = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return (await ownerOf(pool).query<{ pid: number }>(text)).rows.map(({ pid }) => pid)
    }
    // Not of the pool, whose transactions may not stand still.
    const holder = new pg.Client(HERALD_DATABASE_URL)
    await holder.connect()
    await holder.query('begin; lock table secrets in access exclusive mode')
    const started = spawnHerald(['serve', '--only', 'api'], { HERALD_DATABASE_URL, HERALD_PORT: '0' })
    const [pid] = await until('it has begun', async () => ((await waiting()).length > 0 ? await waiting() : undefined))
    await ownerOf(pool).query('select pg_terminate_backend($1, 5000)', [pid])
    await until('it has begun anew', async () => (await waiting()).length > 0)
    await holder.end()
    const herald = await untilReady(started)
    assert.equal((await call(`${herald.url}/readyz`)).status, 200)
    assert.match(herald.output.stdout, /"level":"warn".*lost the database during the start/)
    herald.child.kill('SIGTERM')
    assert.equal(await herald.ended, 0)
  })

  test('fails with an error without the password if the database is out of reach or rejects it', async () => {
    const refused = await runHeraldProcess(['account', 'list'], { HERALD_DATABASE_URL: 'postgres://me:CANARY@127.0.0.1:1/x' })
    assert.equal(refused.code, 4)
    assert.match(refused.stderr, /^PostgreSQL can't be reached at the address in HERALD_DATABASE_URL: .*ECONNREFUSED.*\n$/)
    const nowhere = new URL((await createTestDatabase()).url)
    nowhere.pathname = '/no_such_database'
    const missing = await runHeraldProcess(['serve'], { HERALD_DATABASE_URL: nowhere.href, HERALD_PORT: '0' })
    assert.equal(missing.code, 4)
    assert.match(missing.stderr, /^PostgreSQL can't be reached .*database "no_such_database" does not exist\.\n$/)
    assert.doesNotMatch(refused.stderr + missing.stderr, /CANARY|\n\s+at /)
  })

  test('creates a demo account at the first start, with its credentials in files that only the owner can read', async () => {
    const dataDir = await createDataDir()
    const port = await freePort()
    const started = spawnHerald(['serve', '--only', 'api'], { HERALD_DATA_DIR: dataDir, HERALD_PORT: `${port}` })
    await until('it says that it can serve', () => isReady(port))
    // As soon as that: a script that waits for it goes on with these.
    assert.ok(existsSync(join(dataDir, 'demo.json')), `${readdirSync(dataDir)} at ${port}: ${JSON.stringify(started.output)}`)
    const demo = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8'))
    const header = readFileSync(join(dataDir, 'demo.header'), 'utf8')
    assert.equal(header, `Authorization: ${demo.authorization}\n`)
    for (const file of ['demo.json', 'demo.header', 'encryption.key']) assert.equal(statSync(join(dataDir, file)).mode & 0o777, 0o600)

    const first = await untilReady(started)
    const { body } = await call(`${first.url}/v1/agents`, { authorization: demo.authorization })
    assert.deepEqual(
      body.items.map((agent: { billingType: string }) => agent.billingType),
      ['basic', 'conversational', 'single'],
    )
    // A template that may be sent, and is one that the API itself would take.
    const [template] = (await call(`${first.url}/v1/templates?status=APPROVED`, { authorization: demo.authorization })).body.items
    const { id, createdAt, updatedAt, ...fields } = template
    const checked = await call(`${first.url}/v1/templates/check`, { method: 'POST', authorization: demo.authorization, body: fields })
    assert.deepEqual([checked.status, checked.body.valid], [200, true])
    assert.match(first.output.stderr, new RegExp(`curl -H @\\S+demo\\.header .*\\s+${first.url}/v1/messages -d`))
    assert.ok(!`${first.output.stdout}${first.output.stderr}`.includes(demo.secret))
    assert.ok(!`${first.output.stdout}${first.output.stderr}`.includes(demo.integrationKey))
    first.child.kill('SIGTERM')
    await first.ended

    const second = await startHerald({ HERALD_DATA_DIR: dataDir })
    assert.equal(readFileSync(join(dataDir, 'demo.header'), 'utf8'), header)
    assert.equal((await heraldJson(['account', 'list'], { HERALD_DATA_DIR: dataDir })).length, 1)
    assert.equal((await call(`${second.url}/v1/agents`, { authorization: demo.authorization })).status, 200)
    assert.doesNotMatch(second.output.stderr, /demo/)
    second.child.kill('SIGTERM')
    assert.equal(await second.ended, 0)
  })

  test('prints a one-time link for the first operator, a new one at each start, until there is a person', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const env = { HERALD_DATABASE_URL }
    const LINE =
      /^The console: (http:\/\/127\.0\.0\.1:\d+)\/console#setup=(first-[\w-]{43}) \(creates the first operator; valid for 24 hours\)\nHerald is ready at /m
    const links: string[] = []
    for (const more of [{}, { HERALD_PUBLIC_URL: 'https://herald.example.com' }]) {
      const { child, url, output, ended } = await startHerald({ ...env, ...more })
      const line = output.stderr.replace('https://herald.example.com', url)
      assert.equal(output.stderr.includes('https://herald.example.com/console#setup='), 'HERALD_PUBLIC_URL' in more)
      const [, address, secret = ''] = LINE.exec(line) ?? []
      assert.equal(address, url)
      assert.ok(!output.stdout.includes(secret), 'it is in no log')
      links.push(secret)
      child.kill('SIGTERM')
      await ended
    }
    assert.notEqual(links[0], links[1])
    const stored = await pool.query(
      'select person_id, extract(epoch from expires_at - now()) / 3600 as hours, people_links::text from people_links',
    )
    assert.equal(stored.rowCount, 2)
    for (const { person_id, hours, people_links } of stored.rows) {
      assert.deepEqual([person_id, Math.round(Number(hours))], [null, 24])
      assert.ok(
        links.every((secret) => !people_links.includes(secret)),
        'only hashes are stored',
      )
    }
    const { url, child, ended } = await startHerald(env)
    const body = { token: links[0], email: 'anna@example.com', name: 'Anna', password: 'correct horse battery' }
    const { status } = await call(`${url}/admin/v1/setup`, { method: 'POST', headers: { origin: url }, body })
    assert.equal(status, 200)
    child.kill('SIGTERM')
    await ended
    const { output } = await startHerald(env)
    assert.match(output.stderr, /^The console: http:\/\/127\.0\.0\.1:\d+\/console\nHerald is ready at /m)
    assert.doesNotMatch(output.stderr, /operator|setup=/)
  })

  test('fails with an error that names the variable of an invalid data directory', async () => {
    const file = join(await createDataDir(), 'file')
    writeFileSync(file, '')
    for (const HERALD_DATA_DIR of [file, join(file, 'below'), `/${'x'.repeat(300)}`]) {
      const { code, stderr } = await runHeraldProcess(['account', 'list'], { HERALD_DATA_DIR })
      assert.equal(code, 1)
      assert.match(stderr, /^The data can't be kept in .*: E[A-Z]+ \(HERALD_DATA_DIR\)\.\n$/)
    }
  })

  test('reads settings from .env in the working directory; the environment takes precedence', async () => {
    const dir = await createDataDir()
    writeFileSync(join(dir, '.env'), 'HERALD_PORT=from-file\nHERALD_LIMITS=from-file\n')
    const { stderr } = await runHeraldProcess(['serve'], { HERALD_PORT: '0' }, dir)
    assert.equal(stderr, 'HERALD_LIMITS must be one of memory, database.\n')
  })
})

function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
}
