import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAgent } from '../../src/agents/agents.ts'
import { countRows, NOTHING, newKey, ONE_MESSAGE, RECIPIENT, UUID_V7 } from '../support/messages.ts'
import { assertError, type ErrorDetails } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'
import { log, newCaller, pool } from './messages-service.ts'

// All its requests are rejected.
const rejected = await newCaller()

const HOUR_MS = 3_600_000
const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString()

type Refusal = [status: number, code: string, details: ErrorDetails]
const NO_AGENT: Refusal = [404, 'RCS_AGENT_NOT_FOUND', [['/agentId', 'names no active agent of this account']]]
const NO_TEMPLATE: Refusal = [404, 'RCS_TEMPLATE_NOT_FOUND', [['/message/templateId', 'names no template of this account']]]
const NOT_APPROVED: Refusal = [400, 'RCS_TEMPLATE_NOT_APPROVED', [['/message/templateId', 'names a template that is not APPROVED']]]
const EXPIRES_PAST: Refusal = [400, 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be in the future']]]
const EXPIRES_LATE: Refusal = [400, 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be at most 15 days ahead']]]
const MUST_BE_BASIC: Refusal = [400, 'RCS_INVALID_MESSAGE', [['/basic', 'must be true, as in the template']]]
const MUST_NOT_BE_BASIC: Refusal = [400, 'RCS_INVALID_MESSAGE', [['/basic', 'must be false or absent, as in the template']]]

/** The content of a message, wherever it is stored. */
async function contentOf(messageId: string): Promise<unknown> {
  const { rows } = await pool.query(
    `select coalesce(m.content, c.message) as content from messages m left join contents c on c.id = m.content_id where m.id = $1`,
    [messageId],
  )
  return rows[0].content
}

describe('POST /messages', () => {
  test('responds 202 with the id and Location once message, queue entry and key are stored', async () => {
    const { accountId, agentId, send, request } = await newCaller()
    const { status, headers, body } = await send('first', request())
    assert.equal(status, 202)
    assert.match(body.messageId, UUID_V7)
    assert.deepEqual(body, { messageId: body.messageId })
    assert.equal(headers.get('location'), `/v1/messages/${body.messageId}`)
    assert.equal(headers.get('idempotent-replayed'), null)
    assert.match(headers.get('ratelimit-policy') as string, /^"messages"/)
    assert.deepEqual(await countRows(pool, accountId), ONE_MESSAGE)
    const { rows } = await pool.query(
      `select q.account_id, q.agent_id, q.task, q.priority, q.attempts, q.lease, q.due_at <= now() as is_due,
         q.expires_at = m.expires_at as is_same_expiry, m.expires_at - m.accepted_at = '48 hours' as is_default
       from messages m join queue q on q.message_id = m.id where m.id = $1`,
      [body.messageId],
    )
    assert.deepEqual(rows, [
      {
        account_id: accountId,
        agent_id: agentId,
        task: 'send',
        priority: 0,
        attempts: 0,
        lease: null,
        is_due: true,
        is_same_expiry: true,
        is_default: true,
      },
    ])
  })

  test('keeps every field', async () => {
    const { agentId, accepted, read } = await newCaller()
    const inline = { buttons: [{ text: 'Open', url: 'https://example.com', id: 'a', type: 'url' }], content: 'Zażółć 😀', type: 'MESSAGE' }
    const expiresAt = inHours(1)
    const messageId = await accepted({ clientReferenceId: 'order-1001', expiresAt, basic: false, message: { inline } })
    assert.equal(JSON.stringify(await contentOf(messageId)), JSON.stringify(inline), 'in the same order too')
    const { acceptedAt, ...body } = (await read(messageId)).body
    const expected = { messageId, clientReferenceId: 'order-1001', agentId, recipient: RECIPIENT, status: 'ACCEPTED', basic: false }
    assert.deepEqual(body, { ...expected, test: false, expiresAt })
    const { rows } = await pool.query('select expires_at from expiries where message_id = $1', [messageId])
    assert.deepEqual(rows, [{ expires_at: new Date(expiresAt) }], 'it expires at its own time')
  })

  test('treats null as absent, at any depth', async () => {
    const { request, send, read } = await newCaller()
    const message = { templateId: null, inline: { ...TEXT, buttons: null, data: null } }
    const { status, body } = await send(newKey(), request({ clientReferenceId: null, expiresAt: null, basic: null, message }))
    assert.equal(status, 202)
    assert.deepEqual(await contentOf(body.messageId), TEXT)
    assert.equal('clientReferenceId' in (await read(body.messageId)).body, false)
  })

  test('accepts a recipient with or without +, spaces and punctuation, and keeps + and digits', async () => {
    const { accepted, read } = await newCaller()
    for (const recipient of ['+48500100200', '48500100200', '+48 500 100 200', '48 (500) 100-200', '+48.500.100.200']) {
      assert.equal((await read(await accepted({ recipient }))).body.recipient, RECIPIENT, recipient)
    }
  })

  for (const recipient of [
    '',
    '+',
    '123',
    '0048500100200',
    '+0500100200',
    '500100200x',
    'tel:+48500100200',
    '++48500100200',
    '+999500100200',
    '+150010020',
    '+150010020000',
    '+49111111111111111',
    '+81111111111111111111',
    '+٤٨٥٠٠١٠٠٢٠٠',
    '1'.repeat(5_000),
    '+48500100200\n',
    '+48500100200\0',
  ]) {
    test(`rejects the recipient ${JSON.stringify(recipient.slice(0, 40))}, and stores nothing`, async () => {
      const { accountId, request, send } = rejected
      const { status, body } = await send('k', request({ recipient }))
      assert.deepEqual([status, body.code, body.details?.[0]?.path], [400, 'RCS_INVALID_RECIPIENT', '/recipient'])
      assert.deepEqual(await countRows(pool, accountId), NOTHING)
    })
  }

  const unknown = 'is not known here; is it misspelt?'
  const notOne = 'must have exactly one of templateId and inline'
  const zoned = 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'
  const invalid: [fields: Record<string, unknown>, code: string, details: ErrorDetails][] = [
    [{ agentId: undefined }, 'RCS_INVALID_REQUEST', [['/agentId', 'is required']]],
    [{ agentId: '' }, 'RCS_INVALID_REQUEST', [['/agentId', 'must not be empty']]],
    [{ agentId: 'x'.repeat(201) }, 'RCS_INVALID_REQUEST', [['/agentId', 'must have at most 200 characters']]],
    [{ agentId: 'a\0' }, 'RCS_INVALID_REQUEST', [['/agentId', 'must not contain the character NUL']]],
    [{ smsFalback: {} }, 'RCS_INVALID_REQUEST', [['/smsFalback', unknown]]],
    [{ test: true }, 'RCS_INVALID_REQUEST', [['/test', unknown]]],
    [{ recipients: [RECIPIENT] }, 'RCS_INVALID_REQUEST', [['/recipients', unknown]]],
    [{ basic: 'true' }, 'RCS_INVALID_REQUEST', [['/basic', 'must be true or false']]],
    [{ clientReferenceId: 5 }, 'RCS_INVALID_REQUEST', [['/clientReferenceId', 'must be a string']]],
    [{ clientReferenceId: '😀'.repeat(256) }, 'RCS_INVALID_REQUEST', [['/clientReferenceId', 'must have at most 255 characters']]],
    [{ expiresAt: '2027-01-31T08:00:00' }, 'RCS_INVALID_REQUEST', [['/expiresAt', zoned]]],
    [{ expiresAt: '2027-02-30T08:00:00Z' }, 'RCS_INVALID_REQUEST', [['/expiresAt', zoned]]],
    [{ expiresAt: 1_800_000_000 }, 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be a string']]],
    [{ expiresAt: 'infinity' }, 'RCS_INVALID_REQUEST', [['/expiresAt', zoned]]],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be in the future']]],
    [{ expiresAt: '9999-12-31T23:59:59Z' }, 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be at most 15 days ahead']]],
    [{ recipient: undefined }, 'RCS_INVALID_RECIPIENT', [['/recipient', 'is required']]],
    [{ recipient: 48500100200 }, 'RCS_INVALID_RECIPIENT', [['/recipient', 'must be a string']]],
    [{ message: undefined }, 'RCS_INVALID_MESSAGE', [['/message', 'is required']]],
    [{ message: 'Hello' }, 'RCS_INVALID_MESSAGE', [['/message', 'must be an object']]],
    [{ message: {} }, 'RCS_INVALID_MESSAGE', [['/message', notOne]]],
    [{ message: { templateId: null, inline: null } }, 'RCS_INVALID_MESSAGE', [['/message', notOne]]],
    [{ message: { templateId: 1, inline: TEXT } }, 'RCS_INVALID_MESSAGE', [['/message', notOne]]],
    [{ message: { templateId: '1' } }, 'RCS_INVALID_MESSAGE', [['/message/templateId', 'must be a whole number']]],
    [{ message: { templateId: 1.5 } }, 'RCS_INVALID_MESSAGE', [['/message/templateId', 'must be a whole number']]],
    [{ message: { templateId: 0 } }, 'RCS_INVALID_MESSAGE', [['/message/templateId', 'must be at least 1']]],
    [{ message: { inline: TEXT, text: 'x' } }, 'RCS_INVALID_MESSAGE', [['/message/text', unknown]]],
    [{ message: { inline: { type: 'MESSAGE' } } }, 'RCS_INVALID_MESSAGE', [['/message/inline/content', 'is required']]],
    [
      { basic: true, message: { inline: { type: 'MESSAGE', content: `${'ą'.repeat(80)}a` } } },
      'RCS_INVALID_MESSAGE',
      [['/message/inline/content', 'has 161 bytes in UTF-8; Basic mode allows 160']],
    ],
    [
      { expiresAt: 'soon', recipient: 'me', smsFalback: 1, message: { inline: TEXT, templateId: 1 } },
      'RCS_INVALID_MESSAGE',
      [
        ['/smsFalback', unknown],
        ['/expiresAt', zoned],
        ['/message', notOne],
        ['/recipient', 'must be an international phone number, such as +48500100200'],
      ],
    ],
  ]
  for (const [fields, code, details] of invalid) {
    test(`rejects ${JSON.stringify(fields).slice(0, 100)} with ${code}, and stores nothing`, async () => {
      const { accountId, request, send } = rejected
      assertError(await send('k', request(fields)), 400, code, details)
      assert.deepEqual(await countRows(pool, accountId), NOTHING)
    })
  }

  test('rejects a query parameter, a body that is not an object and one that is not JSON', async () => {
    const { request, ask, send } = await newCaller()
    const withQuery = await ask('POST', '/messages?dryRun=true', request(), { 'Idempotency-Key': 'k' })
    assertError(withQuery, 400, 'RCS_INVALID_REQUEST', [['/dryRun', unknown]])
    assertError(await send('k', []), 400, 'RCS_INVALID_REQUEST', [['', 'must be an object']])
    assert.equal((await send('k', '{"cut off')).body.code, 'RCS_INVALID_REQUEST')
  })

  test('accepts a clientReferenceId of 255 code points, and an empty one', async () => {
    const { accepted, read } = await newCaller()
    for (const clientReferenceId of ['x'.repeat(255), '😀'.repeat(255), '']) {
      assert.equal((await read(await accepted({ clientReferenceId }))).body.clientReferenceId, clientReferenceId)
    }
  })

  test('accepts an expiresAt up to 15 days ahead, in any zone, and keeps it to the millisecond', async () => {
    const { request, send, accepted, read } = await newCaller()
    const almost = inHours(15 * 24 - 0.01)
    assert.equal((await read(await accepted({ expiresAt: almost }))).body.expiresAt, almost)
    assertError(await send(newKey(), request({ expiresAt: inHours(15 * 24 + 0.01) })), ...EXPIRES_LATE)
    assertError(await send(newKey(), request({ expiresAt: new Date(Date.now() - 1).toISOString() })), ...EXPIRES_PAST)
    const time = inHours(24)
    for (const [offset, hours] of [
      ['+01:00', 1],
      ['-0330', -3.5],
      ['+14', 14],
      ['+20:00', 20],
      ['-23:30', -23.5],
    ] as const) {
      const expiresAt = new Date(Date.parse(time) + hours * HOUR_MS).toISOString().replace('Z', offset)
      const { status, body } = await send(newKey(), request({ expiresAt }))
      assert.equal(status, 202, expiresAt)
      assert.equal((await read(body.messageId)).body.expiresAt, time, expiresAt)
    }
  })

  test('accepts a Basic text of 160 bytes', async () => {
    const { accepted, read } = await newCaller()
    const messageId = await accepted({ basic: true, message: { inline: { type: 'MESSAGE', content: 'ą'.repeat(80) } } })
    assert.equal((await read(messageId)).body.basic, true)
  })

  test('accepts a body of 256 KiB and keeps it; one byte more is 413', async () => {
    const { accountId, request, send } = await newCaller()
    const buttons = (card: number) =>
      ['a', 'b', 'c', 'd'].map((name) => ({ id: `${name}${card}`, type: 'quick_reply', text: 'Yes', payload: '€'.repeat(2048) }))
    const cards = Array.from({ length: 10 }, (_, index) => ({ title: `Card ${index}`, buttons: buttons(index) }))
    const inline = { type: 'CAROUSEL', data: { cards } }
    const json = JSON.stringify(request({ message: { inline } }))
    const padded = (bytes: number) => json + ' '.repeat(bytes - Buffer.byteLength(json))
    assert.equal((await send('k', padded(262_145))).status, 413)
    assert.deepEqual(await countRows(pool, accountId), NOTHING)
    const { status, body } = await send('k', padded(262_144))
    assert.equal(status, 202)
    assert.deepEqual(await contentOf(body.messageId), inline)
  })

  test('responds with the same 404 to an agent that is unknown, inactive, not assigned or of another account', async () => {
    const { accountId, agentId, request, send, ask } = await newCaller()
    const { agentId: foreign } = await newCaller()
    await createAgent(pool, { agentId: 'unassigned', name: 'unassigned', billingType: 'single', carrier: 'simulator' })
    await ask('PATCH', `/agents/${agentId}`, { active: false })
    for (const id of [agentId, foreign, 'unassigned', 'nobody', 'ą😀', "' or 1=1", agentId.toUpperCase(), `${agentId} `]) {
      assertError(await send('k', request({ agentId: id })), ...NO_AGENT)
    }
    assert.deepEqual(await countRows(pool, accountId), NOTHING)
  })

  test('responds with the same 404 to a template that is missing or of another account, and 400 to a draft', async () => {
    const { accountId, request, send, template } = await newCaller()
    const stranger = await newCaller()
    const theirs = [
      await stranger.template(),
      await stranger.template(TEXT, { status: 'DRAFT' }),
      await stranger.template(TEXT, { basic: true }),
    ]
    for (const templateId of [...theirs, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      assertError(await send('k', request({ message: { templateId } })), ...NO_TEMPLATE)
    }
    const templateId = await template(TEXT, { status: 'DRAFT' })
    assertError(await send('k', request({ message: { templateId } })), ...NOT_APPROVED)
    assert.deepEqual(await countRows(pool, accountId), NOTHING)
  })

  test('rejects a basic that differs from the template', async () => {
    const { request, send, template } = await newCaller()
    const plain = { templateId: await template() }
    const basic = { templateId: await template(TEXT, { basic: true }) }
    for (const fields of [{}, { basic: false }]) {
      assert.equal((await send(newKey(), request({ ...fields, message: plain }))).status, 202)
      assertError(await send(newKey(), request({ ...fields, message: basic })), ...MUST_BE_BASIC)
    }
    assert.equal((await send(newKey(), request({ basic: true, message: basic }))).status, 202)
    assertError(await send(newKey(), request({ basic: true, message: plain })), ...MUST_NOT_BE_BASIC)
  })

  test('keeps the content that the template had when the message was accepted', async () => {
    const { accepted, ask, template } = await newCaller()
    const templateId = await template({ type: 'MESSAGE', content: 'one' })
    const first = await accepted({ message: { templateId } })
    const changed = { name: 'Template', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: 'two' } }
    assert.equal((await ask('PUT', `/templates/${templateId}`, changed)).status, 200)
    const second = await accepted({ message: { templateId } })
    assert.equal((await ask('DELETE', `/templates/${templateId}`)).status, 204)
    assert.deepEqual(await contentOf(first), { type: 'MESSAGE', content: 'one' })
    assert.deepEqual(await contentOf(second), { type: 'MESSAGE', content: 'two' })
  })

  test('applies a change of a template or an agent to the next request', async () => {
    const { agentId, request, send, ask, template } = await newCaller()
    const templateId = await template()
    const change = (status: string) => ask('PUT', `/templates/${templateId}`, { name: 'X', basic: false, status, message: TEXT })
    for (let round = 0; round < 5; round += 1) {
      await change('DRAFT')
      assertError(await send(newKey(), request({ message: { templateId } })), ...NOT_APPROVED)
      await change('APPROVED')
      assert.equal((await send(newKey(), request({ message: { templateId } }))).status, 202)
    }
    await ask('PATCH', `/agents/${agentId}`, { active: false })
    assertError(await send(newKey(), request()), ...NO_AGENT)
  })

  test('responds 404 with the path of each button that sends a missing template', async () => {
    const { accountId, request, send, template } = await newCaller()
    const own = await template(TEXT, { status: 'DRAFT' })
    const foreign = await (await newCaller()).template()
    const reason = 'names no template of this account'
    const code = 'RCS_TEMPLATE_NOT_FOUND'
    const inline = sending(foreign, own, 2 ** 53 - 1, foreign)
    const details: [string, string][] = [0, 2, 3].map((place) => [`/message/inline/buttons/${place}/templateId`, reason])
    assertError(await send('k', request({ message: { inline } })), 404, code, details)
    const cards = [{ title: 'A' }, { title: 'B', buttons: sending(foreign).buttons }]
    const carousel = { type: 'CAROUSEL', data: { cards } }
    const path = '/message/inline/data/cards/1/buttons/0/templateId'
    assertError(await send('k', request({ message: { inline: carousel } })), 404, code, [[path, reason]])
    assert.deepEqual(await countRows(pool, accountId), NOTHING)
    assert.equal((await send('k', request({ message: { inline: sending(own, own) } }))).status, 202)
  })

  test('checks in order: 400 before 404, and 404 before 409', async () => {
    const { request, send, template } = await newCaller()
    const missing = { agentId: 'nobody' }
    const draft = { message: { templateId: await template(TEXT, { status: 'DRAFT' }) } }
    const basic = { message: { templateId: await template(TEXT, { basic: true }) } }
    const past = { expiresAt: '2020-01-01T00:00:00Z' }
    assert.equal((await send('used', request())).status, 202)
    const inOrder: [Record<string, unknown>, Refusal][] = [
      [{ ...missing, ...past, ...draft }, EXPIRES_PAST],
      [{ ...missing, ...draft, basic: true }, NOT_APPROVED],
      [{ ...missing, ...basic }, MUST_BE_BASIC],
      [{ ...past, message: { templateId: 2 ** 40 } }, EXPIRES_PAST],
      [{ ...missing, message: { templateId: 2 ** 40 } }, NO_AGENT],
      [{ message: { templateId: 2 ** 40 } }, NO_TEMPLATE],
      [missing, NO_AGENT],
    ]
    for (const key of ['used', 'new']) {
      for (const [fields, expected] of inOrder) assertError(await send(key, request(fields)), ...expected)
    }
  })

  test('logs no text, number or key', async () => {
    const { request, send } = await newCaller()
    await send('a-key-that-is-nobodys-business', request({ clientReferenceId: 'order-1001' }))
    assert.match(log(), /POST/)
    assert.doesNotMatch(log(), /Hello|Zażółć|500100200|order-1001|nobodys-business/)
  })
})
