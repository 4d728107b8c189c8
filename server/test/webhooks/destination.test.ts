import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { isPublicAddress } from '../../src/public-host.ts'
import { createConnector } from '../../src/webhooks/address.ts'
import { createDestination, type DestinationOptions, type Post } from '../../src/webhooks/destination.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

type ReceivedRequest = { head: string; body: string; connection: number; nth: number; socket: Socket }
type Responder = (request: ReceivedRequest) => string | Buffer | undefined

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const CLOSED = 'the connection was closed before a response'

/** An endpoint that sends exactly what a test wants, valid HTTP or not, and keeps the requests. */
async function serve(respond: Responder, { host = '127.0.0.1', tls }: { host?: string; tls?: Certificate } = {}) {
  const requests: ReceivedRequest[] = []
  const sockets: Socket[] = []
  function accept(socket: Socket): void {
    const connection = sockets.push(socket)
    let received = ''
    let nth = 0
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received += chunk.toString('utf8')
      for (;;) {
        const [head = '', rest] = received.split(/\r\n\r\n(.*)/s)
        const length = Number(/content-length: (\d+)/.exec(head)?.[1])
        if (rest === undefined || Buffer.byteLength(rest) < length) return
        const body = Buffer.from(rest).subarray(0, length).toString()
        received = rest.slice(body.length)
        nth += 1
        const one = { head, body, connection, nth, socket }
        requests.push(one)
        const response = respond(one)
        if (response !== undefined) socket.write(response)
      }
    })
  }
  const server: Server = tls === undefined ? createServer(accept) : createTlsServer({ key: tls.key, cert: tls.cert }, accept)
  server.listen(await freePort(), host)
  await once(server, 'listening')
  after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return { port, url: `http://${host}:${port}/hook?a=b`, requests, sockets, server }
}

function open(url: string, options: Partial<DestinationOptions> = {}) {
  const destination = createDestination(url, { connections: 4, hosts: 'any', timeoutMs: 60_000, ...options })
  after(() => destination.close())
  return (post: Partial<Post> = {}) => destination.post({ headers: { 'content-type': 'application/json' }, body: '{}', ...post })
}

/** The result of one call that gets this response. */
async function postTo(response: string | Buffer | Responder, timeoutMs = 60_000) {
  const { url, requests, sockets } = await serve(typeof response === 'function' ? response : () => response)
  const attempted = await open(url, { timeoutMs })()
  return { ...attempted, requests, sockets }
}

describe('a call', () => {
  test('posts the body and headers unchanged to the path and query of the URL', async () => {
    const { url, requests, port } = await serve(() => OK)
    const body = '{"text":"Zażółć 👍"}'
    const attempted = await open(url)({
      headers: { 'webhook-id': 'id', 'content-type': 'application/json', 'user-agent': 'herald/1' },
      body,
    })
    const { durationMs, ...rest } = attempted
    assert.deepEqual(rest, { status: 200, error: undefined, retryAfterMs: undefined, response: 'ok', isStopped: false })
    assert.ok(Number.isInteger(durationMs) && durationMs >= 0)
    const lines = requests[0]?.head.split('\r\n') ?? []
    assert.equal(lines[0], 'POST /hook?a=b HTTP/1.1')
    assert.deepEqual(lines.slice(1).sort(), [
      'connection: keep-alive',
      `content-length: ${Buffer.byteLength(body)}`,
      'content-type: application/json',
      `host: 127.0.0.1:${port}`,
      'user-agent: herald/1',
      'webhook-id: id',
    ])
    assert.equal(requests[0]?.body, body)
  })

  test('keeps its connection for the next call, and opens at most as many as allowed', async () => {
    const { url, sockets } = await serve(() => OK)
    const post = open(url, { connections: 3 })
    for (let index = 0; index < 20; index += 1) assert.equal((await post()).status, 200)
    // A connection is free only a moment after its response, so the next call may open another.
    assert.ok(sockets.length <= 2, `${sockets.length}`)
    const attempts = await Promise.all(Array.from({ length: 60 }, () => post()))
    assert.ok(attempts.every(({ status }) => status === 200))
    assert.equal(sockets.length, 3)
  })

  test('returns any status and follows no redirect', async () => {
    const inside = await serve(() => OK)
    for (const status of [200, 201, 204, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 410, 418, 429, 500, 502, 503, 599]) {
      const body = status === 204 || status === 304 ? '' : 'content-length: 0\r\n'
      const result = await postTo(`HTTP/1.1 ${status} So\r\nlocation: ${inside.url}\r\nrefresh: 0; url=${inside.url}\r\n${body}\r\n`)
      assert.deepEqual([result.status, result.error, result.response, result.requests.length], [status, undefined, '', 1])
    }
    assert.equal(inside.sockets.length, 0)
  })

  test('reads Retry-After in seconds or as a date, and ignores any other value', async () => {
    const waiting = async (value: string) =>
      (await postTo(`HTTP/1.1 429 No\r\nretry-after: ${value}\r\ncontent-length: 0\r\n\r\n`)).retryAfterMs
    assert.equal(await waiting('120'), 120_000)
    assert.equal(await waiting('0'), 0)
    assert.equal(await waiting('9'.repeat(400)), Number.MAX_SAFE_INTEGER)
    assert.equal(await waiting('120\r\nretry-after: 5'), 120_000)
    const inAnHour = (await waiting(new Date(Date.now() + 3_600_000).toUTCString())) ?? 0
    assert.ok(inAnHour > 3_590_000 && inAnHour <= 3_600_000, `${inAnHour}`)
    assert.equal(await waiting('Wed, 21 Oct 2015 07:28:00 GMT'), 0)
    for (const value of ['', '-1', '1.5', '1e3', '0x10', 'soon', '2099-01-01', 'Wed, 99 Oct 2015 07:28:00 GMT', '10, 20', '１０']) {
      assert.equal(await waiting(value), undefined, value)
    }
  })
})

describe('a response', () => {
  test('is kept up to 1 KiB, as text that a database can store', async () => {
    const text = async (body: Buffer, headers = '') =>
      (await postTo(Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${headers}content-length: ${body.length}\r\n\r\n`), body]))).response
    assert.equal(await text(Buffer.from('ż'.repeat(600))), 'ż'.repeat(512))
    assert.equal(await text(Buffer.from(`x${'ż'.repeat(600)}`)), `x${'ż'.repeat(511)}`)
    assert.equal(await text(Buffer.from(`xx${'👍'.repeat(600)}`)), `xx${'👍'.repeat(255)}`)
    assert.equal(await text(Buffer.from('a\0b\0')), 'ab')
    assert.equal(await text(Buffer.from([0x61, 0xff, 0xfe, 0x62])), 'a\ufffd\ufffdb')
    assert.equal(await text(Buffer.from([0x61, 0xf0, 0x9f, 0x91])), 'a')
    // A surrogate, encoded as UTF-8 does not allow.
    assert.equal(await text(Buffer.from([0xed, 0xa0, 0x80, 0x61])), '\ufffd\ufffd\ufffda')
    for (let index = 0; index < 20; index += 1) {
      const kept = await text(randomBytes(2000))
      assert.ok(kept.isWellFormed() && !kept.includes('\0') && kept.length <= 1024)
    }
    const packed = gzipSync('x'.repeat(1_000_000))
    const kept = await text(packed, 'content-encoding: gzip\r\n')
    assert.ok(kept.length <= 1024 && !kept.includes('xxx'))
  })

  test('in chunks, or that ends with the connection, is joined', async () => {
    const { url } = await serve(
      () => 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nHe\r\n3;a=b\r\nllo\r\n0\r\nx-trailer: 1\r\n\r\n',
    )
    assert.equal((await open(url)()).response, 'Hello')
    const untilClosed = await postTo(({ socket }) => void socket.end('HTTP/1.0 200 OK\r\n\r\nHello'))
    assert.deepEqual([untilClosed.status, untilClosed.response], [200, 'Hello'])
  })

  for (const [what, length] of [
    ['10 MB', `content-length: ${10 * 1024 * 1024}`],
    ['no end', 'transfer-encoding: chunked'],
  ] as const) {
    test(`of ${what} is read up to 64 KiB, then the connection is closed and the status counts`, async () => {
      let written = 0
      const chunk = Buffer.from(length.startsWith('content') ? 'y'.repeat(4096) : `1000\r\n${'y'.repeat(4096)}\r\n`)
      const result = await postTo(({ socket }) => {
        socket.write(`HTTP/1.1 202 Taken\r\n${length}\r\n\r\n`)
        const write = () => {
          while (!socket.destroyed && socket.write(chunk)) written += chunk.length
        }
        socket.on('drain', write)
        write()
        return undefined
      })
      assert.deepEqual([result.status, result.error, result.response], [202, undefined, 'y'.repeat(1024)])
      await until('the connection is closed', () => result.sockets[0]?.destroyed)
      // The kernel buffers the rest.
      assert.ok(written < 9 * 1024 * 1024, `${written} bytes`)
      assert.equal(result.requests.length, 1)
    })
  }

  test('of exactly 64 KiB keeps the connection', async () => {
    const { url, sockets } = await serve(() => `HTTP/1.1 200 OK\r\ncontent-length: 65536\r\n\r\n${'y'.repeat(65_536)}`)
    const post = open(url, { connections: 1 })
    for (let index = 0; index < 3; index += 1) assert.equal((await post()).response, 'y'.repeat(1024))
    assert.equal(sockets.length, 1)
  })

  test('whose body trickles is closed at the deadline, and its status counts', async () => {
    const result = await postTo(({ socket }) => {
      const trickle = setInterval(() => socket.write('.'), 20)
      socket.on('close', () => clearInterval(trickle))
      return 'HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n'
    }, 300)
    assert.equal(result.status, 200)
    assert.match(result.response, /^\.+$/)
    assert.ok(result.durationMs >= 295, `${result.durationMs} ms`)
    await until('the connection is closed', () => result.sockets[0]?.destroyed)
  })

  test('that ends early in its body counts by its status', async () => {
    for (const end of ['resetAndDestroy', 'destroy', 'end'] as const) {
      const result = await postTo(({ socket }) => {
        socket.write('HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nhalf', () => setTimeout(() => socket[end](), 50))
        return undefined
      })
      assert.deepEqual([result.status, result.error, result.response, result.requests.length], [500, undefined, 'half', 1], end)
    }
  })

  test('with an interim status such as 103 is skipped, up to a limit', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
    assert.deepEqual((await postTo(`${hints}HTTP/1.1 102 Processing\r\n\r\n${OK}`)).status, 200)
    const flood = await postTo(hints.repeat(20) + OK)
    assert.deepEqual([flood.status, flood.error], [undefined, 'too many responses with status 103'])
    const alone = await postTo(({ socket }) => void socket.end(hints))
    assert.deepEqual([alone.status, alone.error], [undefined, CLOSED])
  })

  for (const [what, response, error] of [
    ['100', `HTTP/1.1 100 Continue\r\n\r\n${OK}`, 'unexpected status 100 or 101'],
    ['101', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n', 'unexpected status 100 or 101'],
    ['a header of 20 KiB', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 'the response headers exceed 16 KiB'],
    ['2000 headers', `HTTP/1.1 200 OK\r\n${'x-header: y\r\n'.repeat(2000)}\r\n`, 'the response headers exceed 16 KiB'],
    ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n', 'the response is not HTTP'],
    ['HTTP/2', Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]), 'the response is not HTTP'],
    ['HTTP/0.9', '<html></html>', 'the response is not HTTP'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', 'the response is not HTTP'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok', 'the response is not HTTP'],
    ['a header with NUL', 'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n', 'the response is not HTTP'],
    ['random bytes', Buffer.from('fefdfcfb', 'hex'), 'the response is not HTTP'],
  ] as const) {
    test(`of ${what} fails with a readable error`, async () => {
      const result = await postTo(response)
      assert.deepEqual([result.status, result.error, result.response, result.isStopped], [undefined, error, '', false])
      assert.equal(result.requests.length, 1)
    })
  }
})

describe('a call without a response', () => {
  test('times out after silence or trickling headers, and closes the connection', async () => {
    const silence = await postTo(() => undefined, 200)
    assert.deepEqual([silence.status, silence.error, silence.isStopped], [undefined, 'no response within 0.2 s', false])
    const trickle = await postTo(({ socket }) => {
      const timer = setInterval(() => socket.write('x-header: y\r\n'), 20)
      socket.on('close', () => clearInterval(timer))
      return 'HTTP/1.1 200 OK\r\n'
    }, 200)
    assert.deepEqual([trickle.status, trickle.error], [undefined, 'no response within 0.2 s'])
    for (const { durationMs, sockets } of [silence, trickle]) {
      assert.ok(durationMs >= 195, `${durationMs} ms`)
      await until('the connection is closed', () => sockets[0]?.destroyed)
    }
  })

  test('times out also while it waits for a connection', async () => {
    const { url } = await serve(() => undefined)
    const post = open(url, { connections: 1, timeoutMs: 300 })
    for (const { error, durationMs } of await Promise.all([post(), post(), post()])) {
      assert.equal(error, 'no response within 0.3 s')
      assert.ok(durationMs >= 295, `${durationMs} ms`)
    }
  })

  test('times out also while it connects', async () => {
    const connector = createConnector({ hosts: 'any', lookup: () => new Promise(() => {}) })
    const attempted = await open('http://hooks.example.com', { connector, timeoutMs: 200 })()
    assert.deepEqual([attempted.status, attempted.error], [undefined, 'no response within 0.2 s'])
  })

  test('fails with a readable error if nothing listens or the name is unknown', async () => {
    const { url, server } = await serve(() => OK)
    server.close()
    assert.equal((await open(url)()).error, 'the connection was refused')
    const lookup = async () => ['127.0.0.2', '127.0.0.3'].map((address) => ({ address, family: 4 }))
    const connector = createConnector({ hosts: 'any', lookup })
    assert.equal((await open(url.replace('127.0.0.1', 'hooks.example.com'), { connector })()).error, 'the connection was refused')
    for (const [code, error] of [
      ['ENOTFOUND', 'the host name was not found'],
      ['EAI_AGAIN', 'the host name could not be resolved'],
      ['ESOMETHING', 'the call failed: ESOMETHING'],
    ]) {
      const connector = createConnector({
        hosts: 'any',
        lookup: () => Promise.reject(Object.assign(new Error('at 10.0.0.1'), { code })),
      })
      assert.equal((await open('http://hooks.example.com', { connector })()).error, error)
    }
  })

  test('never throws, also with invalid headers or URLs', async () => {
    const post = open((await serve(() => OK)).url)
    assert.equal((await post({ headers: { a: 'b\r\nc: d' } })).status, undefined)
    assert.equal((await post({ headers: { 'a b': 'c' } })).status, undefined)
    for (const url of ['', 'http://', 'ftp://a.example.com', 'nonsense']) assert.notEqual((await open(url)()).error, undefined)
  })
})

describe('a kept connection', () => {
  for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
    test(`that closes as it is used (${end}) is replaced by a new one, and the call repeated at once`, async () => {
      const { url, requests, sockets } = await serve(({ nth, socket }) => {
        if (nth === 1) return OK
        socket[end]()
        return undefined
      })
      const post = open(url, { connections: 4 })
      // All four are stale, so no other kept connection would work.
      await Promise.all(Array.from({ length: 4 }, () => post()))
      assert.equal(sockets.length, 4)
      const attempted = await post({ body: 'again' })
      assert.deepEqual([attempted.status, attempted.error], [200, undefined])
      assert.deepEqual(
        requests.slice(4).map(({ body, nth }) => [body, nth]),
        [
          ['again', 2],
          ['again', 1],
        ],
      )
    })
  }

  test('is replaced at once if no other connection is free, and not by another that may be stale', async () => {
    const waiting = new Map<string, Socket>()
    const respondTo = (...bodies: string[]) => {
      for (const body of bodies) waiting.get(body)?.write(OK)
    }
    const { url, requests } = await serve(({ body, nth, socket }) => {
      waiting.set(body, socket)
      if (body === '{}') return OK
      if (body === 'first' && nth > 1) socket.destroy()
      // It has the slot of the first one, and keeps it until the first one is repeated.
      if (body === 'third') respondTo('second')
      if (body === 'first') respondTo('first', 'third')
      return undefined
    })
    const post = open(url, { connections: 2 })
    await Promise.all([post(), post()])
    const attempts = await Promise.all(['first', 'second', 'third'].map((body) => post({ body })))
    assert.deepEqual(
      attempts.map(({ status }) => status),
      [200, 200, 200],
    )
    assert.deepEqual(
      requests.filter(({ body }) => body === 'first').map(({ nth }) => nth),
      [2, 1],
    )
  })

  test('is replaced only once per call', async () => {
    let isDown = false
    const { url, requests } = await serve(({ socket }) => (isDown ? void socket.resetAndDestroy() : OK))
    const post = open(url, { connections: 1 })
    await post()
    isDown = true
    assert.equal((await post()).error, CLOSED)
    assert.equal(requests.length, 3)
  })

  test('is not used again after the endpoint closed it', async () => {
    const { url, requests, sockets } = await serve(() => OK)
    const post = open(url, { connections: 1 })
    await post()
    for (const end of ['end', 'resetAndDestroy'] as const) {
      const socket = sockets.at(-1)
      socket?.[end]()
      await until('it is closed', () => socket?.closed)
      assert.equal((await post()).status, 200)
    }
    assert.deepEqual(
      requests.map(({ connection, nth }) => [connection, nth]),
      [
        [1, 1],
        [2, 1],
        [3, 1],
      ],
    )
  })

  test('that closes on its first call is not stale: the call fails and is not repeated', async () => {
    for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
      const result = await postTo(({ socket }) => void socket[end]())
      assert.deepEqual([result.error, result.requests.length], [CLOSED, 1], end)
    }
  })

  test('that closes within a response is not stale', async () => {
    const { url, requests } = await serve(({ nth, socket }) => (nth === 1 ? OK : void socket.end('HTTP/1.1 2')))
    const post = open(url, { connections: 1 })
    await post()
    assert.equal((await post()).status, undefined)
    assert.equal(requests.length, 2)
  })
})

describe('stopping', () => {
  test('aborts calls at once, unless a response has already arrived', async () => {
    const { url, requests, sockets } = await serve(({ body }) =>
      body === 'silence' ? undefined : 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome',
    )
    const post = open(url, { connections: 64, timeoutMs: 600_000 })
    const stopping = new AbortController()
    const warnings: Error[] = []
    const warn = (warning: Error) => warnings.push(warning)
    process.on('warning', warn)
    const silent = Array.from({ length: 40 }, () => post({ body: 'silence', signal: stopping.signal }))
    const begun = post({ body: 'begun', signal: stopping.signal })
    await until('all are there', () => requests.length === 41)
    // The response has arrived by then, since a later one has.
    await until('a response', async () => (await post({ body: 'begun', signal: AbortSignal.timeout(100) })).status)
    stopping.abort()
    for (const { status, error, isStopped } of await Promise.all(silent)) {
      assert.deepEqual([status, error, isStopped], [undefined, 'stopped before a response', true])
    }
    const { status, response, isStopped } = await begun
    assert.deepEqual([status, response, isStopped], [200, 'some', false])
    await until('the connections are closed', () => sockets.every(({ destroyed }) => destroyed))
    const { length } = requests
    assert.equal((await post({ signal: stopping.signal })).isStopped, true)
    assert.equal(requests.length, length)
    process.off('warning', warn)
    assert.deepEqual(warnings, [])
  })

  test('keeps a call that waits for a connection from being sent', async () => {
    const { url, requests, sockets } = await serve(({ body }) => (body === 'first' ? undefined : OK))
    const post = open(url, { connections: 1 })
    const first = post({ body: 'first' })
    const stopping = new AbortController()
    const others = Array.from({ length: 5 }, () => post({ body: 'other', signal: stopping.signal }))
    await until('the first has the connection', () => requests.length === 1)
    stopping.abort()
    for (const { isStopped } of await Promise.all(others)) assert.equal(isStopped, true)
    sockets[0]?.write(OK)
    assert.equal((await first).status, 200)
    assert.equal((await post({ body: 'later' })).status, 200)
    assert.deepEqual(
      requests.map(({ body }) => body),
      ['first', 'later'],
    )
  })

  test('by closing aborts the calls in progress and later ones', async () => {
    const { url, requests, sockets } = await serve(() => undefined)
    const destination = createDestination(url, { connections: 1, hosts: 'any' })
    const calls = [1, 2, 3].map(() => destination.post({ headers: {}, body: '{}' }))
    await until('one is there', () => requests.length === 1)
    await destination.close()
    calls.push(destination.post({ headers: {}, body: '{}' }))
    for (const { isStopped, status } of await Promise.all(calls)) assert.deepEqual([isStopped, status], [true, undefined])
    await until('the connection is closed', () => sockets[0]?.destroyed)
    await destination.close()
  })
})

type Certificate = { key: string; cert: string }

/** A self-signed X.509 certificate for a name. */
function certify(name: string, [from, to]: [string, string] = ['20200101000000Z', '21200101000000Z']): Certificate {
  const der = (tag: number, ...parts: (Buffer | string)[]) => {
    const content = Buffer.concat(parts.map((part) => Buffer.from(part as string)))
    const size = content.length
    const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255]
    return Buffer.concat([Buffer.from([tag, ...length]), content])
  }
  const SEQUENCE = 0x30
  const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
  const bits = (content: Buffer) => der(0x03, Buffer.from([0]), content)
  const extension = (hex: string, content: Buffer) => der(SEQUENCE, oid(hex), der(0x04, content))
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = der(SEQUENCE, oid('2a8648ce3d040302'))
  const subject = der(SEQUENCE, der(0x31, der(SEQUENCE, oid('550403'), der(0x0c, name))))
  const isAuthority = extension('551d13', der(SEQUENCE, der(0x01, Buffer.from([255]))))
  const names = extension('551d11', der(SEQUENCE, der(0x82, name)))
  const signed = der(
    SEQUENCE,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    subject,
    der(SEQUENCE, der(0x18, from), der(0x18, to)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, isAuthority, names)),
  )
  const cert = der(SEQUENCE, signed, ecdsaWithSha256, bits(sign('sha256', signed, privateKey))).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${cert.match(/.{1,64}/g)?.join('\n')}\n-----END CERTIFICATE-----\n`,
  }
}

describe('over TLS, to hosts of the public internet only', () => {
  const ours = certify('hooks.example.com')

  /** All names resolve to 127.0.0.2, which counts as public here. */
  async function secure(
    certificate: Certificate,
    { ca = certificate.cert, respond = () => OK }: { ca?: string; respond?: Responder } = {},
  ) {
    const endpoint = await serve(respond, { host: '127.0.0.2', tls: certificate })
    const connector = createConnector({
      hosts: 'public',
      isAllowed: (address) => address === '127.0.0.2' || isPublicAddress(address),
      lookup: async () => [{ address: '127.0.0.2', family: 4 }],
      tls: { ca },
    })
    return {
      ...endpoint,
      open: (host: string) => open(`https://${host}:${endpoint.port}/`, { connections: 1, hosts: 'public', connector }),
    }
  }

  test('sends the name in the TLS handshake and keeps the connection', async () => {
    const { open, sockets, requests, port } = await secure(ours)
    const post = open('hooks.example.com')
    for (let index = 0; index < 5; index += 1) assert.equal((await post()).status, 200)
    assert.equal(sockets.length, 1)
    assert.equal((sockets[0] as TLSSocket & { servername: string }).servername, 'hooks.example.com')
    assert.match(requests[0]?.head ?? '', new RegExp(`host: hooks.example.com:${port}`))
  })

  test('sends a name that ends with a dot without it', async () => {
    const { open, sockets } = await secure(ours)
    assert.equal((await open('hooks.example.com.')()).status, 200)
    assert.equal((sockets[0] as TLSSocket & { servername: string }).servername, 'hooks.example.com')
  })

  test('replaces a kept connection that closes as it is used', async () => {
    const { open, requests } = await secure(ours, { respond: ({ nth, socket }) => (nth === 1 ? OK : void socket.destroy()) })
    const post = open('hooks.example.com')
    await post()
    assert.equal((await post()).status, 200)
    assert.equal(requests.length, 3)
    const fresh = await secure(ours, { respond: ({ socket }) => void socket.destroy() })
    assert.equal((await fresh.open('hooks.example.com')()).error, CLOSED)
    assert.equal(fresh.requests.length, 1)
  })

  for (const [what, certificate, ca, error] of [
    ['of another name', certify('other.example.com'), undefined, 'the certificate is for another name'],
    ['that has expired', certify('hooks.example.com', ['20200101000000Z', '20210101000000Z']), undefined, 'the certificate has expired'],
    ['of the future', certify('hooks.example.com', ['20990101000000Z', '21000101000000Z']), undefined, 'the certificate is not valid yet'],
    ['of an unknown authority', certify('hooks.example.com'), ours.cert, 'the certificate is not from a trusted authority'],
  ] as const) {
    test(`rejects a certificate ${what} each time, and sends no request`, async () => {
      const { open, requests } = await secure(certificate, ca === undefined ? {} : { ca })
      const post = open('hooks.example.com')
      for (let index = 0; index < 3; index += 1) {
        const attempted = await post()
        assert.deepEqual([attempted.status, attempted.error], [undefined, error])
      }
      assert.deepEqual(requests, [])
    })
  }

  test('fails with a readable error if the endpoint does not speak TLS', async () => {
    const plain = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    plain.listen(0, '127.0.0.2')
    await once(plain, 'listening')
    after(() => plain.close())
    const connector = createConnector({
      hosts: 'public',
      isAllowed: () => true,
      lookup: async () => [{ address: '127.0.0.2', family: 4 }],
    })
    const { port } = plain.address() as { port: number }
    const { error } = await open(`https://hooks.example.com:${port}`, { hosts: 'public', connector })()
    assert.match(error ?? '', /^TLS failed: [a-z ]+$/)
  })

  test('rejects http and private hosts without a connection', async () => {
    const inside = await serve(() => OK, { tls: certify('localhost') })
    for (const [url, error] of [
      [`https://127.0.0.1:${inside.port}`, /^the URL must have a host of the public internet, unlike 127\.0\.0\.1;/],
      [`https://localhost:${inside.port}`, /unlike localhost;/],
      [`https://[::1]:${inside.port}`, /unlike \[::1\];/],
      [`http://hooks.example.com:${inside.port}`, /must begin with https/],
    ] as const) {
      const attempted = await open(url, { hosts: 'public' })()
      assert.match(attempted.error ?? '', error)
      assert.deepEqual([attempted.status, attempted.isStopped], [undefined, false])
    }
    const connector = createConnector({ hosts: 'public', lookup: async () => [{ address: '127.0.0.1', family: 4 }] })
    const attempted = await open(`https://hooks.example.com:${inside.port}`, { hosts: 'public', connector })()
    assert.equal(attempted.error, 'hooks.example.com resolves to an address that is not public')
    assert.equal(inside.sockets.length, 0)
  })
})
