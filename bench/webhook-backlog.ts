import { EVENTS_A_PAGE } from '../server/src/events/pages.ts'
import { claimDue } from '../server/src/webhooks/claim.ts'
import { median, percentile, printTable } from './measure.ts'
import type { Peer } from './processes.ts'
import { clear, createSubscriber, type Scene } from './webhook-scene.ts'

// What it takes to read the due events of a good endpoint, while another has a long backlog. Nothing is posted.

const LEASE = '00000000-0000-0000-0000-000000000001'
const CALLS = 200
const IDLE_CALLS = 10
const GOOD_DUE = 4
// The least that an endpoint gets.
const DEAD_ROOM = 2
// As many as a look goes ahead, for events of other messages than those under way.
const FEW = 256
const ROUNDS = 3
const MOST_RATIO = 1.5
// So little that it is within what two equal runs differ by.
const NOTHING_MS = 0.3
const CROWDS = [100, 1_000]
const CROWD_CALLS = 20
const NOWHERE = { port: 9 } as Peer

type Case = { what: string; dueAt: string | undefined; count: number; afterwards?: string; times: number[] }

/** Says whether the bar is kept: the median time is that beside a backlog that is just looked through. */
export async function measureBacklog(scene: Scene, backlog: number): Promise<boolean> {
  const good = await createSubscriber(scene.pool, NOWHERE, '/taken')
  const dead = await createSubscriber(scene.pool, NOWHERE, '/silent')
  const many = backlog.toLocaleString('en')
  const cases: Case[] = [
    { what: 'alone', dueAt: undefined, count: 0, times: [] },
    { what: `beside ${FEW} that are due`, dueAt: `now() - interval '1 hour'`, count: FEW, times: [] },
    { what: `beside ${many} that are due`, dueAt: `now() - interval '1 hour'`, count: backlog, times: [] },
    { what: `beside ${many} that are to be tried again later`, dueAt: `now() + interval '1 hour'`, count: backlog, times: [] },
    {
      what: `beside ${many} that were just put off`,
      dueAt: `now() - interval '1 hour'`,
      count: backlog,
      afterwards: `update webhook_deliveries set due_at = now() + interval '5 minutes', attempts = 1 where endpoint_id = $1`,
      times: [],
    },
  ]
  for (let round = 0; round < ROUNDS; round++) for (const one of cases) await measure(scene, { good, dead }, one)
  const isKept = print(cases)
  await measureCrowd(scene, good)
  return isKept
}

type Subscriber = { accountId: number; endpointId: number }
type Setting = { good: Subscriber; dead: Subscriber }

async function measure({ pool, bare }: Scene, { good, dead }: Setting, { dueAt, count, afterwards, times }: Case): Promise<void> {
  await clear(bare)
  const request = { lease: LEASE, room: new Map([[dead.endpointId, DEAD_ROOM]]), underWay: [] }
  // As a worker that has been idle: its statement is planned, once and for all, for tables that are empty.
  for (let call = 0; call < IDLE_CALLS; call++) await claimDue(pool, { lease: LEASE, room: new Map(), underWay: [] })
  await fill(bare, good, 1, GOOD_DUE, 'now()')
  if (dueAt !== undefined) await fill(bare, dead, GOOD_DUE + 1, count, dueAt)
  if (afterwards !== undefined) await bare.query(afterwards, [dead.endpointId])
  for (let call = 0; call < CALLS; call++) {
    const from = performance.now()
    const due = await claimDue(pool, request)
    times.push(performance.now() - from)
    const ofGood = due.filter(({ endpointId }) => endpointId === good.endpointId).length
    if (ofGood !== GOOD_DUE) throw new Error(`${ofGood} were read, not ${GOOD_DUE}`)
  }
}

/** Beside many endpoints, each of which has an event under way. Each costs a look, so that this has no bar: it may grow with their number, no faster. */
async function measureCrowd({ pool, bare }: Scene, good: Subscriber): Promise<void> {
  await clear(bare)
  await fill(bare, good, 1, GOOD_DUE, 'now()')
  for (const crowd of CROWDS) {
    const { rows } = await bare.query<{ endpointId: number }>(
      `with added as (
         insert into webhook_endpoints (account_id, url) select $1, 'http://127.0.0.1:9/' || $2 || '/' || n from generate_series(1, $2::int) as n returning id
       )
       insert into webhook_deliveries (endpoint_id, account_id, position, due_at) select id, $1, 1, now() from added returning endpoint_id as "endpointId"`,
      [good.accountId, crowd],
    )
    const underWay = rows.map(({ endpointId }) => ({ endpointId, subject: '1' }))
    const request = { lease: LEASE, room: new Map(rows.map(({ endpointId }) => [endpointId, 1])), underWay }
    const times: number[] = []
    for (let call = 0; call < CROWD_CALLS; call++) {
      const from = performance.now()
      await claimDue(pool, request)
      times.push(performance.now() - from)
    }
    process.stdout.write(
      `Beside ${crowd.toLocaleString('en')} endpoints with an event under way each it takes ${median(times).toFixed(1)} ms.\n`,
    )
    await bare.query('delete from webhook_deliveries where endpoint_id = any ($1::int[])', [rows.map(({ endpointId }) => endpointId)])
  }
}

async function fill(bare: Scene['bare'], { accountId, endpointId }: Subscriber, from: number, count: number, dueAt: string): Promise<void> {
  const values = [accountId, from, from + count - 1]
  await bare.query(
    `insert into log_pages (account_id, event_count, last_position, events)
     select $1, count(*), max(n), json_agg(json_build_array('message.sent', now(), null, null, null, null, null, null, '{}'::json) order by n)
     from generate_series($2::int, $3::int) as n group by (n - $2) / ${EVENTS_A_PAGE}`,
    values,
  )
  await bare.query(
    `insert into webhook_deliveries (endpoint_id, account_id, position, due_at)
     select $4, $1, n, ${dueAt} from generate_series($2::int, $3::int) as n`,
    [...values, endpointId],
  )
}

function print(cases: Case[]): boolean {
  const [, few] = cases as [Case, Case, ...Case[]]
  printTable(
    ['to read what is due of a good endpoint, ms', '50 %', '99 %', 'longest'],
    cases.map(({ what, times }) => [what, ...[median(times), percentile(times, 0.99), Math.max(...times)].map((ms) => ms.toFixed(2))]),
  )
  // What was just put off is passed over entry by entry until it is vacuumed: of 100,000, in 1 ms. No endpoint refuses that many in a minute.
  const barred = cases.filter(({ afterwards }) => afterwards === undefined)
  const isKept = barred.every(({ times }) => median(times) <= MOST_RATIO * median(few.times) + NOTHING_MS)
  process.stdout.write(`How long the backlog of another is ${isKept ? 'costs it nothing' : 'delays it, and must not'}.\n`)
  return isKept
}
