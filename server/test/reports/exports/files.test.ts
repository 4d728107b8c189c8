import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { createReceiver } from '../../delivery/support.ts'
import { createTestDatabase } from '../../support/database.ts'
import { parseResponse, rawConnection } from '../../support/raw.ts'
import { type PastMessage, writeCampaign, writeMessages } from '../api/past.ts'
import { assertRefused, phone, startReportService } from '../api/support.ts'
import { readCsv, readZip } from './support.ts'

const database = await createTestDatabase({ unlogged: 'messages are written by hand' })
const { pool } = database
const { url, newCaller } = await startReportService(database)

type Caller = Awaited<ReturnType<typeof newCaller>>

async function download({ authorization }: Caller, path: string) {
  const response = await fetch(`${url}/v1/reports${path}`, { headers: { authorization } })
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

async function messagesOf(caller: Caller, query = ''): Promise<Record<string, string>[]> {
  const { status, bytes } = await download(caller, `/messages/export${query}`)
  assert.equal(status, 200)
  return readCsv(bytes.toString('utf8'))
}

async function archiveOf(caller: Caller, campaignId: string) {
  const { status, bytes } = await download(caller, `/campaigns/${campaignId}/all-data-export`)
  assert.equal(status, 200)
  const files = readZip(bytes)
  assert.deepEqual([...files.keys()], ['summary.csv', 'aggregations.csv', 'recipients.csv', 'actions.csv'])
  const [summary, aggregations, recipients, actions] = [...files.values()].map(readCsv)
  return { summary: summary?.[0] ?? {}, aggregations: aggregations ?? [], recipients: recipients ?? [], actions: actions ?? [] }
}

const at = (time: string) => `2026-10-${time}Z`

/** One message of each kind, across two months. */
const HISTORY: PastMessage[] = [
  {
    recipient: phone(1),
    acceptedAt: at('30T23:59:59.999'),
    sentAt: at('31T00:00:00.000'),
    deliveredAt: at('31T00:00:00.010'),
    readAt: at('31T12:00:00.100'),
  },
  { recipient: phone(2), acceptedAt: at('31T00:00:00.000'), sentAt: at('31T00:00:01.000'), expiredAt: '2026-11-01T00:00:00.000Z' },
  {
    recipient: phone(3),
    acceptedAt: at('31T23:59:59.999'),
    failedAt: '2026-11-01T00:00:00.120Z',
    sms: { sentAt: '2026-11-01T00:00:01.000Z', deliveredAt: '2026-11-01T00:00:02.030Z' },
  },
  {
    recipient: phone(4),
    acceptedAt: '2026-11-01T00:00:00.000Z',
    sentAt: '2026-11-01T00:00:00.000Z',
    deliveredAt: '2026-11-01T00:00:00.000Z',
    actions: [
      { kind: 'clicked', at: '2026-11-02T08:00:00.000Z', url: 'https://example.com/a,b', buttonId: '=1+1', text: '"Buy"' },
      { kind: 'wrote', at: '2026-11-02T09:00:00.500Z', text: '+1\r\n"two", three' },
      { kind: 'opted-out', at: '2026-11-03T09:00:00.000Z', text: 'STOP' },
      { kind: 'opted-in', at: '2026-11-04T09:00:00.000Z', text: 'START' },
    ],
  },
]

describe('the export of messages', () => {
  test('of a range has the messages accepted on these days, in the order of acceptance', async () => {
    const caller = await newCaller()
    await writeMessages(pool, caller, HISTORY)
    const numbers = async (query: string) => (await messagesOf(caller, query)).map(({ recipient }) => recipient)
    assert.deepEqual(await numbers('?to=2026-10-30'), [phone(1)])
    assert.deepEqual(await numbers('?from=2026-10-31&to=2026-10-31'), [phone(2), phone(3)])
    assert.deepEqual(await numbers('?from=2026-11-01'), [phone(4)])
    assert.deepEqual(await numbers('?from=0100-01-01&to=9999-12-31'), [1, 2, 3, 4].map(phone))
    assert.deepEqual(await numbers('?from=2026-11-02'), [])
  })

  test('has a file name with the range, and only a header for an account without messages', async () => {
    const caller = await newCaller()
    for (const [query, name] of [
      ['', 'messages.csv'],
      ['?from=2026-11-01', 'messages-from-2026-11-01.csv'],
      ['?to=2026-11-15', 'messages-until-2026-11-15.csv'],
      ['?from=2026-11-01&to=2026-11-15', 'messages-2026-11-01-to-2026-11-15.csv'],
    ] as const) {
      const { headers, bytes } = await download(caller, `/messages/export${query}`)
      assert.deepEqual(
        [headers.get('content-type'), headers.get('content-disposition'), headers.get('cache-control')],
        ['text/csv; charset=utf-8', `attachment; filename="${name}"`, 'no-store'],
      )
      assert.deepEqual(readCsv(bytes.toString('utf8')), [])
    }
  })

  test('leaves out test messages and messages of campaigns and other accounts', async () => {
    const [caller, other] = [await newCaller(), await newCaller()]
    const [own] = await writeMessages(pool, caller, HISTORY.slice(0, 1))
    await writeMessages(pool, caller, [{ recipient: phone(9), acceptedAt: at('01T00:00:00.000'), test: true }])
    await writeCampaign(pool, caller, HISTORY)
    await writeMessages(pool, other, HISTORY)
    assert.deepEqual(
      (await messagesOf(caller)).map(({ messageId }) => messageId),
      [own?.messageId],
    )
  })
})

describe('the export of a campaign', () => {
  test('has the summary, the aggregations, and a row for each message and action', async () => {
    const caller = await newCaller()
    const { campaignId, messages } = await writeCampaign(pool, caller, HISTORY)
    const { headers } = await download(caller, `/campaigns/${campaignId.toUpperCase()}/all-data-export`)
    assert.equal(headers.get('content-type'), 'application/zip')
    assert.equal(headers.get('content-disposition'), `attachment; filename="campaign-${campaignId}.zip"`)
    const { summary, aggregations, recipients, actions } = await archiveOf(caller, campaignId)
    const { smsFallback: sms, ...totals } = await caller.report(`/campaigns/${campaignId}/summary`)
    const { sent: smsSent, delivered: smsDelivered, failed: smsFailed, skipped: smsSkipped } = sms
    const flat = { ...totals, smsSent, smsDelivered, smsFailed, smsSkipped }
    assert.deepEqual(summary, Object.fromEntries(Object.entries(flat).map(([name, value]) => [name, String(value ?? '')])))
    assert.deepEqual(
      aggregations.map(({ period, delivered }) => [period, Number(delivered)]),
      (await caller.report(`/campaigns/${campaignId}/aggregations`)).items.map((item: any) => [item.period, item.delivered]),
    )
    assert.deepEqual(
      recipients.map(({ messageId, recipient, acceptedAt }) => [messageId, recipient, acceptedAt]),
      messages.map(({ messageId, recipient, acceptedAt }) => [messageId, recipient, acceptedAt]),
    )
    assert.deepEqual(
      actions.map(({ action, buttonId, text, url: link, latitude, occurredAt }) => [action, buttonId, text, link, latitude, occurredAt]),
      [
        ['clicked', `'=1+1`, '"Buy"', 'https://example.com/a,b', '52.5', '2026-11-02T08:00:00.000Z'],
        ['wrote', '', `'+1\r\n"two", three`, '', '52.5', '2026-11-02T09:00:00.500Z'],
        ['opted-out', '', 'STOP', '', '52.5', '2026-11-03T09:00:00.000Z'],
        ['opted-in', '', 'START', '', '52.5', '2026-11-04T09:00:00.000Z'],
      ],
    )
  })

  test('is an archive for a campaign without messages', async () => {
    const caller = await newCaller()
    const { campaignId } = await writeCampaign(pool, caller, [])
    const { summary, ...lists } = await archiveOf(caller, campaignId)
    assert.deepEqual([summary.accepted, lists], ['0', { aggregations: [], recipients: [], actions: [] }])
  })

  test('is consistent while receipts arrive', async () => {
    const caller = await newCaller()
    const now = Date.now()
    const { campaignId, messages } = await writeCampaign(
      pool,
      caller,
      Array.from({ length: 600 }, (_, n) => ({
        recipient: phone(n),
        acceptedAt: new Date(now - 60_000).toISOString(),
        sentAt: new Date(now).toISOString(),
      })),
    )
    const receive = createReceiver(pool)
    let isOver = false
    const receipts = (async () => {
      for (const { messageId, recipient } of messages) {
        if (isOver) return
        const common = { carrier: 'simulator', phone: recipient, agentId: caller.agentId, messageId, occurredAt: new Date() }
        await receive([{ ...common, eventId: `${messageId} read`, kind: 'read' }])
      }
    })()
    const seen: number[] = []
    while (seen.length < 5 || (new Set(seen).size === 1 && seen[0] !== 600)) {
      const { summary, recipients } = await archiveOf(caller, campaignId)
      const read = recipients.filter(({ readAt }) => readAt !== '').length
      assert.deepEqual([Number(summary.read), Number(summary.delivered), recipients.length], [read, read, 600])
      seen.push(read)
    }
    isOver = true
    await receipts
    assert.ok(new Set(seen).size > 1, `receipts arrived meanwhile: ${seen}`)
  })

  test('is a 404 for another account and an unknown id, and a wrong query is a 400 before that', async () => {
    const [caller, other] = [await newCaller(), await newCaller()]
    const { campaignId } = await writeCampaign(pool, other, HISTORY)
    for (const id of [campaignId, '0198c0de-0000-7000-8000-000000000002', 'x']) {
      assertRefused(await caller.get(`/campaigns/${id}/all-data-export`), 'RCS_CAMPAIGN_NOT_FOUND', 404)
      assert.equal((await caller.get(`/campaigns/${id}/all-data-export?from=2026-11-01`)).status, 400, 'it takes no range')
    }
  })
})

test('requires GET and HTTP/1.1, so that a truncated file is detectable', async () => {
  const caller = await newCaller()
  const head = await fetch(`${url}/v1/reports/messages/export`, { method: 'HEAD', headers: { authorization: caller.authorization } })
  assert.deepEqual([head.status, head.headers.get('allow')], [405, 'GET'])
  const old = rawConnection(url)
  after(() => old.close())
  old.send(`GET /v1/reports/messages/export HTTP/1.0\r\nHost: x\r\nAuthorization: ${caller.authorization}\r\n\r\n`)
  const { status, body } = parseResponse(await old.ended)
  assert.deepEqual([status, body.code], [400, 'RCS_INVALID_REQUEST'])
  assert.match(body.details[0].reason, /HTTP\/1\.1/)
})
