import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { createLinks } from '../../src/links/links.ts'
import { certificateOf, connectTls, exchange, installCertificate, presentedBy } from '../support/certificates.ts'
import { createTestDatabase } from '../support/database.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import { call, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const HSTS = /^Strict-Transport-Security: max-age=31536000\r?$/im
const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const limits = { HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000' }
const start = (env: Record<string, string>) => startTestService({ HERALD_DATABASE_URL, ...limits, ...env })

const [ec, rsa] = [installCertificate('ec'), installCertificate('rsa')]
const [ecService, rsaService] = [await start(ec.settings), await start(rsa.settings)]

/** A request by hand, of which only the head of the response counts. */
async function headOf(url: string, target: string, headers: string[] = [], method = 'GET'): Promise<string> {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers]
  return (await exchange(url, `${lines.join('\r\n')}\r\n\r\n`)).split('\r\n\r\n', 1)[0] ?? ''
}

async function ask(socket: TLSSocket, target: string): Promise<number> {
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  const [chunk] = await once(socket, 'data')
  return Number(String(chunk).split(' ')[1])
}

describe('the TLS listener', () => {
  test('serves over TLS only', async () => {
    assert.match(ecService.url, /^https:/)
    assert.match(await headOf(ecService.url, '/readyz'), /^HTTP\/1\.1 200 /)
    await assert.rejects(call(`${ecService.url.replace('https', 'http')}/readyz`))
  })

  const accepted: [string, string, 'TLSv1.2' | 'TLSv1.3'][] = [
    ['TLS_AES_256_GCM_SHA384', rsaService.url, 'TLSv1.3'],
    ['TLS_CHACHA20_POLY1305_SHA256', rsaService.url, 'TLSv1.3'],
    ['TLS_AES_128_GCM_SHA256', rsaService.url, 'TLSv1.3'],
    ['ECDHE-RSA-AES128-GCM-SHA256', rsaService.url, 'TLSv1.2'],
    ['ECDHE-RSA-AES256-GCM-SHA384', rsaService.url, 'TLSv1.2'],
    ['ECDHE-RSA-CHACHA20-POLY1305', rsaService.url, 'TLSv1.2'],
    ['ECDHE-ECDSA-AES128-GCM-SHA256', ecService.url, 'TLSv1.2'],
    ['ECDHE-ECDSA-AES256-GCM-SHA384', ecService.url, 'TLSv1.2'],
    ['ECDHE-ECDSA-CHACHA20-POLY1305', ecService.url, 'TLSv1.2'],
  ]
  for (const [ciphers, url, version] of accepted) {
    test(`accepts ${ciphers}`, async () => {
      const socket = await connectTls(url, { ciphers, minVersion: version, maxVersion: version })
      assert.deepEqual(
        [socket.getCipher().standardName.includes('GCM') || ciphers.includes('CHACHA20'), socket.getProtocol()],
        [true, version],
      )
      socket.destroy()
    })
  }

  const refused: [string, string][] = [
    ['AES128-GCM-SHA256', rsaService.url],
    ['AES256-SHA', rsaService.url],
    ['AES128-SHA256', rsaService.url],
    ['ECDHE-RSA-AES128-SHA', rsaService.url],
    ['ECDHE-RSA-AES256-SHA384', rsaService.url],
    ['DHE-RSA-AES128-GCM-SHA256', rsaService.url],
    ['ECDHE-ECDSA-AES256-SHA', ecService.url],
    ['ECDHE-ECDSA-AES128-SHA256', ecService.url],
  ]
  for (const [ciphers, url] of refused) {
    test(`rejects ${ciphers}`, async () => {
      await assert.rejects(connectTls(url, { ciphers, maxVersion: 'TLSv1.2' }), { code: 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE' })
    })
  }

  for (const version of ['TLSv1', 'TLSv1.1'] as const) {
    test(`rejects ${version}`, async () => {
      const options = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }
      await assert.rejects(connectTls(rsaService.url, options), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' })
    })
  }

  test('closes a connection whose handshake does not end in time', async () => {
    const timeouts = { headersMs: 300, requestMs: 300, keepAliveMs: 300 }
    const service = await startTestService({ HERALD_DATABASE_URL, ...ec.settings }, { timeouts })
    const silent = rawConnection(service.url)
    // A TLS record that announces 256 bytes of a ClientHello and brings none.
    silent.send(Buffer.from([0x16, 0x03, 0x01, 0x01, 0x00]))
    await silent.ended
  })
})

describe('Strict-Transport-Security', () => {
  test('is on every response over TLS', async () => {
    const { accountId, authorization } = await createCaller(pool)
    const { url } = ecService
    const credentials = `Authorization: ${authorization}`
    const link = await createLink(accountId)
    const today = new Date().toISOString().slice(0, 10)
    const exported = `/v1/reports/messages/export?from=${today}&to=${today}`
    const heads: Record<string, string> = {
      200: await headOf(url, '/v1/agents', [credentials]),
      '401': await headOf(url, '/v1/agents'),
      '404': await headOf(url, '/nowhere'),
      '404 below /v1': await headOf(url, '/v1/nowhere', [credentials]),
      '405': await headOf(url, '/v1/agents', [credentials], 'DELETE'),
      'a short link': await headOf(url, link),
      'a short link that is not there': await headOf(url, '/l/zzzzzzzz'),
      'a carrier webhook': await headOf(url, '/carriers/nobody/webhook', ['Content-Length: 0'], 'POST'),
      'an export': await headOf(url, exported, [credentials]),
      'a HEAD request': await headOf(url, link, [], 'HEAD'),
      'no Host': (await exchange(url, 'GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n')).split('\r\n\r\n')[0] ?? '',
      'an unknown expectation': await headOf(url, '/healthz', ['Expect: miracles']),
      'an asterisk for a target': await headOf(url, '*', [], 'OPTIONS'),
      'no HTTP at all': await exchange(url, 'what?\r\n\r\n'),
      'headers that are too large': await headOf(url, '/', [`X-Large: ${'x'.repeat(20_000)}`]),
      CONNECT: await headOf(url, 'example.com:443', [], 'CONNECT'),
    }
    for (const [name, head] of Object.entries(heads)) assert.match(head, HSTS, `${name}: ${head}`)
    assert.match(heads['a short link'] ?? '', /^HTTP\/1\.1 302 /)
    assert.match(heads['an export'] ?? '', /^HTTP\/1\.1 200 .*attachment/s)
    assert.match(heads.CONNECT ?? '', /^HTTP\/1\.1 400 /)
  })

  test('is on a response to a request that did not arrive in time', async () => {
    const service = await startTestService(
      { HERALD_DATABASE_URL, ...ec.settings },
      { timeouts: { headersMs: 1_000, requestMs: 1_000, keepAliveMs: 1_000 } },
    )
    const received = await exchange(service.url, 'GET /readyz HTTP/1.1\r\nHost: ')
    assert.equal(parseResponse(received).status, 408)
    assert.match(received, HSTS)
  })

  test('is on the 408 to a client whose handshake takes too long', async () => {
    const { url } = await startTestService(
      { HERALD_DATABASE_URL, ...ec.settings },
      { timeouts: { headersMs: 300, requestMs: 300, keepAliveMs: 300 } },
    )
    const received = await exchange(await lateProxy(url, 600), 'GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert.equal(parseResponse(received).status, 408)
    assert.match(received, HSTS)
  })

  test('is on no response over plain HTTP', async () => {
    const plain = await start({})
    assert.equal((await call(`${plain.url}/readyz`)).headers.get('strict-transport-security'), null)
    assert.equal((await call(`${plain.url}/nowhere`)).headers.get('strict-transport-security'), null)
  })
})

describe('a reload of the certificate', () => {
  test('gives new connections the new certificate, and keeps open connections', async () => {
    const installed = installCertificate('ec')
    const service = await start(installed.settings)
    const open = await connectTls(service.url)
    assert.equal(await ask(open, '/healthz'), 200)
    installed.replace('rsa')
    service.reloadCertificate()
    assert.equal(await presentedBy(service.url), 'rsa')
    assert.equal(await ask(open, '/healthz'), 200)
    assert.match(service.log(), /"level":"info".*"msg":"TLS certificate reloaded"/)
    // The limits of the first context hold for the next one.
    await assert.rejects(connectTls(service.url, { ciphers: 'AES128-GCM-SHA256', maxVersion: 'TLSv1.2' }))
    assert.match(await headOf(service.url, '/healthz'), HSTS)
    open.destroy()
  })

  test('gives a client that resumes a session the new certificate', async () => {
    const installed = installCertificate('ec')
    const service = await start(installed.settings)
    const first = await connectTls(service.url, { maxVersion: 'TLSv1.2' })
    const session = first.getSession()
    first.destroy()
    installed.replace('rsa')
    service.reloadCertificate()
    const second = await connectTls(service.url, { maxVersion: 'TLSv1.2', ...(session && { session }) })
    assert.deepEqual([second.isSessionReused(), second.getPeerCertificate().asn1Curve], [false, undefined])
    second.destroy()
  })

  const broken: [string, (files: ReturnType<typeof installCertificate>) => void, RegExp][] = [
    [
      'do not belong together',
      ({ HERALD_TLS_CERT }) => writeFileSync(HERALD_TLS_CERT, certificateOf('rsa')),
      /must be a certificate and its private key/,
    ],
    ['are cut off', ({ HERALD_TLS_KEY }) => writeFileSync(HERALD_TLS_KEY, '-----BEGIN'), /must be a certificate and its private key/],
    ['are readable by others', ({ HERALD_TLS_KEY }) => chmodSync(HERALD_TLS_KEY, 0o644), /HERALD_TLS_KEY .* mode is 0644/],
  ]
  for (const [name, breakFiles, reason] of broken) {
    test(`keeps the previous certificate if the files ${name}`, async () => {
      const installed = installCertificate('ec')
      const service = await start(installed.settings)
      breakFiles(installed)
      service.reloadCertificate()
      assert.equal(await presentedBy(service.url), 'ec')
      const line =
        service
          .log()
          .split('\n')
          .find((each) => each.includes('"level":"error"')) ?? ''
      const { msg, reason: given } = JSON.parse(line)
      assert.equal(msg, 'failed to reload the TLS certificate; the previous one stays in use')
      assert.match(given, reason)
      assert.doesNotMatch(line, /BEGIN|PRIVATE/)
      installed.replace('rsa')
      service.reloadCertificate()
      assert.equal(await presentedBy(service.url), 'rsa')
    })
  }

  test('reaches every address of localhost', async () => {
    const installed = installCertificate('ec')
    const service = await start({ ...installed.settings, HERALD_HOST: 'localhost' })
    installed.replace('rsa')
    service.reloadCertificate()
    const { port } = new URL(service.url)
    for (const host of ['127.0.0.1', '[::1]']) {
      const url = `https://${host}:${port}`
      assert.notEqual(await presentedBy(url).catch(() => 'nobody listens'), 'ec', host)
    }
    await until('it serves', async () => (await presentedBy(service.url)) === 'rsa')
  })
})

/** The path of a short link that leads to example.com. */
async function createLink(accountId: number): Promise<string> {
  const code = 'Abcdefghij0'
  const link = {
    code,
    accountId,
    messageId: randomUUID(),
    copy: 0,
    agentId: 'shop',
    recipient: '+48500100200',
    url: 'https://example.com/',
  }
  await createLinks(pool, [link])
  return `/l/${code}`
}

/** Passes on what a client sends after this time, and what the server sends at once. */
async function lateProxy(url: string, lateMs: number): Promise<string> {
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(url).port), '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('data', (chunk) => setTimeout(() => upstream.write(chunk), lateMs))
    upstream.pipe(client)
  })
  after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}
