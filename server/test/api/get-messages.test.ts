import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { CHECKED_AT_ONCE, listMessages } from '../../src/messages/list.ts'
import { STATUSES } from '../../src/messages/states.ts'
import { acceptedCampaign } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { type MessageCaller, startMessageService } from '../support/messages.ts'
import { assertError, createAssignedAgent } from '../support/service.ts'

const database = await createTestDatabase({ uncounted: 'messages are written by hand' })
const { pool } = database
const { newCaller } = await startMessageService(database)
const seed = Date.now() % 2 ** 31

type Row = { id: string; agent: string; phone: string; status: string; test: boolean; reference: string | null; campaign: string | null }

/** Writes messages as accepting and delivery would leave them, in the order of their ids. */
async function write(accountId: number, messages: Row[]): Promise<void> {
  await pool.query(
    `insert into messages (id, account_id, agent_id, recipient, status, basic, test, client_reference_id, campaign_id, content, accepted_at,
       expires_at, sent_at, delivered_at, read_at, failed_at, failure_reason, failure_description)
     select m.id, $1, m.agent, m.phone, m.status, false, m.test, m.reference, m.campaign, '{}', at, at + interval '2 days',
       case when m.status in ('SENT', 'DELIVERED', 'READ') then at end, case when m.status in ('DELIVERED', 'READ') then at end,
       case when m.status = 'READ' then at end, case when m.status = 'FAILED' then at end, case when m.status = 'FAILED' then 'REJECTED' end,
       case when m.status = 'FAILED' then 'No.' end
     from json_to_recordset($2) as m (id uuid, agent text, phone text, status text, test bool, reference text, campaign uuid),
       lateral (select to_timestamp(('x' || replace(left(m.id::text, 13), '-', ''))::bit(48)::bigint / 1000.0)) as t (at)`,
    [accountId, JSON.stringify(messages)],
  )
  await pool.query(
    `insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at, claimed)
     select m.id, $1, agent_id, 'send', 0, 'infinity', expires_at, sending from messages m, lateral (select m.status = 'SENDING' as sending) as s
     where m.account_id = $1 and m.status in ('ACCEPTED', 'SENDING')`,
    [accountId],
  )
  await pool.query(`update messages set status = 'ACCEPTED' where account_id = $1 and status = 'SENDING'`, [accountId])
}

/** An id of this time. */
function idAt(timeMs: number): string {
  const hex = timeMs.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`
}

async function walk({ ask }: MessageCaller, query: string): Promise<{ items: { messageId: string }[]; pages: number }> {
  const items: { messageId: string }[] = []
  let pages = 0
  for (let cursor: string | null = ''; cursor !== null; pages += 1) {
    const { status, body } = await ask('GET', `/messages?${query}${cursor && `&cursor=${cursor}`}`)
    assert.equal(status, 200, JSON.stringify(body))
    items.push(...body.items)
    cursor = body.nextCursor
  }
  return { items, pages }
}

describe(`GET /messages (seed ${seed})`, async () => {
  // In the future, so that no message has expired, and in two months.
  const month = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 2)).getTime()
  const caller = await newCaller()
  const other = await newCaller()
  const agents = [caller.agentId, await createAssignedAgent(pool, caller.accountId)]
  const phones = ['+48500100200', '+48500100201']
  await pool.query('insert into groups (account_id, number) values ($1, 1)', [caller.accountId])
  const campaigns = [
    await acceptedCampaign(pool, caller, { clientReferenceId: 'A' }),
    await acceptedCampaign(pool, caller, { clientReferenceId: 'A' }),
    await acceptedCampaign(pool, caller, { clientReferenceId: 'B' }),
    await acceptedCampaign(pool, caller),
  ]
  // More campaigns of one reference than are read one by one.
  for (let more = 0; more < 4; more += 1) await acceptedCampaign(pool, caller, { clientReferenceId: 'A' })
  const referenceOf = ({ reference, campaign }: Row) => reference ?? ['A', 'A', 'B'][campaigns.indexOf(campaign ?? '')] ?? null

  const anyRow = fc.record({
    offset: fc.integer({ min: -40, max: 40 }),
    agent: fc.constantFrom(...agents),
    phone: fc.constantFrom(...phones),
    status: fc.constantFrom(...STATUSES),
    sort: fc.constantFrom('single', 'single', 'test', ...campaigns),
    reference: fc.constantFrom(null, 'A', 'B'),
  })
  const made = fc.sample(fc.array(anyRow, { minLength: 150, maxLength: 150 }), { seed, numRuns: 1 })[0] ?? []
  const rows: Row[] = made.map(({ offset, sort, reference, ...row }) => {
    const isCampaign = campaigns.includes(sort)
    return {
      ...row,
      id: idAt(month + offset),
      test: sort === 'test',
      campaign: isCampaign ? sort : null,
      reference: isCampaign ? null : reference,
    }
  })
  await write(caller.accountId, rows)
  await write(other.accountId, [{ ...(rows[0] as Row), id: idAt(month), campaign: null, test: false }])

  const time = fc.integer({ min: -41, max: 41 }).map((offset) => new Date(month + offset).toISOString())
  const anyQuery = fc.record(
    {
      recipient: fc.constantFrom(...phones),
      clientReferenceId: fc.constantFrom('A', 'B', 'C'),
      campaignId: fc.constantFrom(...campaigns),
      agentId: fc.constantFrom(...agents),
      status: fc.uniqueArray(fc.constantFrom(...STATUSES), { minLength: 1 }).map((list) => list.join(',')),
      test: fc.constantFrom('true', 'false'),
      acceptedFrom: time,
      acceptedTo: time,
      sort: fc.constantFrom('acceptedAt', '-acceptedAt'),
      limit: fc.integer({ min: 1, max: 200 }).map(String),
    },
    { requiredKeys: [] },
  )

  const matches = (row: Row, query: Partial<Record<string, string>>) =>
    row.test === (query.test === 'true') &&
    (query.recipient === undefined || row.phone === query.recipient) &&
    (query.clientReferenceId === undefined || referenceOf(row) === query.clientReferenceId) &&
    (query.campaignId === undefined || row.campaign === query.campaignId) &&
    (query.agentId === undefined || row.agent === query.agentId) &&
    (query.status === undefined || query.status.split(',').includes(row.status)) &&
    (query.acceptedFrom === undefined || row.id >= idAt(Date.parse(query.acceptedFrom)).slice(0, 13)) &&
    (query.acceptedTo === undefined || row.id < idAt(Date.parse(query.acceptedTo)).slice(0, 13))

  test('lists exactly the messages that match all filters, once each, in the order of the sort', async () => {
    await fc.assert(
      fc.asyncProperty(anyQuery, async ({ limit, ...query }) => {
        const isInOrder = query.acceptedFrom === undefined || query.acceptedTo === undefined || query.acceptedFrom <= query.acceptedTo
        if (!isInOrder) return
        const expected = rows.filter((row) => matches(row, query)).map(({ id }) => id)
        expected.sort((a, b) => (a < b ? -1 : 1))
        if (query.sort !== 'acceptedAt') expected.reverse()
        // Small pages of few messages, so that a run stays short.
        const few = { ...query, limit: String(Math.max(Number(limit ?? 50), Math.ceil(expected.length / 6), 1)) }
        const { items } = await walk(caller, `${new URLSearchParams(few)}`)
        assert.deepEqual(
          items.map(({ messageId }) => messageId),
          expected,
        )
      }),
      { seed, numRuns: 150 },
    )
  })

  test('shows each message as GET /messages/{messageId} does', async () => {
    const { items } = await walk(caller, 'limit=200')
    for (const item of items.slice(0, 20)) assert.deepEqual(item, (await caller.read(item.messageId)).body)
  })

  test('finds a number whose plus sign was not encoded', async () => {
    const [encoded, plain] = [await walk(caller, 'recipient=%2B48500100200'), await walk(caller, 'recipient=+48500100200')]
    assert.ok(encoded.items.length > 0)
    assert.deepEqual(plain, encoded)
  })

  test('shows nothing of another account', async () => {
    assert.equal((await walk(other, '')).items.length, 1)
    assert.deepEqual((await walk(other, `campaignId=${campaigns[0]}`)).items, [])
    const { body } = await caller.ask('GET', '/messages?limit=1')
    assert.doesNotMatch(Buffer.from(body.nextCursor, 'base64url').toString('latin1'), /[0-9a-f]{8}-/)
    const response = await other.ask('GET', `/messages?limit=1&cursor=${body.nextCursor}`)
    assertError(response, 400, 'RCS_INVALID_CURSOR', [['/cursor', 'is not a cursor of this list']])
  })

  test('by recipient checks a bounded number of messages of all accounts, and finds its own with the next cursors', async () => {
    const [phone, big, rival] = ['+48500100777', await newCaller(), await newCaller()]
    const own = { ...(rows[0] as Row), id: idAt(month), phone, test: false, campaign: null, agent: big.agentId }
    await write(big.accountId, [own])
    const others = Array.from({ length: 2 * CHECKED_AT_ONCE }, (_, n) => ({ ...own, id: idAt(month + 1 + n), agent: rival.agentId }))
    await write(rival.accountId, others)
    const { items, nextCursor } = await listMessages(pool, big.accountId, { recipient: phone }, 0)
    assert.deepEqual([items, typeof nextCursor], [[], 'string'])
    // A page may end at a message of the other account, so this cursor must not be what a caller gets, or can send.
    const forged = await big.ask('GET', `/messages?recipient=${encodeURIComponent(phone)}&cursor=${nextCursor}`)
    assertError(forged, 400, 'RCS_INVALID_CURSOR', [['/cursor', 'is not a cursor of this list']])
    const found = await walk(big, `recipient=${encodeURIComponent(phone)}`)
    assert.deepEqual(
      found.items.map(({ messageId }) => messageId),
      [own.id],
    )
  })

  test('checks a bounded number of messages a page, and finds a rare status with the next cursors', async () => {
    const big = await newCaller()
    const rare = [0, 1, 2 * CHECKED_AT_ONCE].map((n) => idAt(month + n))
    const common = Array.from({ length: 2 * CHECKED_AT_ONCE }, (_, n) => idAt(month + 1 + n))
    const row = { ...(rows[0] as Row), test: false, campaign: null, agent: big.agentId }
    await write(big.accountId, [
      ...common.map((id) => ({ ...row, id, status: 'READ' })),
      ...rare.map((id) => ({ ...row, id, status: 'FAILED' })),
    ])
    const found: string[] = []
    let [pages, cursor]: [number, string | null] = [0, '']
    for (; cursor !== null; pages += 1) {
      const body = await listMessages(pool, big.accountId, { status: 'FAILED', ...(cursor !== '' && { cursor }) }, 0)
      found.push(...body.items.map(({ messageId }) => messageId))
      cursor = body.nextCursor
    }
    assert.deepEqual([found, pages], [rare.toReversed(), 3])
    assert.deepEqual(
      (await walk(big, 'status=FAILED')).items.map(({ messageId }) => messageId),
      rare.toReversed(),
    )
  })

  test('responds 400 to a filter that can’t match', async () => {
    const words = `one or more of ${STATUSES.join(', ')}, separated by commas`
    const wrongNumber = 'must be an international phone number, such as +48500100200'
    assertError(await caller.ask('GET', '/messages?recipient=hello'), 400, 'RCS_INVALID_RECIPIENT', [['/recipient', wrongNumber]])
    for (const [query, path, reason] of [
      ['campaignId=1', '/campaignId', 'must be the id of a campaign, as its creation returned it'],
      ['status=LOST', '/status', `must be ${words}`],
      ['status=', '/status', `must be ${words}`],
      ['status=READ,', '/status', `must be ${words}`],
      ['test=yes', '/test', 'must be true or false'],
      [
        'acceptedFrom=2026-01-01',
        '/acceptedFrom',
        'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00',
      ],
      ['acceptedFrom=2026-01-02T00:00Z&acceptedTo=2026-01-01T00:00Z', '/acceptedTo', 'must not be before acceptedFrom'],
      ['sort=status', '/sort', 'must be one of acceptedAt, -acceptedAt'],
      ['limit=201', '/limit', 'must be at most 200'],
    ] as const) {
      assertError(await caller.ask('GET', `/messages?${query}`), 400, 'RCS_INVALID_REQUEST', [[path, reason]], query)
    }
  })

  test('accepts times from the year 100 to 9999', async () => {
    const { items } = await walk(caller, 'acceptedFrom=0100-01-01T00:00Z&acceptedTo=9999-12-31T23:59Z&limit=200')
    assert.equal(items.length, rows.filter((row) => !row.test).length)
  })
})
