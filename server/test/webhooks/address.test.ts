import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer, isIP, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { Pool } from 'undici'
import { OperatorError } from '../../src/errors.ts'
import type { WebhookHosts } from '../../src/public-host.ts'
import { isPublicAddress } from '../../src/public-host.ts'
import { type ConnectorOptions, createConnector, NotPublic } from '../../src/webhooks/address.ts'
import { checkEndpointUrl } from '../../src/webhooks/url.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

// Hosts that are addresses, in every notation that a URL allows.
const PRIVATE_LITERALS = {
  loopback: `127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.0.0.1. 127.0.0.2 127.255.255.254 127.0.0.0x1
    １２７.0.0.1 127。0。0。1 ①②⑦.0.0.1 %31%32%37.0.0.1 1%32%37.1 [::1] [0:0:0:0:0:0:0:1] [0000::0001]`,
  'any address of this machine': '0.0.0.0 0 0x0 00 0.0.0.1 0.1.2.3 [::] [0::0]',
  'IPv4 in IPv6': `[::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1] [::ffff:169.254.169.254] [0:0:0:0:0:ffff:7f00:0001] [::127.0.0.1]
    [::7f00:1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::10.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::7f00:1] [2002:7f00:1::]
    [2002:a00:1::1] [2001:0:4136:e378:8000:63bf:80ff:fffe] [fe80::5efe:127.0.0.1]`,
  'private networks': `10.0.0.1 10.255.255.255 167772161 0xa000001 012.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 0xc0a80001 192.168.257
    100.64.0.1 100.127.255.255 169.254.0.1 [fc00::1] [fd12:3456:789a::1] [fe80::1] [fec0::1]`,
  'metadata services of clouds': `169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.170.2 100.100.100.200 192.0.0.192
    [fd00:ec2::254] [fe80::a9fe:a9fe]`,
  'no unicast of the internet': `192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255
    240.0.0.1 255.255.255.255 4294967295 [ff02::1] [ff0e::1] [2001:db8::1] [3fff::1] [100::1] [5f00::1] [4000::1]`,
}
const PRIVATE_NAMES = `localhost LOCALHOST localhost. hooks.localhost printer.local metadata.google.internal herald a..example
  -a.example.com example.com.. ${'a.'.repeat(127)}com ${'a'.repeat(64)}.example.com`
const words = (text: string) => text.split(/\s+/)

/** Listens on all addresses of this machine, or on one. Keeps the local address and the number of bytes of each connection. */
async function listen(host?: string) {
  const connections: { at: string; bytes: () => number }[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    let bytes = 0
    connections.push({ at: (socket.localAddress ?? '').replace('::ffff:', ''), bytes: () => bytes })
    socket.on('data', (chunk) => {
      bytes += chunk.length
      // It does not speak TLS.
      socket.end('HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n')
    })
  })
  server.listen(await freePort(), host)
  await once(server, 'listening')
  after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as { port: number }).port, connections }
}

type Answers = string[][]
/** A name that resolves to the next of these addresses at each look-up, and to the last ones from then on. */
function name(answers: Answers) {
  const lookups: string[] = []
  return {
    lookups,
    lookup: async (hostname: string): Promise<LookupAddress[]> => {
      lookups.push(hostname)
      return (answers[lookups.length - 1] ?? answers.at(-1) ?? []).map((address) => ({ address, family: isIP(address) }))
    },
  }
}

/** Two addresses of this machine count as public here. */
const isAllowed = (address: string) => ['127.0.0.2', '127.0.0.3'].includes(address) || isPublicAddress(address)

/** A call over a connection of its own. */
async function call(url: string, options: Partial<ConnectorOptions>): Promise<number | Error> {
  const { origin } = new URL(url)
  const pool = new Pool(origin, { connect: createConnector({ hosts: 'public', ...options }), connections: 1, headersTimeout: 60_000 })
  try {
    const { statusCode } = await pool.request({ method: 'POST', path: '/', body: '{}' })
    return statusCode
  } catch (error) {
    return error as Error
  } finally {
    await pool.destroy()
  }
}

function refused(url: string, hosts: WebhookHosts): string {
  let message = ''
  assert.throws(
    () => checkEndpointUrl(url, hosts),
    (error) => {
      if (error instanceof OperatorError) message = error.message
      return error instanceof OperatorError
    },
    url,
  )
  return message
}

describe('the URL of an endpoint', () => {
  test('is rejected if its host is not on the public internet, in any notation', () => {
    const hosts = words(`${Object.values(PRIVATE_LITERALS).join(' ')} ${PRIVATE_NAMES}`)
    assert.ok(hosts.length > 90)
    for (const host of hosts) {
      assert.match(
        refused(`https://${host}/hook`, 'public'),
        /must have a host of the public internet, unlike .*HERALD_WEBHOOK_ALLOW_PRIVATE=true allows it\.$/,
        host,
      )
      assert.match(
        refused(`https://${host}:8443`, 'public'),
        /must have a host of the public internet, unlike .*HERALD_WEBHOOK_ALLOW_PRIVATE=true allows it\.$/,
        host,
      )
    }
  })

  test('is rejected if it is not a URL, not https, has credentials or a fragment, or is too long', () => {
    for (const url of [
      '',
      'hooks',
      '//hooks.example.com',
      'https://',
      'https://[fe80::1%25eth0]/',
      'https://[::1',
      'https://256.256.256.256',
    ]) {
      assert.match(refused(url, 'public'), /must be a URL/, url)
    }
    for (const url of [
      'http://a.example.com',
      'ftp://a.example.com',
      'file:///etc/passwd',
      'gopher://a.example.com',
      'unix:/run/a',
      'data:,a',
    ]) {
      assert.match(refused(url, 'public'), /must begin with https:\/\/\.$/, url)
    }
    for (const url of ['https://user@a.example.com', 'https://user:secret@a.example.com', 'https://:secret@a.example.com']) {
      const message = refused(url, 'public')
      assert.match(message, /no user name and no password/, url)
      assert.doesNotMatch(message, /secret/)
    }
    // The host is not the one that a person sees.
    assert.match(refused('https://a.example.com@127.0.0.1/', 'public'), /no user name/)
    assert.match(refused('https://127.0.0.1\\@a.example.com/', 'public'), /a host of the public internet/)
    for (const url of ['https://a.example.com/#', 'https://a.example.com/hook#part'])
      assert.match(refused(url, 'public'), /no fragment/, url)
    assert.match(refused(`https://a.example.com/${'x'.repeat(2027)}`, 'public'), /at most 2048 characters/)
    // Too long only after percent-encoding.
    assert.match(refused(`https://a.example.com/${'ż'.repeat(400)}`, 'public'), /at most 2048 characters/)
  })

  test('is stored in normalized form', () => {
    for (const [url, kept] of [
      ['https://Hooks.Example.com', 'https://hooks.example.com/'],
      [' https://hooks.example.com:443/a/../b?c=%7B ', 'https://hooks.example.com/b?c=%7B'],
      ['https://hooks.example.com:8443/b', 'https://hooks.example.com:8443/b'],
      ['https://hooks.example.com./', 'https://hooks.example.com./'],
      ['https://bücher.example/ż', 'https://xn--bcher-kva.example/%C5%BC'],
      ['https://8.8.8.8/', 'https://8.8.8.8/'],
      ['https://134744072/', 'https://8.8.8.8/'],
      ['https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
      [`https://a.example.com/${'x'.repeat(2026)}`, `https://a.example.com/${'x'.repeat(2026)}`],
    ] as const) {
      assert.equal(checkEndpointUrl(url, 'public'), kept)
    }
  })

  test('may be private and http if that is allowed', () => {
    for (const url of ['http://127.0.0.1:3000/', 'http://localhost/', 'https://10.0.0.1/', 'http://[::1]/', 'http://herald:8080/hook']) {
      assert.equal(checkEndpointUrl(url, 'any'), url)
    }
    assert.match(refused('ftp://localhost', 'any'), /must begin with https:\/\/ or http:\/\/\.$/)
    assert.match(refused('http://user@localhost', 'any'), /no user name/)
    assert.match(refused('http://localhost/#', 'any'), /no fragment/)
    assert.match(refused('nonsense', 'any'), /must be a URL/)
  })

  test('may be on this machine, with http or https, if loopback is allowed; other private hosts are rejected', () => {
    for (const url of ['http://127.0.0.1:3000/', 'https://localhost:8443/', 'http://[::1]/', 'https://hooks.example.com/']) {
      assert.equal(checkEndpointUrl(url, 'loopback'), url)
    }
    for (const host of ['10.0.0.1', 'herald', 'a.localhost', '0.0.0.0', '[::ffff:10.0.0.1]']) {
      assert.match(refused(`http://${host}/`, 'loopback'), /HERALD_WEBHOOK_ALLOW_PRIVATE/, host)
    }
    for (const host of ['hooks.example.com', '127.example']) {
      assert.match(refused(`http://${host}/`, 'loopback'), /must begin with https:\/\/\.$/)
    }
    assert.match(refused('ftp://localhost/', 'loopback'), /must begin with https:\/\/ or http:\/\/\.$/)
  })
})

describe('connecting', () => {
  test('to a private address fails before a socket is created', async () => {
    const { port, connections } = await listen()
    let sockets = 0
    const count = () => {
      sockets += 1
    }
    subscribe('net.client.socket', count)
    for (const host of words(Object.values(PRIVATE_LITERALS).join(' '))) {
      for (const scheme of ['http', 'https']) {
        const result = await call(`${scheme}://${host}:${port}`, {})
        assert.ok(result instanceof NotPublic, `${scheme} ${host}: ${result}`)
      }
    }
    assert.equal(sockets, 0)
    // The count works.
    assert.equal(await call(`http://127.1:${port}`, { hosts: 'any' }), 204)
    unsubscribe('net.client.socket', count)
    assert.equal(sockets, 1)
    assert.equal(connections.length, 1)
  })

  test('fails if any address of the name is private, and does not reveal which', async () => {
    const { port, connections } = await listen()
    const literals = words(Object.values(PRIVATE_LITERALS).join(' ')).map((host) =>
      new URL(`https://${host}`).hostname.replace(/^\[|\]$/g, ''),
    )
    const answers: Answers = [
      ...literals.filter((address) => !isAllowed(address)).map((address) => [address]),
      ['fe80::1%lo'],
      ['::1%lo'],
      ['2606:4700::1111%lo'],
      ['127.0.0.2', '127.0.0.1'],
      ['127.0.0.1', '127.0.0.2'],
      ['127.0.0.2', '::1'],
      ['::1', '127.0.0.2'],
      ['8.8.8.8', '2606:4700::1111', '::ffff:127.0.0.1'],
      ['127.0.0.2', '127.0.0.3', '10.0.0.1'],
      ['localhost'],
      ['not an address'],
    ]
    for (const addresses of answers) {
      const result = await call(`http://hooks.example.com:${port}`, { ...name([addresses]), isAllowed })
      assert.ok(result instanceof NotPublic, `${addresses}: ${result}`)
      assert.equal(result.message, 'hooks.example.com resolves to an address that is not public')
    }
    assert.equal(connections.length, 0)
  })

  test('fails if the name has become private since the last connection', async () => {
    const { port, connections } = await listen()
    const hooks = name([['127.0.0.2'], ['127.0.0.1'], ['127.0.0.3'], ['::1']])
    const url = `http://hooks.example.com:${port}`
    assert.equal(await call(url, { ...hooks, isAllowed }), 204)
    assert.ok((await call(url, { ...hooks, isAllowed })) instanceof NotPublic)
    assert.equal(await call(url, { ...hooks, isAllowed }), 204)
    assert.ok((await call(url, { ...hooks, isAllowed })) instanceof NotPublic)
    assert.deepEqual(
      connections.map(({ at }) => at),
      ['127.0.0.2', '127.0.0.3'],
    )
  })

  test('uses the addresses of a single look-up, also if the name changes after it', async () => {
    const { port, connections } = await listen()
    for (const scheme of ['http', 'https']) {
      connections.length = 0
      const hooks = name([['127.0.0.2'], ['127.0.0.1'], ['127.0.0.1'], ['127.0.0.1']])
      // Over TLS the call fails, but the handshake shows the address.
      await call(`${scheme}://hooks.example.com:${port}`, { ...hooks, isAllowed })
      assert.deepEqual(hooks.lookups, ['hooks.example.com'])
      const [connection] = connections
      assert.deepEqual([connections.length, connection?.at], [1, '127.0.0.2'])
      await until('bytes arrive', () => connection?.bytes())
    }
  })

  test('tries all addresses of the look-up, and no others', async () => {
    const { port, connections } = await listen('127.0.0.2')
    const hooks = name([['127.0.0.3', '127.0.0.2'], ['127.0.0.1']])
    assert.equal(await call(`http://hooks.example.com:${port}`, { ...hooks, isAllowed }), 204)
    assert.deepEqual(hooks.lookups, ['hooks.example.com'])
    assert.equal(connections.length, 1)
    const nowhere = name([['127.0.0.3'], ['127.0.0.2']])
    const result = await call(`http://hooks.example.com:${port}`, { ...nowhere, isAllowed })
    assert.equal((result as NodeJS.ErrnoException).code, 'ECONNREFUSED')
    assert.deepEqual(nowhere.lookups, ['hooks.example.com'])
  })

  test('is aborted before the first byte if the connected address is not allowed', async () => {
    const { port, connections } = await listen()
    for (const scheme of ['http', 'https']) {
      let checks = 0
      const onlyOnce = () => ++checks === 1
      const result = await call(`${scheme}://hooks.example.com:${port}`, { ...name([['127.0.0.2']]), isAllowed: onlyOnce })
      assert.ok(result instanceof NotPublic, `${result}`)
      assert.equal(checks, 2)
    }
    await until('both are accepted', () => connections.length === 2)
    assert.deepEqual(
      connections.map(({ bytes }) => bytes()),
      [0, 0],
    )
  })

  test('shares a look-up among concurrent connections, and not with later ones', async () => {
    const { port, connections } = await listen()
    const lookups: PromiseWithResolvers<LookupAddress[]>[] = []
    const connect = createConnector({
      hosts: 'public',
      isAllowed,
      lookup: () => {
        const answer = Promise.withResolvers<LookupAddress[]>()
        lookups.push(answer)
        return answer.promise
      },
    })
    const connectMany = () =>
      Array.from({ length: 10 }, () => {
        const connected = Promise.withResolvers<Error | null>()
        connect({ hostname: 'hooks.example.com', protocol: 'http:', port: String(port) }, (error, socket) => {
          connected.resolve(error)
          socket?.destroy()
        })
        return connected.promise
      })
    for (const [address, isPublic] of [
      ['127.0.0.2', true],
      ['127.0.0.1', false],
      ['127.0.0.3', true],
    ] as const) {
      lookups.length = 0
      const connected = connectMany()
      await until('it is looked up', () => lookups.length > 0)
      lookups[0]?.resolve([{ address, family: 4 }])
      for (const error of await Promise.all(connected)) assert.equal(error instanceof NotPublic, !isPublic)
      assert.equal(lookups.length, 1)
    }
    await until('those to public addresses were accepted', () => connections.length === 20)
    assert.ok(connections.every(({ at }) => isAllowed(at)))
  })

  test('resolves localhost only if private addresses are allowed', async () => {
    const { port, connections } = await listen()
    assert.ok((await call(`http://localhost:${port}`, {})) instanceof Error)
    assert.equal(connections.length, 0)
    assert.equal(await call(`http://localhost:${port}`, { hosts: 'any' }), 204)
  })

  test('reaches this machine by its own name or address if loopback is allowed, and by no other name', async () => {
    const { port, connections } = await listen()
    for (const host of ['localhost', '127.0.0.1']) assert.equal(await call(`http://${host}:${port}`, { hosts: 'loopback' }), 204, host)
    const before = connections.length
    const lookup = async () => [{ address: '127.0.0.1', family: 4 }]
    assert.ok((await call(`http://hooks.example.com:${port}`, { hosts: 'loopback', lookup })) instanceof NotPublic)
    assert.ok((await call(`http://10.0.0.1:${port}`, { hosts: 'loopback' })) instanceof NotPublic)
    assert.equal(connections.length, before)
  })

  test('fails if the look-up fails or finds nothing', async () => {
    const failing = { lookup: () => Promise.reject(Object.assign(new Error('no'), { code: 'EAI_AGAIN' })) }
    assert.equal(((await call('https://hooks.example.com', failing)) as NodeJS.ErrnoException).code, 'EAI_AGAIN')
    assert.equal(((await call('https://hooks.example.com', name([[]]))) as NodeJS.ErrnoException).code, 'ENOTFOUND')
  })

  test('uses no proxy from the environment', async (t) => {
    const { port, connections } = await listen()
    const proxies = ['http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
    const before = [...proxies, 'NODE_USE_ENV_PROXY'].map((name) => [name, process.env[name]] as const)
    t.after(() => {
      // One by one: another object in the place of `process.env` would no longer change the environment, in the tests that follow.
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    })
    for (const name of proxies) process.env[name] = `http://127.0.0.1:${port}`
    process.env.NODE_USE_ENV_PROXY = '1'
    assert.equal(await call(`http://hooks.example.com:${port}`, { ...name([['127.0.0.2']]), isAllowed }), 204)
    assert.deepEqual(
      connections.map(({ at }) => at),
      ['127.0.0.2'],
    )
  })
})
