import { setTimeout as sleep } from 'node:timers/promises'
import { sendAtRandom } from '../load/requests.ts'
import { type Cost, reportCosts, showCost, TOTAL } from '../measure/costs.ts'
import { atMost, labelled } from '../measure/figures.ts'
import { type Side, sideOf, takeTurns } from '../measure/rounds.ts'
import { openWholeWay, type WholeWay } from '../measure/whole-way.ts'
import type { Bench } from '../part.ts'
import { messageRequest } from '../setup/accounts.ts'

// At few messages a second batches are small, and work without a result counts. Messages come at random moments, with a process for each role.
// What counts is a stretch in the middle of the load, without its beginning and its end.

const PER_SECOND = 150
const TARGETS = { [TOTAL]: atMost(4_000) }
/** Load before and after what is measured. */
const LEAD_SECONDS = 2

export async function measureLowLoad(bench: Bench): Promise<void> {
  const { warmUp, seconds, rounds } = bench.quick ? { warmUp: 500, seconds: 4, rounds: 3 } : { warmUp: 20_000, seconds: 20, rounds: 5 }
  const sides: Side<Cost>[] = []
  for (const server of bench.servers) {
    const way = await openWholeWay(server, bench.delayMs)
    await way.run(warmUp)
    sides.push(sideOf(labelled(server.label, `at ${PER_SECOND} a second`), () => sendFor(way, seconds)))
  }
  await takeTurns(bench, sides, { rounds, show: showCost })
  for (const side of sides) {
    const targets = side === sides.at(-1) ? TARGETS : undefined
    reportCosts(bench, side, { base: side === sides[0] ? undefined : sides[0], targets })
  }
}

async function sendFor({ service, measure, untilRead }: WholeWay, seconds: number): Promise<Cost> {
  const since = Date.now()
  let requested = 0
  function request(): string {
    requested += 1
    return messageRequest(service.account)
  }
  const sending = sendAtRandom({ url: service.url, request }, PER_SECOND, seconds + 2 * LEAD_SECONDS)
  await sleep(LEAD_SECONDS * 1_000)
  const cost = await measure(async () => {
    const before = requested
    await sleep(seconds * 1_000)
    return requested - before
  })
  await sending
  await untilRead(requested, since)
  return cost
}
