import { randomUUID } from 'node:crypto'
import { AGENT } from './commands.ts'
import type { Figure, Report } from './lines.ts'
import { interleave, say } from './measure.ts'
import { openClient } from './postgres.ts'
import type { Service } from './service.ts'
import { cpuOfEach, type Measured, processesOf, ratesOf, totalsOf, walOfEach } from './side-lines.ts'
import type { Measuring } from './through.ts'
import { labelled, openSide, type Round, type Side, totalOf } from './whole-way.ts'

// A campaign, from the request that starts it until every message of it is READ, in turns with as many messages that are sent one by one: it
// should not cost more, since nothing of it has to be accepted over HTTP.

const PART = 'campaign'
const GROUP = 1
const MAX_RATIO = 1

/** `single` and `campaign`: the rounds of each. */
type Compared = { side: Side; single: Round[]; campaign: Round[] }

export async function measureCampaign({ quick, servers, delayMs }: Measuring, report: Report): Promise<void> {
  const { warmUp, count, rounds } = quick ? { warmUp: 500, count: 1_000, rounds: 3 } : { warmUp: 30_000, count: 20_000, rounds: 3 }
  const all: Compared[] = []
  for (const server of servers) all.push({ side: await openSide(server, delayMs), single: [], campaign: [] })
  for (const { side } of all) {
    await createGroup(side.service, count)
    await side.run(warmUp)
    await side.run(count, startCampaign)
  }
  const turns = all.flatMap(({ side, single, campaign }) => [
    async (round: number) => {
      single.push(await side.run(count))
      sayRound(`round ${round} of ${rounds}`, labelled(side.label, 'one by one'), single)
    },
    async (round: number) => {
      campaign.push(await side.run(count, startCampaign))
      sayRound(`round ${round} of ${rounds}`, labelled(side.label, 'campaign'), campaign)
    },
  ])
  await interleave(rounds, turns)
  for (const compared of all) reportPair(report, compared, { count, isLast: compared === all.at(-1) })
  for (const { side } of all) await side.stop()
}

function sayRound(round: string, what: string, rounds: Round[]): void {
  const { cpu, perSecond } = rounds.at(-1) as Round
  say(`${PART}, ${round}: ${what}: ${perSecond.toFixed(0)} a second, ${totalOf(cpu).toFixed(0)} µs of the service and PostgreSQL`)
}

function reportPair(report: Report, { side, single, campaign }: Compared, { count, isLast }: { count: number; isLast: boolean }): void {
  const of = { single: { label: '', rounds: single }, campaign: { label: '', rounds: campaign } }
  function line(what: string, unit: string, read: (of: Measured) => Figure, most?: number): void {
    const limit = { what: 'one by one', ...read(of.single) }
    const target = isLast && most !== undefined ? { target: { of: 'ratio' as const, most } } : {}
    report({ part: PART, what: labelled(side.label, what), unit, measured: read(of.campaign), limit, ...target })
  }
  line(`${count.toLocaleString('en')} recipients, from the start to all READ`, 'a second', ratesOf)
  for (const name of processesOf(of.campaign)) line(`CPU of each message: ${name}`, 'µs', cpuOfEach(name))
  line('CPU of each message: service and PostgreSQL', 'µs', totalsOf, MAX_RATIO)
  line('WAL records of each message', '', walOfEach('records'))
  line('WAL of each message, without page images', 'bytes', walOfEach('bytes'))
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
