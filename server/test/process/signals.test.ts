import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { connectTls, installCertificate, presentedBy } from '../support/certificates.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { spawnHerald, startHerald, untilReady } from '../support/process.ts'
import { until } from '../support/until.ts'

describe('SIGHUP', { concurrency: 2 }, () => {
  test('reloads the certificate of a service with TLS, and keeps open connections', async () => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const installed = installCertificate('ec')
    const herald = await startHerald({ HERALD_DATABASE_URL, ...installed.settings })
    const open = await connectTls(herald.url)
    installed.replace('rsa')
    herald.child.kill('SIGHUP')
    await until('new connections get the new certificate', async () => (await presentedBy(herald.url)) === 'rsa')
    open.write('GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    let received = ''
    for await (const chunk of open) received += chunk
    assert.match(received, /^HTTP\/1\.1 200 /)
    assert.equal(herald.child.exitCode, null)
    herald.child.kill('SIGTERM')
    assert.equal(await herald.ended, 0)
  })

  test('during the start of a service with TLS reloads the certificate after the start', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const holder = new pg.Client(HERALD_DATABASE_URL)
    await holder.connect()
    await holder.query('begin; lock table secrets in access exclusive mode')
    const installed = installCertificate('ec')
    const started = spawnHerald(['serve', '--only', 'api'], { HERALD_DATABASE_URL, HERALD_PORT: '0', ...installed.settings })
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await until('the start waits', async () => (await ownerOf(pool).query(waiting)).rowCount !== 0)
    installed.replace('rsa')
    started.child.kill('SIGHUP')
    await holder.end()
    const herald = await untilReady(started)
    await until('the new certificate is used', async () => (await presentedBy(herald.url)) === 'rsa')
    herald.child.kill('SIGTERM')
    assert.equal(await herald.ended, 0)
  })

  test('stops a service without TLS, which says so, and has said what an empty database needs', async () => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const herald = await startHerald({ HERALD_DATABASE_URL })
    assert.match(herald.output.stderr, /\nThe database has no account yet\. These commands add one that can send:\n/)
    herald.child.kill('SIGHUP')
    assert.equal(await herald.ended, 0)
    assert.match(herald.output.stderr, /\nHerald has stopped\.\n$/)
  })
})
