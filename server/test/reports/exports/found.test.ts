import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../../support/database.ts'
import { type PastMessage, writeCampaign, writeMessages } from '../api/past.ts'
import { assertRefused, phone, startReportService } from '../api/support.ts'
import { readCsv } from './support.ts'

const database = await createTestDatabase({ unlogged: 'messages are written by hand' })
const { pool } = database
const { url, newCaller } = await startReportService(database)

type Caller = Awaited<ReturnType<typeof newCaller>>

async function exported({ authorization }: Caller, query = ''): Promise<Record<string, string>[]> {
  const response = await fetch(`${url}/v1/messages/export${query}`, { headers: { authorization } })
  const text = await response.text()
  assert.deepEqual([response.status, response.headers.get('content-disposition')], [200, 'attachment; filename="messages.csv"'], text)
  return readCsv(text)
}

const at = (time: string) => `2026-10-${time}Z`

/** Single messages of each kind: two states, and a test. */
const SINGLE: PastMessage[] = [
  { recipient: phone(1), acceptedAt: at('30T12:00:00.000'), sentAt: at('30T12:00:00.000'), deliveredAt: at('30T12:00:01.000') },
  {
    recipient: phone(2),
    acceptedAt: at('31T12:00:00.000'),
    failedAt: at('31T12:00:01.000'),
    sms: { sentAt: at('31T12:00:02.000'), deliveredAt: at('31T12:00:03.000') },
  },
  { recipient: phone(3), acceptedAt: at('31T13:00:00.000'), test: true },
]
const OF_CAMPAIGN: PastMessage[] = [
  { recipient: phone(1), acceptedAt: at('30T13:00:00.000'), failedAt: at('30T13:00:01.000') },
  {
    recipient: phone(4),
    acceptedAt: at('30T14:00:00.000'),
    sentAt: at('30T14:00:00.000'),
    deliveredAt: at('30T14:00:01.000'),
    actions: [{ kind: 'clicked', at: at('30T15:00:00.000'), url: 'https://example.com' }],
  },
]

/** An account with messages of each kind. The first message and the campaign have references. */
async function createHistory() {
  const caller = await newCaller()
  const [first] = await writeMessages(pool, caller, SINGLE)
  const { campaignId } = await writeCampaign(pool, caller, OF_CAMPAIGN)
  await pool.query('update messages set client_reference_id = $2 where id = $1', [first?.messageId, "=o'rder?$1"])
  await pool.query(`update campaigns set client_reference_id = 'autumn' where id = $1`, [campaignId])
  return { caller, campaignId }
}

const { caller, campaignId } = await createHistory()
// Another account with the same messages.
await createHistory()

describe('the export of a list of messages', () => {
  const filters: [name: string, query: string, ...found: number[]][] = [
    ['without a filter', '', 1, 1, 4, 2],
    ['by the recipient', `recipient=${encodeURIComponent(phone(1))}`, 1, 1],
    ['by the reference of a message', `clientReferenceId=${encodeURIComponent("=o'rder?$1")}`, 1],
    ['by the reference of a campaign', 'clientReferenceId=autumn', 1, 4],
    ['by the campaign', `campaignId=${campaignId}`, 1, 4],
    ['by several states', 'status=FAILED,EXPIRED', 1, 2],
    ['by the agent', `agentId=${caller.agentId}`, 1, 1, 4, 2],
    ['by an agent without messages', "agentId=o'ther", ...[]],
    ['of test messages', 'test=true', 3],
    ['of a time', `acceptedFrom=${at('30T13:00:00')}&acceptedTo=${at('31T12:00:00')}`, 1, 4],
    ['by all of these', `campaignId=${campaignId}&status=FAILED&clientReferenceId=autumn&recipient=${encodeURIComponent(phone(1))}`, 1],
  ]
  for (const [name, query, ...found] of filters) {
    test(`${name} has the messages that the list has, in the order of acceptance`, async () => {
      const rows = await exported(caller, `?${query}`)
      assert.deepEqual(
        rows.map(({ recipient }) => recipient),
        found.map(phone),
      )
      const { body } = await caller.ask('GET', `/messages?sort=acceptedAt&limit=200&${query}`)
      assert.deepEqual(
        rows.map(({ messageId }) => messageId),
        body.items.map(({ messageId }: { messageId: string }) => messageId),
      )
    })
  }

  test('has the campaign, the SMS and the actions of each message, and texts that are no formulas', async () => {
    const [single, , clicked, bySms] = await exported(caller)
    assert.deepEqual([single?.clientReferenceId, single?.campaignId, single?.status], ["'=o'rder?$1", '', 'DELIVERED'])
    assert.deepEqual([clicked?.clientReferenceId, clicked?.campaignId, clicked?.clickedAt], ['autumn', campaignId, at('30T15:00:00.000')])
    assert.deepEqual([bySms?.status, bySms?.smsStatus, bySms?.smsDeliveredAt], ['FAILED', 'DELIVERED', at('31T12:00:03.000')])
  })

  test('refuses wrong filters and page parameters', async () => {
    assertRefused(await caller.ask('GET', '/messages/export?limit=10'), 'RCS_INVALID_REQUEST', 400, [
      { path: '/limit', reason: 'is not known here; is it misspelt?' },
    ])
    assertRefused(
      await caller.ask('GET', `/messages/export?acceptedFrom=${at('31T00:00:00')}&acceptedTo=${at('30T00:00:00')}`),
      'RCS_INVALID_REQUEST',
      400,
      [{ path: '/acceptedTo', reason: 'must not be before acceptedFrom' }],
    )
  })
})
