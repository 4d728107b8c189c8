import assert from 'node:assert/strict'
import { until } from '../../../test/support/until.ts'
import { during } from '../../schedule/faults.ts'
import { say, seconds } from '../../support/progress.ts'
import {
  burst,
  type Crash,
  DELIVERING,
  endLeases,
  nodeOf,
  repeatUntilAccepted,
  TIMEOUT_MS,
  unlessUnavailable,
  untilDelivered,
  whileKilled,
} from './support.ts'

// A process is killed the instant that a response has come. What was accepted is stored, and the other requests can be repeated.

// Within 8 ms.
const REQUESTS = 16
// On a busy machine, one commit may accept all of them, and all get their responses before the kill. Then the kill is repeated.
const MAX_KILLS = 50

/** `name`: an API node. Only the nodes of `delivering` deliver meanwhile. If it is one of them, it is also killed with messages leased. */
async function killAfterResponse(crash: Crash, name: string, delivering: string[]): Promise<void> {
  const node = nodeOf(crash, name)
  let [unanswered, leased] = [0, 0]
  const others = DELIVERING.filter((other) => !delivering.includes(other))
  await whileKilled(crash, others, async () => {
    const isProved = () => unanswered > 0 && (leased > 0 || !delivering.includes(name))
    for (let kills = 0; kills < (crash.isFull ? 200 : 5) || (kills < MAX_KILLS && !isProved()); kills++) {
      // The node sends at once only if it has delivered for this agent before, and if no other message waits.
      await repeatUntilAccepted(crash, await burst(crash, node.url, { count: 1 }))
      await untilDelivered(crash)
      await during(crash.faults, name, 'killed', async () => {
        const rest = await burst(crash, node.url, { count: REQUESTS }, () => void node.kill())
        await whileKilled(crash, [name], async () => {
          leased += await endLeases(crash, [name], ['queue'])
        })
        await repeatUntilAccepted(crash, rest)
        unanswered += rest.length
      })
    }
    await untilDelivered(crash)
  })
  say(`${name}: ${unanswered} requests had no response, ${leased} messages were leased to it at a kill`)
  assert.ok(unanswered > 0, 'no request was under way at a kill')
  if (delivering.includes(name)) assert.ok(leased > 0, 'no message was sent at once')
}

export async function killApi(crash: Crash): Promise<void> {
  await killAfterResponse(crash, 'api-1', ['delivery-1'])
}

export async function killApiThatDelivers(crash: Crash): Promise<void> {
  await killAfterResponse(crash, 'api-2', ['api-2'])
}

/** Every other time the API node is killed with the database. */
export async function killDatabase(crash: Crash): Promise<void> {
  const { database, faults, isFull } = crash
  const node = nodeOf(crash, 'api-1')
  for (let kills = 1; kills <= (isFull ? 20 : 2); kills++) {
    const isNodeKilled = kills % 2 === 0
    function killBoth(): void {
      void database.kill()
      if (isNodeKilled) void node.kill()
    }
    await during(faults, 'database', 'killed', async () => {
      const rest = await burst(crash, node.url, { count: 40, width: 4 }, killBoth)
      await until('the database is gone', () => !database.isRunning(), TIMEOUT_MS)
      await database.start()
      const startedAt = performance.now()
      if (!node.isRunning()) await during(faults, node.name, 'killed', () => node.start())
      await repeatUntilAccepted(crash, rest)
      const resumedMs = performance.now() - startedAt
      say(
        `the database${isNodeKilled ? ' and an API node were' : ' was'} killed: ${rest.length} requests had no response; accepted ${seconds(resumedMs)} after the start`,
      )
    })
    await until('leases can be ended', () => unlessUnavailable(() => endLeases(crash, DELIVERING, ['queue']).then(() => true)), TIMEOUT_MS)
  }
}
