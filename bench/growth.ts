import { compareBacklogs, compareHistories } from './claims.ts'
import { emptyQueue, fillHistory, fillQueue, type Sending } from './history.ts'
import { saturate } from './http-load.ts'
import { byMedian, type Report } from './lines.ts'
import { say } from './measure.ts'
import { cloneDatabase, createDatabase, openDatabase, type Postgres, startPostgres } from './postgres.ts'
import { startHerald } from './processes.ts'
import { createSender, messageRequest } from './service.ts'

// Whether what is done for a message costs more where there is much of it: databases of one PostgreSQL, one new and one with millions of
// messages that have come to their end, in the month's table where new ones go too; one where next to nothing waits and one where a million
// do. Of a pair, the two take turns.

const ACCEPT_LEAST = 0.9
const CLAIM_MOST = 1.1
const BACKLOG_MOST = 1.2

export async function measureGrowth(quick: boolean, report: Report): Promise<void> {
  const sizes = quick ? { history: 100_000, backlog: 50_000 } : { history: 5_000_000, backlog: 1_000_000 }
  const postgres = await startPostgres()
  await compareBacklogs(report, await openBacklogs(postgres, sizes.backlog), sizes.backlog, { quick, most: BACKLOG_MOST })
  const histories = { small: await open(postgres, 'fresh'), large: await open(postgres, 'grown') }
  await fillHistory(histories.large, sizes.history)
  // Claims first: accepting leaves hundreds of thousands of messages in both.
  await compareHistories(report, histories, sizes.history, { quick, most: CLAIM_MOST })
  await compareAccepting(report, histories, sizes.history, quick)
}

/** With an account that sends. */
async function open(postgres: Postgres, name: string): Promise<Sending> {
  const database = await createDatabase(postgres, name)
  return { ...database, account: await createSender(database.pool) }
}

/** The same messages in both, of which all wait in one, and none in the other. */
async function openBacklogs(postgres: Postgres, backlog: number): Promise<{ small: Sending; large: Sending }> {
  const { account, ...first } = await open(postgres, 'many')
  await fillQueue({ account, ...first }, backlog)
  await first.close()
  const small = await cloneDatabase(postgres, 'many', 'few')
  await emptyQueue({ ...small, account })
  return { small: { ...small, account }, large: { ...(await openDatabase(postgres, 'many')), account } }
}

type Histories = { small: Sending; large: Sending }

async function compareAccepting(report: Report, { small, large }: Histories, history: number, quick: boolean): Promise<void> {
  const [seconds, rounds] = quick ? [1, 3] : [4, 9]
  const sides = await Promise.all([openSide(small, seconds), openSide(large, seconds)])
  const rates: [number[], number[]] = [[], []]
  for (let round = 0; round <= rounds; round++) {
    const order = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)
    for (const side of order) {
      const perSecond = await sides[side].run()
      // The first round is a warm-up.
      if (round > 0) rates[side].push(perSecond)
    }
    if (round === 0) continue
    const [before, after] = rates.map((rate) => rate.at(-1)?.toFixed(0))
    say(`growth, round ${round} of ${rounds}: accepted ${before} a second with no history, ${after} with it`)
  }
  for (const { stop } of sides) await stop()
  report({
    part: 'growth',
    what: `accepted, with ${history.toLocaleString('en')} messages of history`,
    unit: 'a second',
    measured: byMedian(rates[1]),
    limit: { what: 'without', ...byMedian(rates[0]) },
    target: { of: 'ratio', least: ACCEPT_LEAST },
  })
}

async function openSide({ url, account }: Sending, seconds: number) {
  const api = await startHerald(['--only', 'api'], { HERALD_DATABASE_URL: url })
  async function run(): Promise<number> {
    const { perSecond } = await saturate(
      api.url,
      seconds,
      () => messageRequest(account),
      () => ({}),
    )
    return perSecond
  }
  return { run, stop: api.stop }
}
