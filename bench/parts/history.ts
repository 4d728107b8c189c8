import { fillHistory } from '../data/messages.ts'
import { type Cost, reportCosts, showCost, TOTAL } from '../measure/costs.ts'
import { grouped, labelled, ratioAtMost } from '../measure/figures.ts'
import { type Side, sideOf, takeTurns } from '../measure/rounds.ts'
import { openWholeWay, type WholeWay } from '../measure/whole-way.ts'
import type { Bench } from '../part.ts'
import { openClient } from '../setup/postgres.ts'
import { planOf, warmUpAll } from './through.ts'

// Two installations of each server take turns: one with millions of READ messages in the table of this month, where new ones go too, and one
// without.

const TARGETS = { [TOTAL]: ratioAtMost(1.1) }

export async function measureHistory(bench: Bench): Promise<void> {
  const { count, rounds } = planOf(bench.quick)
  const messages = bench.quick ? 100_000 : 5_000_000
  const ways: WholeWay[] = []
  const pairs: { fresh: Side<Cost>; grown: Side<Cost> }[] = []
  for (const server of bench.servers) {
    const [without, beside] = [await openWholeWay(server, bench.delayMs), await openWholeWay(server, bench.delayMs)]
    const { databaseUrl, account } = beside.service
    const { client, close } = await openClient(databaseUrl)
    await fillHistory({ url: databaseUrl, client, account, say: bench.say }, messages)
    await close()
    ways.push(without, beside)
    pairs.push({
      fresh: sideOf(labelled(server.label, 'beside none'), () => without.run(count)),
      grown: sideOf(labelled(server.label, `beside ${grouped(messages)} messages`), () => beside.run(count)),
    })
  }
  await warmUpAll(bench, ways)
  const sides = pairs.flatMap(({ fresh, grown }) => [fresh, grown])
  await takeTurns(bench, sides, { rounds, show: showCost })
  for (const { fresh, grown } of pairs) reportCosts(bench, grown, { base: fresh, targets: grown === sides.at(-1) ? TARGETS : undefined })
}
