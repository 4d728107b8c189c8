import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { countRows, type MessageCaller, NOTHING, UUID_V7 } from '../support/messages.ts'
import { assertError, type ErrorDetails } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'
import { newCaller, pool } from './messages-service.ts'

// All its requests are rejected.
const rejected = await newCaller()

const NUMBERS = ['+48500100201', '+48500100202', '+48500100203', '+48500100204', '+48500100205']

/** A valid request, with other fields. */
function requestOf({ agentId }: MessageCaller, fields: Record<string, unknown> = {}) {
  return { agentId, recipients: NUMBERS, message: { inline: TEXT }, ...fields }
}

describe('POST /messages/test', () => {
  test('responds 202 with a test message for each number, in order, without a key', async () => {
    const caller = await newCaller()
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const recipients = ['48500100205', ...NUMBERS.slice(0, 4)]
    const request = requestOf(caller, { recipients, clientReferenceId: 'try-1', expiresAt, basic: true })
    const { status, headers, body } = await caller.sendTest(request)
    assert.equal(status, 202)
    assert.match(headers.get('ratelimit-policy') as string, /^"default"/)
    const ids = body.items.map(({ messageId }: { messageId: string }) => messageId)
    assert.ok(ids.every((id: string) => UUID_V7.test(id)))
    assert.equal(new Set(ids).size, 5)
    const inOrder = ['+48500100205', ...NUMBERS.slice(0, 4)]
    assert.deepEqual(body, { items: inOrder.map((recipient, index) => ({ recipient, messageId: ids[index] })) })
    for (const { recipient, messageId } of body.items) {
      const { acceptedAt, ...message } = (await caller.read(messageId)).body
      const { agentId } = caller
      const expected = { messageId, clientReferenceId: 'try-1', agentId, recipient, status: 'ACCEPTED', basic: true, test: true, expiresAt }
      assert.deepEqual(message, expected)
    }
    assert.deepEqual(await countRows(pool, caller.accountId), { messages: 5, queue: 5, expiries: 5, keys: 0 })
  })

  test('creates messages for each of several equal concurrent requests', async () => {
    const caller = await newCaller()
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => caller.sendTest(requestOf(caller, { recipients: NUMBERS.slice(0, 2) }))),
    )
    assert.ok(responses.every(({ status }) => status === 202))
    const { rows } = await pool.query('select recipient, count(*) from messages where account_id = $1 and test group by 1 order by 1', [
      caller.accountId,
    ])
    assert.deepEqual(rows, [
      { recipient: '+48500100201', count: 20 },
      { recipient: '+48500100202', count: 20 },
    ])
  })

  const unknown = 'is not known here; is it misspelt?'
  const notPossible = 'must be an international phone number, such as +48500100200'
  const invalid: [fields: Record<string, unknown>, code: string, details: ErrorDetails][] = [
    [{ recipients: [...NUMBERS, '+48500100206'] }, 'RCS_INVALID_RECIPIENT', [['/recipients', 'must have at most 5 items']]],
    [{ recipients: [] }, 'RCS_INVALID_RECIPIENT', [['/recipients', 'must have at least 1 item']]],
    [{ recipients: undefined }, 'RCS_INVALID_RECIPIENT', [['/recipients', 'is required']]],
    [{ recipients: NUMBERS[0] }, 'RCS_INVALID_RECIPIENT', [['/recipients', 'must be an array']]],
    [
      { recipients: ['+48500100201', '+48500100202', '+48500100201', '48 500 100 202'] },
      'RCS_INVALID_RECIPIENT',
      [
        ['/recipients/2', 'is the same number as /recipients/0'],
        ['/recipients/3', 'is the same number as /recipients/1'],
      ],
    ],
    [{ recipients: ['+48500100201', '123', '123'] }, 'RCS_INVALID_RECIPIENT', [1, 2].map((place) => [`/recipients/${place}`, notPossible])],
    [{ recipients: ['+48500100201', 48500100202] }, 'RCS_INVALID_RECIPIENT', [['/recipients/1', 'must be a string']]],
    [{ recipients: ['+48500100201', null] }, 'RCS_INVALID_RECIPIENT', [['/recipients/1', 'must be a string']]],
    [{ recipient: '+48500100201' }, 'RCS_INVALID_REQUEST', [['/recipient', unknown]]],
    [{ smsFallback: { planParams: { sender: 'Shop' } } }, 'RCS_INVALID_REQUEST', [['/smsFallback', unknown]]],
    [{ smsFallbackAfterExpiry: { delay: 5 } }, 'RCS_INVALID_REQUEST', [['/smsFallbackAfterExpiry', unknown]]],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, 'RCS_INVALID_REQUEST', [['/expiresAt', 'must be in the future']]],
    [{ message: {} }, 'RCS_INVALID_MESSAGE', [['/message', 'must have exactly one of templateId and inline']]],
    [
      { basic: true, message: { inline: { ...TEXT, content: 'x'.repeat(161) } } },
      'RCS_INVALID_MESSAGE',
      [['/message/inline/content', 'has 161 bytes in UTF-8; Basic mode allows 160']],
    ],
  ]
  for (const [fields, code, details] of invalid) {
    test(`rejects ${JSON.stringify(fields).slice(0, 100)} with ${code}, and stores nothing`, async () => {
      assertError(await rejected.sendTest(requestOf(rejected, fields)), 400, code, details)
      assert.deepEqual(await countRows(pool, rejected.accountId), NOTHING)
    })
  }

  test('applies the rules of POST /messages to agents and templates, and stores nothing for any number', async () => {
    const caller = await newCaller()
    const draft = await caller.template(TEXT, { status: 'DRAFT' })
    const basic = await caller.template(TEXT, { basic: true })
    const faults: [fields: Record<string, unknown>, status: number, code: string, path: string][] = [
      [{ agentId: 'nobody' }, 404, 'RCS_AGENT_NOT_FOUND', '/agentId'],
      [{ message: { templateId: draft } }, 400, 'RCS_TEMPLATE_NOT_APPROVED', '/message/templateId'],
      [{ message: { templateId: basic } }, 400, 'RCS_INVALID_MESSAGE', '/basic'],
      [{ message: { templateId: 2 ** 40 } }, 404, 'RCS_TEMPLATE_NOT_FOUND', '/message/templateId'],
      [{ message: { inline: sending(draft, 2 ** 40) } }, 404, 'RCS_TEMPLATE_NOT_FOUND', '/message/inline/buttons/1/templateId'],
    ]
    for (const [fields, status, code, path] of faults) {
      const response = await caller.sendTest(requestOf(caller, fields))
      assert.deepEqual([response.status, response.body.code, response.body.details.map((each: any) => each.path)], [status, code, [path]])
    }
    assert.deepEqual(await countRows(pool, caller.accountId), NOTHING)
    assert.equal((await caller.sendTest(requestOf(caller, { basic: true, message: { templateId: basic } }))).status, 202)
  })
})
