import { once, type Report } from './lines.ts'
import { say, until } from './measure.ts'
import { openClient } from './postgres.ts'
import { AGENT, type Service, startTogether, untilAllRead } from './service.ts'

// A campaign, from the request that starts it until every message of it is READ, the roles in one process, the network beside it.

const GROUP = 1
const LOOK_EVERY_MS = 1_000

/** `through`: what messages sent one by one reached a second, of which each has to be accepted over HTTP. */
export async function measureCampaign(quick: boolean, report: Report, through: number): Promise<void> {
  const recipients = quick ? 2_000 : 100_000
  const service = await startTogether()
  await createGroup(service, recipients)
  const startedAt = performance.now()
  const campaignId = await start(service)
  await until(() => isRead(service, campaignId, recipients), LOOK_EVERY_MS)
  const seconds = (performance.now() - startedAt) / 1_000
  // Every message is looked at once more, and not only counted.
  await untilAllRead(service, recipients)
  await service.stop()
  const part = 'campaign'
  report({ part, what: `${recipients.toLocaleString('en')} recipients, from the start to all READ`, unit: 's', measured: once(seconds) })
  const limit = { what: 'one by one', ...once(through) }
  report({ part, what: 'of these each second', unit: 'a second', measured: once(recipients / seconds), limit })
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

async function start({ url, account: { authorization } }: Service): Promise<string> {
  const message = { inline: { type: 'MESSAGE', content: 'Our autumn sale has begun.' } }
  const answer = await fetch(`${url}/v1/campaigns`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', 'idempotency-key': 'campaign' },
    body: JSON.stringify({ name: 'Autumn sale', agentId: AGENT, segmentIds: [GROUP], message }),
  })
  const body = (await answer.json()) as { campaignId: string }
  if (answer.status !== 202) throw new Error(`the answer was ${answer.status}: ${JSON.stringify(body)}`)
  return body.campaignId
}

/** By its counters, whose cost does not grow with the messages. */
async function isRead({ pool }: Service, campaignId: string, recipients: number): Promise<boolean> {
  const { rows } = await pool.query<{ made: number; read: number }>(
    'select coalesce(sum(accepted), 0)::int as made, coalesce(sum(read), 0)::int as read from report_counts where campaign_id = $1',
    [campaignId],
  )
  const { made, read } = rows[0] as { made: number; read: number }
  say(`campaign: ${made.toLocaleString('en')} made, ${read.toLocaleString('en')} READ`)
  return read >= recipients
}
