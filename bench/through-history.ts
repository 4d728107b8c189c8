import { fillHistory } from './history.ts'
import type { Figure, Line, Report } from './lines.ts'
import { openClient } from './postgres.ts'
import { cpuOfEach, processesOf, ratesOf, totalsOf, walOfEach } from './side-lines.ts'
import { type Measuring, planOf } from './through.ts'
import { labelled, openSide, type Side, takeTurns } from './whole-way.ts'

// Whether the whole way costs more beside millions of messages that are READ, in the month's table where new ones go too. Each server has two
// installations, one with this history and one without, which take turns.

const PART = 'history'
const MAX_RATIO = 1.1

export async function measureBesideHistory({ quick, servers, delayMs }: Measuring, report: Report): Promise<void> {
  const history = quick ? 100_000 : 5_000_000
  const beside = `beside ${history.toLocaleString('en')} messages`
  const pairs: { fresh: Side; grown: Side }[] = []
  for (const server of servers) {
    const fresh = await openSide({ ...server, label: labelled(server.label, 'beside none') }, delayMs)
    const grown = await openSide({ ...server, label: labelled(server.label, beside) }, delayMs)
    const { client, close } = await openClient(grown.service.databaseUrl)
    await fillHistory({ url: grown.service.databaseUrl, client, account: grown.service.account }, history)
    await close()
    pairs.push({ fresh, grown })
  }
  const sides = pairs.flatMap(({ fresh, grown }) => [fresh, grown])
  await takeTurns(PART, sides, planOf(quick))
  for (const pair of pairs) reportPair(report, pair, pair === pairs.at(-1))
  for (const { stop } of sides) await stop()
}

function reportPair(report: Report, { fresh, grown }: { fresh: Side; grown: Side }, isLast: boolean): void {
  function line(what: string, unit: string, read: (side: Side) => Figure, target?: Line['target']): void {
    const limit = { what: 'beside none', ...read(fresh) }
    report({ part: PART, what: `${grown.label}: ${what}`, unit, measured: read(grown), limit, ...(isLast && target && { target }) })
  }
  line('accepted to READ', 'a second', ratesOf)
  for (const name of processesOf(fresh)) line(`CPU of each message: ${name}`, 'µs', cpuOfEach(name))
  line('CPU of each message: service and PostgreSQL', 'µs', totalsOf, { of: 'ratio', most: MAX_RATIO })
  line('WAL of each message, without page images', 'bytes', walOfEach('bytes'))
  line('WAL of each message, page images', 'bytes', walOfEach('pageBytes'))
}
