import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { createServer, listeningUrl } from '../../src/http/server.ts'
import { createUnreadWatch, UNREAD_LIMITS, type UnreadLimits } from '../../src/http/unread.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { logger } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { call, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024
// A page is 1 MiB. The system keeps some of each response for a client that does not read, up to 4 MiB: only what comes after waits.
const PAGES = 12

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const accountOf = new Map<string, number>()
const [greedy, neighbour, foreign] = [await accountWithTemplates(), await accountWithTemplates(), await accountWithTemplates('語')]

/** An account whose page of templates has 1 MiB in UTF-8. */
async function accountWithTemplates(letter = 'x'): Promise<string> {
  const { accountId, authorization } = await createCaller(pool)
  const message = { type: 'MESSAGE' as const, content: letter.repeat(220_000 / Buffer.byteLength(letter)) }
  for (const name of ['a', 'b', 'c', 'd', 'e']) await createTemplate(pool, accountId, { name, basic: false, status: 'DRAFT', message })
  accountOf.set(authorization, accountId)
  return authorization
}

async function startService(limits: Partial<UnreadLimits>) {
  const env = { HERALD_DATABASE_URL, HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }
  return await startTestService(env, { roles: ['api'], unreadLimits: { ...UNREAD_LIMITS, ...limits } })
}

/** Requests pages on one connection and reads nothing. Such a client notices only when it reads that it was disconnected. */
function requestWithoutReading(url: string, authorization: string, pages = PAGES): { socket: Socket; wasReset: () => Promise<boolean> } {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).pause()
  const request = `GET /v1/templates HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`
  for (let page = 0; page < pages; page += 1) socket.write(request)
  async function wasReset(): Promise<boolean> {
    socket.resume()
    const [error] = await once(socket, 'error')
    return error.code === 'ECONNRESET'
  }
  return { socket, wasReset }
}

async function readPage(url: string, authorization: string): Promise<void> {
  const { status, body } = await call(`${url}/v1/templates`, { authorization })
  assert.deepEqual([status, body.items?.length], [200, 5], JSON.stringify(body).slice(0, 300))
}

const closedFor = (log: string) => [...log.matchAll(/"reason":"([^"]*)".*closed the connection/g)].map(([, reason]) => reason)

const accountsClosed = (log: string) =>
  [...log.matchAll(/"accountId":(\d+).*closed the connection/g)].map(([, accountId]) => Number(accountId))

describe('a client that does not read', () => {
  test('is disconnected after a time without progress', async () => {
    const { url, log } = await startService({ idleMs: 500 })
    const { wasReset } = requestWithoutReading(url, greedy)
    await until('its connection is closed', () => closedFor(log()).includes('it read nothing for too long'))
    assert.ok(await wasReset())
  })

  test('is disconnected when its account holds too many unsent bytes; other accounts are served', async () => {
    const { url, log } = await startService({ accountBytes: 6 * MIB })
    const clients = Array.from({ length: 4 }, () => requestWithoutReading(url, greedy))
    const other = requestWithoutReading(url, neighbour, 2)
    await until('one is closed', () => closedFor(log()).includes('its account holds too many unsent bytes'))
    await readPage(url, neighbour)
    await readPage(url, greedy)
    assert.equal(other.socket.destroyed, false)
    for (const { socket } of [...clients, other]) socket.destroy()
  })

  test('is disconnected by its unread bytes in UTF-8, also when its last request needed no account', async () => {
    const { url, log } = await startService({ accountBytes: 6 * MIB })
    const clients = Array.from({ length: 2 }, () => requestWithoutReading(url, foreign))
    for (const { socket } of clients) socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('one is closed', () => closedFor(log()).includes('its account holds too many unsent bytes'))
    for (const { socket } of clients) socket.destroy()
  })

  test('is disconnected when all accounts together hold too many unsent bytes, first for the account with the most', async () => {
    const { url, log } = await startService({ processBytes: 12 * MIB })
    // This client stalls first, but it holds less.
    const other = requestWithoutReading(url, neighbour, 6)
    await readPage(url, neighbour)
    const clients = [greedy, greedy].map((authorization) => requestWithoutReading(url, authorization))
    await until('one is closed', () => closedFor(log()).includes('the process holds too many unsent bytes'))
    await readPage(url, neighbour)
    assert.deepEqual(new Set(accountsClosed(log())), new Set([accountOf.get(greedy)]))
    for (const { socket } of [...clients, other]) socket.destroy()
  })
})

test('a client that reads slowly gets all of a response that takes much longer than a client may stall', async () => {
  const app = createServer(loadConfig({}), logger)
  const { watch, stop } = createUnreadWatch(logger, { ...UNREAD_LIMITS, idleMs: 5_000, accountBytes: 64 * MIB })
  watch(app)
  const [length, response] = [40 * MIB, Buffer.alloc(40 * MIB)]
  app.get('/', async () => response)
  await app.listen({ host: '127.0.0.1', port: 0 })
  after(stop)
  after(() => app.close())

  const { hostname, port } = new URL(listeningUrl(app))
  const socket = connect(Number(port), hostname)
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const startedAt = performance.now()
  let received = 0
  socket.on('data', (chunk) => {
    received += chunk.length
    const aheadMs = (received / length) * 12_000 - (performance.now() - startedAt)
    if (aheadMs > 10) setTimeout(() => socket.resume(), aheadMs)
    if (aheadMs > 10) socket.pause()
  })
  await once(socket, 'close')
  assert.ok(received > length, `${received} bytes`)
})
