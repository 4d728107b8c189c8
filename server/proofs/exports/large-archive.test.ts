import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import pg from 'pg'
import { request } from 'undici'
import { createTestDatabase } from '../../test/support/database.ts'
import { startHerald } from '../../test/support/process.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { isFull, MOST_OF_ZIP32, mib, missingProgram, readArchive, say, temporaryDirectory, writeDown } from './support.ts'

const MOST_LINES_OF_OLD_SHEETS = 65_535
const MESSAGES = 70_000
const ACTIONS = isFull ? 1_500_000 : 70_000
const TEXT_LENGTH = isFull ? 3_000 : 100
const CHUNK = 50_000

describe('the archive of a large campaign', { skip: missingProgram() }, () => {
  const larger = isFull ? ', and with over 4 GiB in one of its files,' : ''
  test(`with over ${MOST_LINES_OF_OLD_SHEETS.toLocaleString('en')} lines${larger} is whole to unzip and to Python, and holds what the database does`, async () => {
    const { url, pool } = await createTestDatabase({ uncounted: 'the rows are written by hand, for the sake of their number' })
    const caller = await createCaller(pool)
    const agentId = await createAssignedAgent(pool, caller.accountId)
    const client = new pg.Client(url)
    await client.connect()
    const campaignId = await writeCampaign(client, caller.accountId, agentId)

    const herald = await startHerald({ HERALD_DATABASE_URL: url })
    const path = join(temporaryDirectory(), 'campaign.zip')
    const answer = await request(`${herald.url}/v1/reports/campaigns/${campaignId}/all-data-export`, {
      headers: { authorization: caller.authorization },
    })
    assert.equal(answer.statusCode, 200)
    assert.equal(answer.headers['content-type'], 'application/zip')
    say(`the archive: ${mib(await writeDown('the archive', answer.body, path))}`)

    const files = await readArchive(path)
    assert.deepEqual([...files.keys()], ['summary.csv', 'aggregations.csv', 'recipients.csv', 'actions.csv'])
    for (const [name, { rows, lines, lineFeeds }] of files) {
      // One line a record, and each ends as RFC 4180 has it.
      assert.deepEqual({ name, lines, lineFeeds }, { name, lines: rows + 1, lineFeeds: rows + 1 })
    }
    const { rows } = await client.query(
      `select (select count(*)::int from messages where campaign_id = $1) as messages, count(*)::int as actions,
         sum(length(text))::float8 as text, sum(length(recipient))::float8 as recipient
       from recipient_actions where campaign_id = $1`,
      [campaignId],
    )
    await client.end()
    const [recipients, actions] = [files.get('recipients.csv'), files.get('actions.csv')]
    const found = { messages: recipients?.rows, actions: actions?.rows, text: actions?.lengths.text, recipient: actions?.lengths.recipient }
    assert.deepEqual(found, rows[0])
    assert.ok(found.messages === MESSAGES && MESSAGES > MOST_LINES_OF_OLD_SHEETS && ACTIONS > MOST_LINES_OF_OLD_SHEETS)
    if (isFull) assert.ok((actions?.size ?? 0) > MOST_OF_ZIP32)
  })
})

type Campaign = { id: string; contentId: string; prefix: string }

/** Everybody has read their message, and wrote something long, again and again. */
async function writeCampaign(client: pg.Client, accountId: number, agentId: string): Promise<string> {
  const { rows } = await client.query<Campaign>(
    `with content as (
       insert into contents (account_id, basic, message) values ($1, false, '{"type":"MESSAGE","content":"Write to us!"}') returning id
     )
     insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, started_at, fan_out_completed_at, completed_at, recipients)
     select uuid_v7(), $1, $2, 'Large', '{1}', false, id, 'COMPLETED', now(), now(), now(), now(), $3 from content returning id, content_id as "contentId", left(id::text, 24) as prefix`,
    [accountId, agentId, MESSAGES],
  )
  const { id: campaignId, contentId, prefix } = rows[0] as Campaign
  const idOf = idsFrom(prefix)
  await client.query(
    `insert into messages (id, account_id, agent_id, recipient, status, basic, test, content_id, expires_at, sent_at, delivered_at, read_at, traffic, campaign_id)
     select ${idOf('n')}, $1, $2, '+48' || 500000000 + n, 'READ', false, false, $3, now() + interval '1 day', now(), now(), now(), 'PROMOTION', $4
     from generate_series(1, $5::int) as n`,
    [accountId, agentId, contentId, campaignId, MESSAGES],
  )
  for (let from = 1; from <= ACTIONS; from += CHUNK) {
    await client.query(
      `insert into recipient_actions (id, account_id, agent_id, recipient, message_id, kind, channel, text, occurred_at, campaign_id)
       select ${idOf('n')}, $1, $2, '+48' || 500000001 + n % $5::int, ${idOf('(1 + n % $5::int)')}, 'wrote', 'rcs', repeat(chr(97 + n % 26), $6), now(), $3
       from generate_series($4::int, $7::int) as n`,
      [accountId, agentId, campaignId, from, MESSAGES, TEXT_LENGTH, Math.min(from + CHUNK - 1, ACTIONS)],
    )
    say(`${Math.min(from + CHUNK - 1, ACTIONS).toLocaleString('en')} of ${ACTIONS.toLocaleString('en')} actions`)
  }
  return campaignId
}

/** Ids of one moment, with a number at the end. */
const idsFrom = (prefix: string) => (number: string) => `('${prefix}' || lpad((${number})::text, 12, '0'))::uuid`
