import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import { createHotPool, type Pool, transaction } from '../../src/db/pool.ts'
import { createEventTaker } from '../../src/delivery/receipts.ts'
import { processReplies } from '../../src/delivery/replies.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { visitLink } from '../../src/links/links.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { CARRIER, createSender, logger, whileOthersCommit } from '../delivery/support.ts'
import { readCounted } from '../support/counted.ts'
import { createTestDatabase } from '../support/database.ts'
import { type Made, SORTS, startCounting } from './counting.ts'

// What recipients do is counted once a message, however often they do it: that it was clicked, that it was answered, and that its recipient
// wants no more of them. When the file ends, all counters are held against the rows once more.

const { url, hotPool: pool } = await createTestDatabase({ unmetered: 'messages are moved to another day by hand' })
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
const { make, handOver, refuse, sendSms, act, tap, link, counted } = await startCounting(pool)

const HOUR_MS = 3_600_000
const SENT = { accepted: 1, sent: 1 }

/** A message that its recipient has. */
async function sentOne(sort: (typeof SORTS)[number], making: Parameters<typeof make>[1] = {}): Promise<Made> {
  const made = await make(sort, making)
  await handOver(made)
  return made
}

/** With what is counted of that, so that there is time for somebody to have answered it. */
async function acceptedYesterday({ messageId, sender }: Made): Promise<void> {
  await pool.query(`update messages set accepted_at = accepted_at - interval '1 day' where id = $1`, [messageId])
  await pool.query(`update report_deltas set hour = hour - interval '1 day' where account_id = $1 and accepted > 0`, [sender.accountId])
}

/** What several did at once, each taken up by a node of its own. */
async function atOnce({ sender, phone }: Made, deeds: Record<string, unknown>[]): Promise<void> {
  const common = { carrier: CARRIER, phone, agentId: sender.agentId, occurredAt: new Date() }
  await createEventTaker(pool, () => {})(deeds.map((deed) => ({ ...common, eventId: randomUUID(), ...deed }) as unknown as CarrierEvent))
  await Promise.all([pool, otherNode, pool, otherNode].map((node: Pool) => processReplies(node, logger)))
}

const ANSWERS = [
  { kind: 'wrote', text: 'Thank you' },
  { kind: 'shared-location', latitude: 52.2, longitude: 21 },
  { kind: 'sent-file', url: 'https://example.com/f.png', mimeType: 'image/png', name: 'f.png' },
]

for (const sort of SORTS) {
  // Of a test message nothing is counted, whatever is done about it.
  const expected = ({ campaignId }: Made, counts: Record<string, number>) =>
    sort === 'test' ? {} : { [campaignId]: { ...SENT, ...counts } }
  const of = { own: 'that an account sends by itself', campaign: 'of a campaign', test: 'that is a test' }[sort]

  describe(`of a message ${of} is counted${sort === 'test' ? ' nothing' : ''}:`, () => {
    test('that it was clicked, at once and again', async () => {
      const made = await sentOne(sort)
      const click = { kind: 'tapped', messageId: made.messageId, buttonId: 'web', text: undefined }
      await atOnce(made, [click, click, click, click])
      await tap(made, 'web')
      assert.deepEqual(await counted(made.sender), expected(made, { clicked: 1 }))
      const { rowCount } = await pool.query(`select from recipient_actions where message_id = $1 and kind = 'clicked'`, [made.messageId])
      assert.equal(rowCount, 5, 'each was kept')
    })

    test('that it was answered, by a tap, a text, a place or a file, and by all of them', async () => {
      for (const answer of ANSWERS) {
        const made = await sentOne(sort)
        await act(made, answer)
        assert.deepEqual(await counted(made.sender), expected(made, { replied: 1 }), answer.kind)
      }
      const made = await sentOne(sort)
      const tapped = { kind: 'tapped', messageId: made.messageId, buttonId: 'yes', text: undefined }
      await atOnce(made, [tapped, ...ANSWERS])
      await tap(made, 'yes')
      assert.deepEqual(await counted(made.sender), expected(made, { replied: 1 }))
    })

    test('that its recipient opted out, however often they leave and come back', async () => {
      const made = await sentOne(sort)
      for (const text of ['STOP', 'STOP', 'START', 'STOP']) await act(made, { kind: 'wrote', text })
      await act(made, { kind: 'unsubscribed' })
      assert.deepEqual(await counted(made.sender), expected(made, { opted_out: 1 }))
    })

    test('that it was clicked, by a short link in its SMS, of which there may be several, and by no robot', async () => {
      const made = await sentOne(sort)
      const [first, second, copy] = [await link(made), await link(made), await link(made, 1)]
      await visitLink(pool, first, true)
      await visitLink(pool, copy, false)
      assert.deepEqual(await counted(made.sender), expected(made, {}))
      const visits = [first, second, first, second].map((code, n) => visitLink(n % 2 ? pool : otherNode, code, false))
      await Promise.all(visits)
      await visitLink(pool, first, false)
      await tap(made, 'web')
      assert.deepEqual(await counted(made.sender), expected(made, { clicked: 1 }))
    })

    test('the template that a tap asks for, as a message that the account sends by itself', async () => {
      const sender = await createSender(pool)
      const message = { type: 'MESSAGE', content: 'More' } as const
      const { id } = await createTemplate(pool, sender.accountId, { name: 'T', basic: false, status: 'APPROVED', message })
      const made = await sentOne(sort, { sender, buttons: [{ id: 'more', type: 'trigger_template', text: 'More', templateId: id }] })
      await tap(made, 'more')
      await tap(made, 'more')
      const ofCampaign = { [made.campaignId]: { ...SENT, replied: 1 }, [NO_CAMPAIGN]: { accepted: 2 } }
      const own = { [NO_CAMPAIGN]: { accepted: 3, sent: 1, replied: 1 } }
      assert.deepEqual(await counted(sender), { own, campaign: ofCampaign, test: {} }[sort])
    })
  })
}

describe('of what recipients do, is counted', () => {
  test('the first that was written down, in its own hour, though one of an earlier hour is told later', async () => {
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
    for (const sort of ['own', 'campaign'] as const) {
      const made = await sentOne(sort)
      await acceptedYesterday(made)
      for (const hoursAgo of [2, 3, 1, 0]) await tap(made, 'yes', new Date(hour - hoursAgo * HOUR_MS))
      const replied = (await readCounted(pool, made.sender)).filter(({ counts }) => 'replied' in counts)
      assert.deepEqual(
        replied.map(({ hour: at, counts }) => [at, counts.replied]),
        [[new Date(hour - 2 * HOUR_MS).toISOString(), 1]],
      )
    }
  })

  test('never in an hour before its message was accepted, whatever a network’s clock says', async () => {
    const made = await sentOne('own')
    await tap(made, 'yes', new Date('2011-02-03T04:05:06Z'))
    const { rows } = await pool.query<{ hour: Date }>(`select date_trunc('hour', accepted_at, 'UTC') as hour from messages where id = $1`, [
      made.messageId,
    ])
    const replied = (await readCounted(pool, made.sender)).filter(({ counts }) => 'replied' in counts)
    assert.deepEqual(
      replied.map(({ hour: at }) => at),
      rows.map(({ hour: at }) => at.toISOString()),
    )
  })

  test('the one that is committed, where two come at once and the first is undone', async () => {
    const made = await sentOne('own')
    const code = await link(made)
    const undone = new Error('undone')
    let second: Promise<unknown> | undefined
    await assert.rejects(
      transaction(pool, async (tx) => {
        await visitLink(tx, code, false)
        second = visitLink(otherNode, code, false)
        throw undone
      }),
      undone,
    )
    await second
    assert.deepEqual(await counted(made.sender), { [NO_CAMPAIGN]: { ...SENT, clicked: 1 } })
  })

  test('one of two deeds of a message that wait for each other', async () => {
    const made = await sentOne('campaign')
    const [one, two] = [await link(made), await link(made)]
    await whileOthersCommit(
      pool,
      (tx) => visitLink(tx, one, false),
      () => visitLink(otherNode, two, false),
    )
    assert.deepEqual(await counted(made.sender), { [made.campaignId]: { ...SENT, clicked: 1 } })
  })

  test('nothing that answers no message, or that an operator does', async () => {
    const sender = await createSender(pool)
    const nobody: Made = { sender, campaignId: NO_CAMPAIGN, messageId: randomUUID(), phone: '+48600999999' }
    await act(nobody, { kind: 'wrote', text: 'Hello' })
    await act(nobody, { kind: 'wrote', text: 'STOP' })
    const { rowCount } = await pool.query('select from recipient_actions where account_id = $1', [sender.accountId])
    assert.equal(rowCount, 2)
    const made = await sentOne('own')
    await changeOptOut(pool, { ...made.sender, phone: made.phone }, true)
    assert.deepEqual([await counted(sender), await counted(made.sender)], [{}, { [NO_CAMPAIGN]: SENT }])
  })

  test('an answer by SMS for the message that the SMS stood for', async () => {
    const made = await make('campaign', { sms: {} })
    await refuse(made)
    await sendSms(made)
    const event = { kind: 'wrote', text: 'Thank you', number: 'MyShop', agentId: undefined }
    await act(made, event)
    await act(made, { ...event, text: 'STOP' })
    const counts = { accepted: 1, failed: 1, sms_sent: 1, replied: 1, opted_out: 1 }
    assert.deepEqual(await counted(made.sender), { [made.campaignId]: counts })
  })
})
