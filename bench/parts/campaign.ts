import { randomUUID } from 'node:crypto'
import { type Cost, reportCosts, showCost, TOTAL } from '../measure/costs.ts'
import { grouped, labelled, ratioAtMost } from '../measure/figures.ts'
import { type Side, sideOf, takeTurns } from '../measure/rounds.ts'
import { openWholeWay } from '../measure/whole-way.ts'
import type { Bench } from '../part.ts'
import { AGENT } from '../setup/accounts.ts'
import { openClient } from '../setup/postgres.ts'
import type { Service } from '../setup/service.ts'

// A campaign, from the request that starts it until all its messages are READ, in turns with as many messages that are sent one by one. It
// should not cost more, since its messages are not accepted over HTTP.

const GROUP = 1
const TARGETS = { [TOTAL]: ratioAtMost(1) }

export async function measureCampaign(bench: Bench): Promise<void> {
  const { warmUp, count, rounds } = bench.quick ? { warmUp: 500, count: 1_000, rounds: 3 } : { warmUp: 30_000, count: 20_000, rounds: 3 }
  const pairs: { single: Side<Cost>; whole: Side<Cost> }[] = []
  for (const server of bench.servers) {
    const way = await openWholeWay(server, bench.delayMs)
    const single = sideOf(labelled(server.label, 'one by one'), () => way.run(count))
    const whole = sideOf(labelled(server.label, `${grouped(count)} recipients`), () => way.run(count, startCampaign))
    await createGroup(way.service, count)
    await way.run(warmUp)
    await whole.run()
    pairs.push({ single, whole })
  }
  const sides = pairs.flatMap(({ single, whole }) => [single, whole])
  await takeTurns(bench, sides, { rounds, show: showCost })
  for (const { single, whole } of pairs) reportCosts(bench, whole, { base: single, targets: whole === sides.at(-1) ? TARGETS : undefined })
}

async function createGroup({ databaseUrl, account: { accountId } }: Service, recipients: number): Promise<void> {
  const { client, close } = await openClient(databaseUrl)
  await client.query('insert into groups (account_id, number, members) values ($1, $2, $3)', [accountId, GROUP, recipients])
  await client.query(
    `insert into group_members (account_id, group_number, phone)
     select $1, $2, '+4850' || lpad(n::text, 6, '0') || '10' from generate_series(1, $3::int) as n`,
    [accountId, GROUP, recipients],
  )
  await client.query('vacuum analyze group_members')
  await close()
}

/** To the whole group. */
async function startCampaign({ url, account: { authorization } }: Service): Promise<void> {
  const message = { inline: { type: 'MESSAGE', content: 'Our autumn sale has begun.' } }
  const response = await fetch(`${url}/v1/campaigns`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify({ name: 'Autumn sale', agentId: AGENT, segmentIds: [GROUP], message }),
  })
  const body = await response.text()
  if (response.status !== 202) throw new Error(`the campaign was refused with ${response.status}: ${body}`)
}
