import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { UNREAD_LIMITS, type UnreadLimits } from '../../src/http/unread.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { createTestDatabase } from '../support/database.ts'
import { call, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024
// A page is 1 MiB. The system keeps some of each response for a client that does not read, up to 4 MiB: only what comes after waits.
const PAGES = 12

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const [greedy, neighbour] = [await accountWithTemplates(), await accountWithTemplates()]

async function accountWithTemplates(): Promise<string> {
  const { accountId, authorization } = await createCaller(pool)
  const message = { type: 'MESSAGE' as const, content: 'x'.repeat(220_000) }
  for (const name of ['a', 'b', 'c', 'd', 'e']) await createTemplate(pool, accountId, { name, basic: false, status: 'DRAFT', message })
  return authorization
}

async function startService(limits: Partial<UnreadLimits>) {
  const env = { HERALD_DATABASE_URL, HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }
  return await startTestService(env, { roles: ['api'], unreadLimits: { ...UNREAD_LIMITS, ...limits } })
}

/** Asks for pages on one connection, and reads nothing. A client that does not read learns only when it reads that it was disconnected. */
function askAndNeverRead(url: string, authorization: string, pages = PAGES): { socket: Socket; wasReset: () => Promise<boolean> } {
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
  assert.deepEqual([status, body.items.length], [200, 5])
}

const closedFor = (log: string) => [...log.matchAll(/"reason":"([^"]*)".*its connection is closed/g)].map(([, reason]) => reason)

describe('a client that asks and does not read', () => {
  test('is disconnected after a time without progress', async () => {
    const { url, log } = await startService({ idleMs: 500 })
    const { wasReset } = askAndNeverRead(url, greedy)
    await until('its connection is closed', () => closedFor(log()).includes('it took nothing for too long'))
    assert.ok(await wasReset())
  })

  test('is disconnected when its account holds too many unsent bytes; other accounts are served on', async () => {
    const { url, log } = await startService({ accountBytes: 6 * MIB })
    const clients = Array.from({ length: 4 }, () => askAndNeverRead(url, greedy))
    const other = askAndNeverRead(url, neighbour, 2)
    await until('one is closed', () => closedFor(log()).includes('its account holds too many unsent bytes'))
    await readPage(url, neighbour)
    await readPage(url, greedy)
    assert.equal(other.socket.destroyed, false)
    for (const { socket } of [...clients, other]) socket.destroy()
  })

  test('is disconnected when all accounts together hold too many unsent bytes', async () => {
    const { url, log } = await startService({ processBytes: 6 * MIB })
    const clients = [greedy, greedy, neighbour].map((authorization) => askAndNeverRead(url, authorization))
    await until('one is closed', () => closedFor(log()).includes('the process holds too many unsent bytes'))
    await readPage(url, neighbour)
    for (const { socket } of clients) socket.destroy()
  })
})

test('a client that reads slowly gets all of its pages', async () => {
  const { url } = await startService({ idleMs: 2_000 })
  const { socket } = askAndNeverRead(url, greedy, 3)
  let received = 0
  // Every time the service looks, it has taken some.
  const timer = setInterval(() => {
    received += (socket.read() as Buffer | null)?.length ?? 0
  }, 100)
  await until('three pages have arrived', () => received > 3 * 1_000_000)
  clearInterval(timer)
  socket.destroy()
})
