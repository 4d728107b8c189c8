import { takeDue } from '../server/src/webhooks/take.ts'
import type { Peer } from './processes.ts'
import { clear, createSubscriber, median, percentile, printTable, type Scene } from './webhook-scene.ts'

// What it takes to read the due events of a good endpoint, while another has a long backlog. Nothing is posted.

const LEASE = '00000000-0000-0000-0000-000000000001'
const CALLS = 200
const ROUNDS = 3
const MOST_RATIO = 1.5
// So little that it is within what two equal runs differ by.
const NOTHING_MS = 0.3
const NOWHERE = { port: 9 } as Peer

type Case = { what: string; dueAt: string | undefined; afterwards?: string; times: number[] }

/** Says whether the bar is kept: the median time is that without a backlog. */
export async function measureBacklog(scene: Scene, backlog: number): Promise<boolean> {
  const good = await createSubscriber(scene.pool, NOWHERE, '/taken')
  const dead = await createSubscriber(scene.pool, NOWHERE, '/silent')
  const many = backlog.toLocaleString('en')
  const cases: Case[] = [
    { what: 'alone', dueAt: undefined, times: [] },
    { what: `beside ${many} that are due`, dueAt: `now() - interval '1 hour'`, times: [] },
    { what: `beside ${many} that are to be tried again later`, dueAt: `now() + interval '1 hour'`, times: [] },
    {
      what: `beside ${many} that were just put off`,
      dueAt: `now() - interval '1 hour'`,
      afterwards: `update webhook_deliveries set due_at = now() + interval '5 minutes', attempts = 1 where endpoint_id = $1`,
      times: [],
    },
  ]
  for (let round = 0; round < ROUNDS; round++) for (const one of cases) await measure(scene, { good, dead, backlog }, one)
  return print(cases)
}

type Subscriber = { accountId: number; endpointId: number }
type Setting = { good: Subscriber; dead: Subscriber; backlog: number }

async function measure({ pool, bare }: Scene, { good, dead, backlog }: Setting, { dueAt, afterwards, times }: Case): Promise<void> {
  await clear(bare)
  await fill(bare, good, 1, 4, 'now()')
  if (dueAt !== undefined) await fill(bare, dead, 5, backlog, dueAt)
  if (afterwards !== undefined) await bare.query(afterwards, [dead.endpointId])
  // The dead one has its two calls under way, the first that were due, and no room for more.
  const underWay = [5, 6].map((position) => ({ endpointId: dead.endpointId, position }))
  const request = { lease: LEASE, room: new Map([[dead.endpointId, 0]]), underWay }
  for (let call = 0; call < CALLS; call++) {
    const from = performance.now()
    const due = await takeDue(pool, request)
    times.push(performance.now() - from)
    if (due.length !== 4) throw new Error(`${due.length} were read, not 4`)
  }
}

async function fill(bare: Scene['bare'], { accountId, endpointId }: Subscriber, from: number, count: number, dueAt: string): Promise<void> {
  const values = [accountId, from, from + count - 1]
  await bare.query(
    `insert into events (account_id, position, event_id, kind, occurred_at, data)
     select $1, n, uuid_v7(), 'message.sent', now(), '{}' from generate_series($2::int, $3::int) as n`,
    values,
  )
  await bare.query(
    `insert into webhook_deliveries (endpoint_id, account_id, position, due_at)
     select $4, $1, n, ${dueAt} from generate_series($2::int, $3::int) as n`,
    [...values, endpointId],
  )
}

function print(cases: Case[]): boolean {
  const [alone] = cases as [Case, ...Case[]]
  printTable(
    ['to read what is due of a good endpoint, ms', '50 %', '99 %', 'longest'],
    cases.map(({ what, times }) => [what, ...[median(times), percentile(times, 0.99), Math.max(...times)].map((ms) => ms.toFixed(2))]),
  )
  const isKept = cases.every(({ times }) => median(times) <= MOST_RATIO * median(alone.times) + NOTHING_MS)
  process.stdout.write(`The backlog of another ${isKept ? 'costs it nothing' : 'delays it, and must not'}.\n`)
  return isKept
}
