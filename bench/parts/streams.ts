import { once as onceEmitted } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAccount } from '../../server/src/accounts/accounts.ts'
import { recordEvent } from '../../server/src/events/changes.ts'
import { createToken } from '../../server/src/people/tokens.ts'
import { atMost, byMedian } from '../measure/figures.ts'
import { collectAndLook } from '../measure/inspector.ts'
import type { Bench } from '../part.ts'
import { type Service, startApart } from '../setup/service.ts'

// What 200 open streams of the console cost a process of the API while nothing happens: half of them of operators, who get the health, in ten
// accounts. Then the time from the commit of an event until all streams of its account have it.

const STREAMS = 200
const OWNERS = 10
const MIB = 2 ** 20
/** Connections and prepared statements settle. */
const SETTLE_MS = 5_000

type Reader = { accountId: number; socket: ClientRequest; response: IncomingMessage; received: () => string }
type Idle = { api: number; postgres: number; heldMiB: number; residentMiB: number }

export async function measureStreams({ quick, report, say }: Bench): Promise<void> {
  const seconds = quick ? 5 : 30
  const service = await startApart({ inspect: true })
  const owners = await Promise.all(Array.from({ length: OWNERS }, (_, n) => createOwner(service, n)))
  const [without, open]: [Idle[], Idle[]] = [[], []]
  const arrivals: number[] = []
  // The first round opens connections and compiles functions, and does not count.
  for (let round = 0; round <= (quick ? 1 : 5); round++) {
    const before = await measureIdle(service, seconds)
    const readers = await openAll(service, owners)
    const idle = await measureIdle(service, seconds)
    const tookMs = await timeEvent(service, readers)
    for (const { socket } of readers) socket.destroy()
    say(`round ${round}: ${JSON.stringify({ before, idle, tookMs })}`)
    if (round === 0) continue
    without.push(before)
    open.push(idle)
    arrivals.push(tookMs)
  }
  const more = (of: keyof Idle) => byMedian(open.map((idle, round) => idle[of] - (without[round] as Idle)[of]))
  const limit = (of: keyof Idle) => ({ what: 'without streams', ...byMedian(without.map((idle) => idle[of])) })
  const target = atMost(50)
  report({ what: `${STREAMS} idle streams: more CPU a second, API`, unit: 'ms', measured: more('api'), limit: limit('api'), target })
  report({ what: `${STREAMS} idle streams: more CPU a second, postgres`, unit: 'ms', measured: more('postgres'), limit: limit('postgres') })
  report({ what: `${STREAMS} idle streams: more heap and buffers`, unit: 'MiB', measured: more('heldMiB'), limit: limit('heldMiB') })
  const resident = { measured: more('residentMiB'), limit: limit('residentMiB'), target: atMost(100) }
  report({ what: `${STREAMS} idle streams: more resident memory (RSS)`, unit: 'MiB', ...resident })
  report({ what: 'from the commit of an event until all streams of its account have it', unit: 'ms', measured: byMedian(arrivals) })
}

type Owner = { accountId: number; authorization: string }

async function createOwner({ pool }: Service, n: number): Promise<Owner> {
  const { accountId } = await createAccount(pool, `Streams ${n}`, ['rcs'])
  const role = n % 2 === 0 ? 'operator' : 'viewer'
  const expiresAt = new Date(Date.now() + 86_400_000)
  const { secret } = await createToken(pool, { name: `streams ${n}`, role, accountIds: role === 'viewer' ? [accountId] : [], expiresAt })
  return { accountId, authorization: `Bearer ${secret}` }
}

async function openAll({ url }: Service, owners: Owner[]): Promise<Reader[]> {
  const readers: Reader[] = []
  for (let n = 0; n < STREAMS; n++) {
    const { accountId, authorization } = owners[n % OWNERS] as Owner
    const socket = request(`${url}/admin/v1/stream?accountId=${accountId}`, { headers: { authorization }, agent: false }).end()
    const [response] = (await onceEmitted(socket, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`a stream was refused with ${response.statusCode}`)
    let received = ''
    response.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk
    })
    response.on('error', () => {})
    readers.push({ accountId, socket, response, received: () => received })
  }
  return readers
}

async function measureIdle({ cpu, processes }: Service, seconds: number): Promise<Idle> {
  await sleep(SETTLE_MS)
  const from = cpu()
  await sleep(seconds * 1_000)
  const to = cpu()
  const used = (name: string) => ((to[name] ?? Number.NaN) - (from[name] ?? Number.NaN)) / seconds
  const { held, resident } = await collectAndLook((processes.api as { inspector: string }).inspector)
  return { api: used('api'), postgres: used('postgres'), heldMiB: held / MIB, residentMiB: resident / MIB }
}

async function timeEvent({ pool }: Service, readers: Reader[]): Promise<number> {
  const { accountId } = readers[0] as Reader
  const name = `bench ${performance.now()}`
  await recordEvent(pool, { accountId, kind: 'webhook.test', data: { name } })
  const from = performance.now()
  const waiting = readers.filter((reader) => reader.accountId === accountId)
  while (waiting.some(({ received }) => !received().includes(name))) await sleep(1)
  return performance.now() - from
}
