import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from './checkouts.ts'
import { CONNECTIONS, openConnections } from './http-load.ts'
import { inTurn, interleave, say } from './measure.ts'
import { openClient } from './postgres.ts'
import { type Cpu, eachMicroseconds } from './proc.ts'
import { messageRequest, type Service, startApart, untilRead, untilReceiptsAccepted } from './service.ts'
import { openWal, type RowsByTable, readRows, rowsOfEach, STATISTICS_DELAY_MS, type Wal } from './statistics.ts'

// Messages that go the whole way, from the request until they are READ, through a server with a process for each role and a PostgreSQL of its
// own: what each costs. Several servers take turns.

/** Counters are folded every second, and events are routed after their change: this work belongs to the messages. */
const SETTLE_MS = 1_500

/**
 * Messages before each round that do not count. A server that has waited for its turn has closed its connections, which it does after 10 s: new
 * ones start with empty caches and plan every statement anew. Which server has waited depends on the order of the turns alone.
 */
export const LEAD_IN = 500

/** `cpu`: µs for each message, by process. `wal`: for each message. */
export type Round = { perSecond: number; cpu: Cpu; wal: Wal }

/** Puts so many messages into the service. */
export type Start = (service: Service, count: number) => Promise<void>

export type Side = {
  label: string
  service: Service
  /** Starts so many messages and returns when all are READ. They are sent one by one, unless `start` says otherwise. */
  run: (count: number, start?: Start) => Promise<Round>
  /** What `work` costs. It returns how many messages that cost is divided by. */
  measure: (work: () => Promise<number>) => Promise<Omit<Round, 'perSecond'>>
  /** So many messages were started since a time in ms: returns when all of them are READ. */
  untilRead: (count: number, since: number) => Promise<void>
  rounds: Round[]
  /** Of each message of all rounds. */
  rows: RowsByTable
  readRows: () => Promise<RowsByTable>
  stop: () => Promise<void>
}

export type Plan = { warmUp: number; count: number; rounds: number }

/** `each`: so many processes of the API and of delivery. */
export async function openSide({ checkout, simulator, label }: Server, delayMs: number, each = 1): Promise<Side> {
  const service = await startApart({ checkout, simulator, delayMs, each })
  const wal = await openWal(service.databaseUrl)
  const { client, close } = await openClient(service.databaseUrl)
  let sent = 0
  async function measure(work: () => Promise<number>): Promise<Omit<Round, 'perSecond'>> {
    // Every round begins with a checkpoint, so that none begins in the middle of one: page images are many, and the same in all.
    await wal.checkpoint()
    const from = { cpu: service.cpu(), position: await wal.position() }
    const count = await work()
    const cpu = eachMicroseconds(from.cpu, service.cpu(), count)
    const { records, commits, bytes, pageBytes } = await wal.since(from.position)
    return { cpu, wal: { records: records / count, commits: commits / count, bytes: bytes / count, pageBytes: pageBytes / count } }
  }
  async function leadIn(): Promise<void> {
    const since = Date.now()
    await send(service, LEAD_IN)
    await untilAllRead(LEAD_IN, since)
    await sleep(SETTLE_MS)
  }
  async function run(count: number, start: Start = send): Promise<Round> {
    await leadIn()
    const since = Date.now()
    let perSecond = 0
    const costs = await measure(async () => {
      const startedAt = performance.now()
      await start(service, count)
      await untilReceiptsAccepted(service.simulator, sent + count)
      perSecond = (count * 1_000) / (performance.now() - startedAt)
      await sleep(SETTLE_MS)
      return count
    })
    await untilAllRead(count, since)
    return { perSecond, ...costs }
  }
  async function untilAllRead(count: number, since: number): Promise<void> {
    sent += count
    await untilReceiptsAccepted(service.simulator, sent)
    await untilRead(service.pool, count, since)
  }
  async function stop(): Promise<void> {
    for (const end of [wal.close, close, service.stop]) await end()
  }
  return { label, service, run, measure, untilRead: untilAllRead, rounds: [], rows: {}, readRows: () => readRows(client), stop }
}

/** `others`: what else takes its turn in each round. */
export async function takeTurns(part: string, sides: Side[], plan: Plan, others: (() => Promise<void>)[] = []): Promise<void> {
  const { warmUp, count, rounds } = plan
  for (const { label, run } of sides) {
    const { perSecond } = await run(warmUp)
    say(`${part}: ${labelled(label, `warmed up with ${warmUp.toLocaleString('en')} messages at ${perSecond.toFixed(0)} a second`)}`)
  }
  const before = await readAllRows(sides)
  await interleave(rounds, [
    ...others,
    ...sides.map((side) => async (round: number) => {
      const result = await side.run(count)
      side.rounds.push(result)
      const total = totalOf(result.cpu).toFixed(0)
      const said = `${result.perSecond.toFixed(0)} a second, ${total} µs of the service and PostgreSQL`
      say(`${part}, round ${round} of ${rounds}: ${labelled(side.label, said)}`)
    }),
  ])
  const after = await readAllRows(sides)
  for (const [index, side] of sides.entries()) {
    side.rows = rowsOfEach(before[index] as RowsByTable, after[index] as RowsByTable, (count + LEAD_IN) * rounds)
  }
}

async function readAllRows(sides: Side[]): Promise<RowsByTable[]> {
  await sleep(STATISTICS_DELAY_MS)
  return await Promise.all(sides.map((side) => side.readRows()))
}

/** Of all processes of the service and PostgreSQL, without the network. */
export function totalOf({ simulator, ...others }: Cpu): number {
  return Object.values(others).reduce((sum, each) => sum + each, 0)
}

export function labelled(label: string, what: string): string {
  return label === '' ? what : `${label}: ${what}`
}

/** As fast as they are accepted. */
export async function send({ url, account }: Pick<Service, 'url' | 'account'>, count: number): Promise<void> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  await inTurn(count, CONNECTIONS, () => connections.send(messageRequest(account)))
  connections.close()
}
