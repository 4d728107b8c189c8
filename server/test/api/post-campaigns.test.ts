import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setModules } from '../../src/accounts/accounts.ts'
import { createAgent } from '../../src/agents/agents.ts'
import { countStored, fillGroup, NOTHING, ONE_CAMPAIGN, startCampaignService } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { newKey, smsFallback, UUID_V7 } from '../support/messages.ts'
import { assertError, type ErrorDetails } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'

const database = await createTestDatabase()
const { pool } = database
const { newCaller, log } = await startCampaignService(database)

// One caller whose requests are all rejected, and one whose requests are all accepted.
const rejected = await newCaller()
const accepted = await newCaller()
for (const caller of [rejected, accepted]) {
  await pool.query('insert into groups (account_id, number) select $1, generate_series(2, 101)', [caller.accountId])
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

type Fields = Record<string, unknown>

const unknown = 'is not known here; is it misspelt?'
const notOne = 'must have exactly one of templateId and inline'
const zoned = 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'
const NO_GROUP = 'names no group of this account'

describe('POST /campaigns', () => {
  test('responds 202 with the id and Location, and counts towards the default limit', async () => {
    const { accountId, create, campaign } = await newCaller()
    const { status, headers, body } = await create('first', campaign())
    assert.equal(status, 202)
    assert.match(body.campaignId, UUID_V7)
    assert.deepEqual(body, { campaignId: body.campaignId })
    assert.equal(headers.get('location'), `/v1/campaigns/${body.campaignId}`)
    assert.equal(headers.get('idempotent-replayed'), null)
    assert.doesNotMatch(headers.get('ratelimit-policy') as string, /^"messages"/)
    assert.deepEqual(await countStored(pool, accountId), ONE_CAMPAIGN)
  })

  test('treats null as absent', async () => {
    const { create, campaign } = accepted
    const absent = { clientReferenceId: null, scheduledAt: null, expiresAt: null, basic: null, smsFallback: null }
    const message = { templateId: null, inline: { ...TEXT, buttons: null } }
    assert.equal((await create(newKey(), campaign({ ...absent, message }))).status, 202)
  })

  const start = inMs(HOUR_MS)
  const afterStart = (ms: number) => new Date(Date.parse(start) + ms).toISOString()
  const request = 'RCS_INVALID_REQUEST'
  const invalid: [fields: Fields, code: string, details: ErrorDetails][] = [
    [{ name: undefined }, request, [['/name', 'is required']]],
    [{ name: '' }, request, [['/name', 'must not be empty']]],
    [{ name: '😀'.repeat(201) }, request, [['/name', 'must have at most 200 characters']]],
    [{ name: 7 }, request, [['/name', 'must be a string']]],
    [{ name: 'a\0' }, request, [['/name', 'must not contain the character NUL']]],
    [{ agentId: undefined }, request, [['/agentId', 'is required']]],
    [{ clientReferenceId: 'x'.repeat(256) }, request, [['/clientReferenceId', 'must have at most 255 characters']]],
    [{ basic: 'true' }, request, [['/basic', 'must be true or false']]],
    [{ segmentIds: undefined }, request, [['/segmentIds', 'is required']]],
    [{ segmentIds: [] }, request, [['/segmentIds', 'must have at least 1 item']]],
    [{ segmentIds: numbers(101) }, request, [['/segmentIds', 'must have at most 100 items']]],
    [{ segmentIds: 1 }, request, [['/segmentIds', 'must be an array']]],
    [{ segmentIds: ['1'] }, request, [['/segmentIds/0', 'must be a whole number']]],
    [{ segmentIds: [1, 2.5] }, request, [['/segmentIds/1', 'must be a whole number']]],
    [{ segmentIds: [0] }, request, [['/segmentIds/0', 'must be at least 1']]],
    [{ segmentIds: [2 ** 31] }, request, [['/segmentIds/0', 'must be at most 2147483647']]],
    [
      { segmentIds: [3, 1, 2, 1, 3] },
      request,
      [
        ['/segmentIds/3', 'is the same group as /segmentIds/1'],
        ['/segmentIds/4', 'is the same group as /segmentIds/0'],
      ],
    ],
    [{ scheduledAt: '2027-01-31T08:00:00' }, request, [['/scheduledAt', zoned]]],
    [{ scheduledAt: 1_800_000_000 }, request, [['/scheduledAt', 'must be a string']]],
    [{ scheduledAt: inMs(-HOUR_MS) }, request, [['/scheduledAt', 'must not be more than a minute in the past']]],
    [{ scheduledAt: inMs(366 * DAY_MS + MINUTE_MS) }, request, [['/scheduledAt', 'must be at most a year ahead']]],
    [{ scheduledAt: '9999-12-31T23:59:59Z' }, request, [['/scheduledAt', 'must be at most a year ahead']]],
    [{ expiresAt: '2027-02-30T08:00:00Z' }, request, [['/expiresAt', zoned]]],
    [{ expiresAt: inMs(-MINUTE_MS) }, request, [['/expiresAt', 'must be in the future']]],
    [{ expiresAt: inMs(15 * DAY_MS + MINUTE_MS) }, request, [['/expiresAt', 'must be at most 15 days after the start']]],
    [{ scheduledAt: start, expiresAt: start }, request, [['/expiresAt', 'must be later than scheduledAt']]],
    [{ scheduledAt: start, expiresAt: inMs(MINUTE_MS) }, request, [['/expiresAt', 'must be later than scheduledAt']]],
    [
      { scheduledAt: start, expiresAt: afterStart(15 * DAY_MS + 1) },
      request,
      [['/expiresAt', 'must be at most 15 days after scheduledAt']],
    ],
    [{ smsFalback: {} }, request, [['/smsFalback', unknown]]],
    [{ recipient: '+48500100200' }, request, [['/recipient', unknown]]],
    [{ segments: [1] }, request, [['/segments', unknown]]],
    [{ status: 'RUNNING' }, request, [['/status', unknown]]],
    [{ message: undefined }, 'RCS_INVALID_MESSAGE', [['/message', 'is required']]],
    [{ message: {} }, 'RCS_INVALID_MESSAGE', [['/message', notOne]]],
    [{ message: { templateId: 1, inline: TEXT } }, 'RCS_INVALID_MESSAGE', [['/message', notOne]]],
    [{ message: { templateId: '1' } }, 'RCS_INVALID_MESSAGE', [['/message/templateId', 'must be a whole number']]],
    [{ message: { inline: { type: 'MESSAGE' } } }, 'RCS_INVALID_MESSAGE', [['/message/inline/content', 'is required']]],
    [
      { basic: true, message: { inline: { type: 'MESSAGE', content: `${'ą'.repeat(80)}a` } } },
      'RCS_INVALID_MESSAGE',
      [['/message/inline/content', 'has 161 bytes in UTF-8; Basic mode allows 160']],
    ],
    [
      { basic: true, message: { inline: { type: 'CARD', data: { title: 'Card' } } } },
      'RCS_INVALID_MESSAGE',
      [['/message/inline/type', 'must be MESSAGE in Basic mode']],
    ],
    [
      { name: '', segmentIds: [], message: {}, scheduledAt: 'soon', colour: 'red' },
      'RCS_INVALID_MESSAGE',
      [
        ['/colour', unknown],
        ['/message', notOne],
        ['/name', 'must not be empty'],
        ['/segmentIds', 'must have at least 1 item'],
        ['/scheduledAt', zoned],
      ],
    ],
  ]
  for (const [fields, code, details] of invalid) {
    test(`rejects ${JSON.stringify(fields).slice(0, 100)} with ${code}`, async () => {
      assertError(await rejected.create('k', rejected.campaign(fields)), 400, code, details)
    })
  }

  const sms = 'RCS_INVALID_SMS_FALLBACK'
  const after = '/smsFallbackAfterExpiry'
  const sendTime = '/smsFallback/planParams/sendTime'
  const sender = 'must be 1 to 11 letters (A to Z, a to z), digits, spaces, `.`, `-` or `_` with at least one letter; or 3 to 15 digits'
  const fallback = { smsFallback: smsFallback() }
  const smsInvalid: [fields: Fields, details: ErrorDetails][] = [
    [{ smsFallback: smsFallback({ sender: '' }) }, [['/smsFallback/planParams/sender', sender]]],
    [{ smsFallback: smsFallback({ smsShipmentType: 2 }) }, [['/smsFallback/planParams/smsShipmentType', 'must be 1']]],
    [{ smsFallback: { ...smsFallback(), smsMessagesPlan: [] } }, [['/smsFallback/smsMessagesPlan', 'must have at least 1 item']]],
    [
      { smsFallback: smsFallback({}, { content: 'x'.repeat(161) }) },
      [['/smsFallback/smsMessagesPlan/0/content', 'takes 2 SMS in GSM-7; set multipart to allow up to 10']],
    ],
    [{ scheduledAt: start, smsFallback: smsFallback({ sendTime: start }) }, [[sendTime, 'must be later than scheduledAt']]],
    [{ scheduledAt: start, smsFallback: smsFallback({ sendTime: afterStart(-1) }) }, [[sendTime, 'must be later than scheduledAt']]],
    [
      { smsFallback: smsFallback({ sendTime: inMs(-MINUTE_MS) }) },
      [[sendTime, 'must be later than scheduledAt, or than now if scheduledAt is absent']],
    ],
    [{ expiresAt: afterStart(0), smsFallbackAfterExpiry: { delay: 1 } }, [[after, 'requires smsFallback, which has the text of the SMS']]],
    [{ ...fallback, smsFallbackAfterExpiry: { delay: 1 } }, [[after, 'requires expiresAt']]],
    [
      { ...fallback, expiresAt: afterStart(0), smsFallbackAfterExpiry: { sendTime: afterStart(0) } },
      [[`${after}/sendTime`, 'must be later than expiresAt']],
    ],
    [{ ...fallback, expiresAt: afterStart(0), smsFallbackAfterExpiry: {} }, [[after, 'must have at least 1 of sendTime, delay']]],
  ]
  for (const [fields, details] of smsInvalid) {
    test(`rejects ${JSON.stringify(fields).slice(0, 140)} with ${sms}`, async () => {
      assertError(await rejected.create('k', rejected.campaign(fields)), 400, sms, details)
    })
  }

  const soon = inMs(30 * MINUTE_MS)
  const valid: [what: string, fields: () => Fields][] = [
    ['a name of 200 code points', () => ({ name: '😀'.repeat(200) })],
    ['a name of one', () => ({ name: 'x' })],
    ['100 groups', () => ({ segmentIds: numbers(100) })],
    ['groups in any order', () => ({ segmentIds: [7, 1, 3] })],
    ['a start almost a minute ago', () => ({ scheduledAt: inMs(-55_000) })],
    ['a start almost a year ahead', () => ({ scheduledAt: inMs(365 * DAY_MS - MINUTE_MS) })],
    ['an end one millisecond after the start', () => ({ scheduledAt: start, expiresAt: afterStart(1) })],
    ['an end 15 days after the start', () => ({ scheduledAt: start, expiresAt: afterStart(15 * DAY_MS) })],
    ['an end almost 15 days from now, to start now', () => ({ expiresAt: inMs(15 * DAY_MS - MINUTE_MS) })],
    ['Basic of 160 bytes', () => ({ basic: true, message: { inline: { type: 'MESSAGE', content: 'ą'.repeat(80) } } })],
    ['an SMS one millisecond after the start', () => ({ scheduledAt: start, smsFallback: smsFallback({ sendTime: afterStart(1) }) })],
    ['an SMS a minute from now, to start now', () => ({ smsFallback: smsFallback({ sendTime: inMs(MINUTE_MS) }) })],
    [
      'an SMS one millisecond after the expiry',
      () => ({
        ...fallback,
        expiresAt: soon,
        smsFallbackAfterExpiry: { sendTime: new Date(Date.parse(soon) + 1).toISOString() },
      }),
    ],
  ]
  for (const [what, fields] of valid) {
    test(`accepts ${what}`, async () => {
      const { status, body } = await accepted.create(newKey(), accepted.campaign(fields()))
      assert.equal(status, 202, JSON.stringify(body))
    })
  }

  test('responds 404 with the path of each group that is missing or of another account', async () => {
    const { accountId } = await newCaller()
    await fillGroup(pool, accountId, 4_000, [])
    const details: ErrorDetails = [
      ['/segmentIds/0', NO_GROUP],
      ['/segmentIds/2', NO_GROUP],
    ]
    assertError(await rejected.create('k', rejected.campaign({ segmentIds: [4_000, 1, 999] })), 404, 'RCS_SEGMENT_NOT_FOUND', details)
  })

  test('responds with the same 404 to an agent that is unknown, inactive, not assigned or of another account', async () => {
    const { agentId: own, campaign, create, ask } = await newCaller()
    await createAgent(pool, { agentId: 'unassigned', name: 'unassigned', billingType: 'single', carrier: 'simulator' })
    await ask('PATCH', `/agents/${own}`, { active: false })
    for (const agentId of [own, accepted.agentId, 'unassigned', 'nobody']) {
      const response = await create('k', campaign({ agentId }))
      assertError(response, 404, 'RCS_AGENT_NOT_FOUND', [['/agentId', 'names no active agent of this account']])
    }
  })

  test('rejects a template that is missing, of another account, a draft, or of another basic', async () => {
    const { create, campaign, template } = rejected
    const missing: ErrorDetails = [['/message/templateId', 'names no template of this account']]
    for (const templateId of [await accepted.template(), Number.MAX_SAFE_INTEGER]) {
      assertError(await create('k', campaign({ message: { templateId } })), 404, 'RCS_TEMPLATE_NOT_FOUND', missing)
    }
    const draft = { message: { templateId: await template(TEXT, { status: 'DRAFT' }) } }
    const notApproved: ErrorDetails = [['/message/templateId', 'names a template that is not APPROVED']]
    assertError(await create('k', campaign(draft)), 400, 'RCS_TEMPLATE_NOT_APPROVED', notApproved)
    const plain = { message: { templateId: await template() } }
    const basic = { message: { templateId: await template(TEXT, { basic: true }) } }
    const mustNot: ErrorDetails = [['/basic', 'must be false or absent, as in the template']]
    assertError(await create('k', campaign({ ...plain, basic: true })), 400, 'RCS_INVALID_MESSAGE', mustNot)
    const must: ErrorDetails = [['/basic', 'must be true, as in the template']]
    assertError(await create('k', campaign(basic)), 400, 'RCS_INVALID_MESSAGE', must)
  })

  test('responds 404 with the path of a button that sends a missing template', async () => {
    const inline = sending(await rejected.template(), await accepted.template())
    const details: ErrorDetails = [['/message/inline/buttons/1/templateId', 'names no template of this account']]
    assertError(await rejected.create('k', rejected.campaign({ message: { inline } })), 404, 'RCS_TEMPLATE_NOT_FOUND', details)
  })

  test('checks in order: 400 before 404', async () => {
    const { create, campaign, template } = rejected
    const draft = { message: { templateId: await template(TEXT, { status: 'DRAFT' }) } }
    const missing = { agentId: 'nobody', segmentIds: [999] }
    assert.equal((await create('k', campaign({ ...missing, ...draft }))).body.code, 'RCS_TEMPLATE_NOT_APPROVED')
    assert.equal((await create('k', campaign({ ...missing, ...draft, scheduledAt: inMs(-HOUR_MS) }))).body.code, 'RCS_INVALID_REQUEST')
    const early = { smsFallback: smsFallback({ sendTime: inMs(-MINUTE_MS) }) }
    assert.equal((await create('k', campaign({ ...missing, ...early }))).body.code, sms)
    assert.equal((await create('k', campaign(missing))).body.code, 'RCS_AGENT_NOT_FOUND')
  })

  test('responds 403 to an SMS fallback without the module sms', async () => {
    const { accountId, create, campaign } = await newCaller()
    await setModules(pool, accountId, ['rcs'])
    const details: ErrorDetails = [['/smsFallback', 'requires the module sms, which the account does not have']]
    assertError(await create('k', campaign(fallback)), 403, 'RCS_MODULE_NOT_AVAILABLE', details)
    assert.equal((await create('k', campaign())).status, 202)
  })

  test('rejects a query parameter, a body that is not an object and one that is not JSON', async () => {
    const { campaign, ask, create } = rejected
    const withQuery = await ask('POST', '/campaigns?dryRun=true', campaign(), { 'Idempotency-Key': 'k' })
    assertError(withQuery, 400, request, [['/dryRun', unknown]])
    assertError(await create('k', []), 400, request, [['', 'must be an object']])
    assert.equal((await create('k', '{"cut off')).body.code, request)
  })

  test('stores nothing for any rejected request', async () => {
    const { rows } = await pool.query('select count(*) from templates where account_id = $1', [rejected.accountId])
    assert.deepEqual(await countStored(pool, rejected.accountId), { ...NOTHING, contents: rows[0].count })
  })

  test('logs no name, text or key', async () => {
    await accepted.create('a-key-that-is-nobodys-business', accepted.campaign({ name: 'Secret sale' }))
    assert.match(log(), /POST/)
    assert.doesNotMatch(log(), /Secret sale|Hello|nobodys-business/)
  })
})
