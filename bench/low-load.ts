import { setTimeout as sleep } from 'node:timers/promises'
import type { Report } from './lines.ts'
import { interleave, say } from './measure.ts'
import { sendAtRandom } from './random-load.ts'
import { messageRequest } from './service.ts'
import { cpuOfEach, linesOf, processesOf, totalsOf, walOfEach } from './side-lines.ts'
import type { Measuring } from './through.ts'
import { labelled, openSide, type Side, totalOf } from './whole-way.ts'

// What a message costs where there are few: batches are small, and work that is done in vain counts. Messages come at random moments, with a
// process for each role at work. The cost is of a stretch in the middle of the load, so that it has no beginning and no end.

const PART = 'low-load'
const PER_SECOND = 150
const MAX_TOTAL_US = 4_000
/** Of load before and after what is measured. */
const LEAD_SECONDS = 2

export async function measureLowLoad({ quick, servers, delayMs }: Measuring, report: Report): Promise<void> {
  const { warmUp, seconds, rounds } = quick ? { warmUp: 500, seconds: 4, rounds: 3 } : { warmUp: 20_000, seconds: 20, rounds: 5 }
  const sides: Side[] = []
  for (const server of servers) sides.push(await openSide(server, delayMs))
  for (const side of sides) await side.run(warmUp)
  const turns = sides.map((side) => async (round: number) => {
    await sendFor(side, seconds)
    const total = totalOf(side.rounds.at(-1)?.cpu ?? {}).toFixed(0)
    say(`${PART}, round ${round} of ${rounds}: ${labelled(side.label, `${total} µs of the service and PostgreSQL for each message`)}`)
  })
  await interleave(rounds, turns)
  for (const side of sides) {
    const line = linesOf(PART, sides, side)
    const what = `at ${PER_SECOND} a second, CPU of each message`
    for (const name of processesOf(side)) report(line(`${what}: ${name}`, 'µs', cpuOfEach(name)))
    report(line(`${what}: service and PostgreSQL`, 'µs', totalsOf, { of: 'measured', most: MAX_TOTAL_US }))
    report(line(`at ${PER_SECOND} a second, WAL records of each message`, '', walOfEach('records')))
  }
  for (const { stop } of sides) await stop()
}

async function sendFor(side: Side, seconds: number): Promise<void> {
  const { service } = side
  const since = Date.now()
  let requested = 0
  function request(): string {
    requested += 1
    return messageRequest(service.account)
  }
  const sending = sendAtRandom({ url: service.url, request }, PER_SECOND, seconds + 2 * LEAD_SECONDS)
  await sleep(LEAD_SECONDS * 1_000)
  const costs = await side.measure(async () => {
    const before = requested
    await sleep(seconds * 1_000)
    return requested - before
  })
  await sending
  side.rounds.push({ perSecond: PER_SECOND, ...costs })
  await side.untilRead(requested, since)
}
