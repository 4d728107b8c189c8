import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setModules } from '../../src/accounts/accounts.ts'
import {
  callerAt,
  countRows,
  type MessageCaller,
  NOTHING,
  newKey,
  ONE_MESSAGE,
  RECIPIENT,
  smsFallback,
  startMessageService,
} from '../support/messages.ts'
import { assertError } from '../support/service.ts'
import { database, pool } from './messages-service.ts'

// What POST /messages accepts and rejects as a fallback: each rule of the specification and the contract, on both sides of its limit.

const PUBLIC_URL = 'https://s.example'
// The address, "/l/", and a code of 11 characters.
const SHORT_LINK_LENGTH = 31
const { newCaller } = await startMessageService(database, { HERALD_PUBLIC_URL: PUBLIC_URL })

// One caller whose requests are all rejected, and one whose requests are all accepted.
const rejected = await newCaller()
const accepting = await newCaller()

const EXPIRES_AT = new Date(Date.now() + 3_600_000).toISOString()
const oneMillisecondAfter = (time: string) => new Date(Date.parse(time) + 1).toISOString()
const atOffset = (time: string) => new Date(Date.parse(time) + 2 * 3_600_000).toISOString().replace('Z', '+02:00')

type Fields = Record<string, unknown>
const plan = (planParams: Fields): Fields => ({ smsFallback: smsFallback(planParams) })
const text = (variant: Fields): Fields => ({ smsFallback: smsFallback({}, variant) })
const afterExpiry = (fields: unknown): Fields => ({
  smsFallback: smsFallback(),
  expiresAt: EXPIRES_AT,
  smsFallbackAfterExpiry: fields,
})

async function countFallbacks(accountId: number): Promise<number> {
  const { rows } = await pool.query('select count(*) from sms_fallbacks where account_id = $1', [accountId])
  return rows[0].count
}

async function assertNothingStored({ accountId }: MessageCaller): Promise<void> {
  assert.deepEqual({ ...(await countRows(pool, accountId)), fallbacks: await countFallbacks(accountId) }, { ...NOTHING, fallbacks: 0 })
}

/** The fields in short, for the name of a test: a long run of a character is counted. */
function named(fields: Fields): string {
  return JSON.stringify(fields).replaceAll(/(.)\1{9,}/gu, (run, character) => `${character}×${[...run].length}`)
}

const PARAMS = '/smsFallback/planParams'
const VARIANT = '/smsFallback/smsMessagesPlan/0'
const AFTER = '/smsFallbackAfterExpiry'
const unknown = 'is not known here; is it misspelt?'
const zoned = 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'
const wrongSender = 'must be 1 to 11 letters (A to Z, a to z), digits, spaces, `.`, `-` or `_` with at least one letter; or 3 to 15 digits'
const wrongNumber = 'must be an international phone number, such as +48500100200'
const wrongFlag = 'must be true or false'
const lacking = (characters: string) => `has ${characters}, which GSM-7 lacks; use mode AUTO or UNICODE`
const single = (segments: number, encoding: string) => `takes ${segments} SMS in ${encoding}; set multipart to allow up to 10`
const several = (segments: number, encoding: string) => `takes ${segments} SMS in ${encoding}; the limit is 10`
const NUMBERS = ['+48500100201', '48500100202', '+48 500 100 203', '+48500100204', '+48500100205']

const SHAPES: [fields: Fields, path: string, reason: string][] = [
  [{ smsFallback: 'SMS' }, '/smsFallback', 'must be an object'],
  [{ smsFallback: { ...smsFallback(), planParams: undefined } }, PARAMS, 'is required'],
  [{ smsFallback: { ...smsFallback(), smsMessagesPlan: undefined } }, '/smsFallback/smsMessagesPlan', 'is required'],
  [{ smsFallback: { ...smsFallback(), smsMessagesPlan: [] } }, '/smsFallback/smsMessagesPlan', 'must have at least 1 item'],
  [
    { smsFallback: { ...smsFallback(), smsMessagesPlan: [{ content: 'A' }, { content: 'B' }] } },
    '/smsFallback/smsMessagesPlan',
    'must have at most 1 item',
  ],
  [{ smsFallback: { ...smsFallback(), smsMessagesPlan: [null] } }, VARIANT, 'must be an object'],
  [{ smsFallback: { ...smsFallback(), smsMessagePlan: [] } }, '/smsFallback/smsMessagePlan', unknown],
  [plan({ consentIds: [1] }), `${PARAMS}/consentIds`, unknown],
  [text({ multiPart: true }), `${VARIANT}/multiPart`, unknown],
  [afterExpiry({ delay: 1, sendtime: EXPIRES_AT }), `${AFTER}/sendtime`, unknown],
]

const SENDERS: [fields: Fields, path: string, reason: string][] = [
  undefined,
  '',
  'Abcdefghijkl',
  '12',
  '1234567890123456',
  '12 34',
  '._-',
  'My+Shop',
  'Żabka',
  'Shop\n',
].map((sender) => [plan({ sender }), `${PARAMS}/sender`, sender === undefined ? 'is required' : wrongSender])

const FLAGS: [fields: Fields, path: string, reason: string][] = [
  ...['controlGroup', 'quarantine', 'useTestNumbers', 'ignoreStatus'].map(
    (name) => [plan({ [name]: 'true' }), `${PARAMS}/${name}`, wrongFlag] as [Fields, string, string],
  ),
  ...['multipart', 'diacriticalSigns', 'urlShortening'].map(
    (name) => [text({ [name]: 1 }), `${VARIANT}/${name}`, wrongFlag] as [Fields, string, string],
  ),
]

const PARAMETERS: [fields: Fields, path: string, reason: string][] = [
  [plan({ mode: 'gsm7' }), `${PARAMS}/mode`, 'must be one of AUTO, GSM7, UNICODE'],
  [plan({ campaign: 'x'.repeat(101) }), `${PARAMS}/campaign`, 'must have at most 100 characters'],
  [plan({ campaign: 7 }), `${PARAMS}/campaign`, 'must be a string'],
  [plan({ smsShipmentType: 2 }), `${PARAMS}/smsShipmentType`, 'must be 1'],
  [plan({ smsShipmentType: '1' }), `${PARAMS}/smsShipmentType`, 'must be 1'],
  [plan({ sendTime: '2027-01-31T08:00:00' }), `${PARAMS}/sendTime`, zoned],
  [plan({ sendTime: '2027-02-30T08:00:00Z' }), `${PARAMS}/sendTime`, zoned],
  [plan({ testNumbers: [...NUMBERS, '+48500100206'] }), `${PARAMS}/testNumbers`, 'must have at most 5 items'],
  [plan({ testNumbers: ['+48500100201', '123'] }), `${PARAMS}/testNumbers/1`, wrongNumber],
  [plan({ testNumbers: [48500100201] }), `${PARAMS}/testNumbers/0`, 'must be a string'],
  [plan({ testNumbers: '+48500100201' }), `${PARAMS}/testNumbers`, 'must be an array'],
  [plan({ consentIDS: [1, '2'] }), `${PARAMS}/consentIDS/1`, 'must be a whole number'],
  [plan({ consentIDS: [1.5] }), `${PARAMS}/consentIDS/0`, 'must be a whole number'],
  [plan({ consentIDS: [2 ** 31] }), `${PARAMS}/consentIDS/0`, 'must be at most 2147483647'],
  [plan({ consentIDS: 1 }), `${PARAMS}/consentIDS`, 'must be an array'],
  [plan({ delay: -1 }), `${PARAMS}/delay`, 'must be at least 0'],
  [plan({ delay: 604_801 }), `${PARAMS}/delay`, 'must be at most 604800'],
  [plan({ delay: 1.5 }), `${PARAMS}/delay`, 'must be a whole number'],
  [plan({ delay: '1' }), `${PARAMS}/delay`, 'must be a whole number'],
]

const TEXTS: [fields: Fields, path: string, reason: string][] = [
  [text({ content: undefined }), `${VARIANT}/content`, 'is required'],
  [text({ content: '' }), `${VARIANT}/content`, 'must not be empty'],
  [text({ content: 'a'.repeat(1531), multipart: true }), `${VARIANT}/content`, 'must have at most 1530 characters'],
  [text({ content: 'a\0' }), `${VARIANT}/content`, 'must not contain the character NUL'],
  [text({ content: 'a'.repeat(161) }), `${VARIANT}/content`, single(2, 'GSM-7')],
  [text({ content: 'a'.repeat(161), multipart: false }), `${VARIANT}/content`, single(2, 'GSM-7')],
  [text({ content: '€'.repeat(81) }), `${VARIANT}/content`, single(2, 'GSM-7')],
  [text({ content: 'ж'.repeat(71) }), `${VARIANT}/content`, single(2, 'UCS-2')],
  [text({ content: '😀'.repeat(36) }), `${VARIANT}/content`, single(2, 'UCS-2')],
  [text({ content: 'ą'.repeat(71), diacriticalSigns: true }), `${VARIANT}/content`, single(2, 'UCS-2')],
  [{ smsFallback: smsFallback({ mode: 'UNICODE' }, { content: 'a'.repeat(71) }) }, `${VARIANT}/content`, single(2, 'UCS-2')],
  [text({ content: '€'.repeat(766), multipart: true }), `${VARIANT}/content`, several(11, 'GSM-7')],
  [text({ content: 'ж'.repeat(671), multipart: true }), `${VARIANT}/content`, several(11, 'UCS-2')],
  [{ smsFallback: smsFallback({ mode: 'GSM7' }, { content: 'a ж' }) }, `${VARIANT}/content`, lacking('"ж"')],
  [
    { smsFallback: smsFallback({ mode: 'GSM7' }, { content: 'Zażółć', diacriticalSigns: true }) },
    `${VARIANT}/content`,
    lacking('"ż", "ó", "ł", "ć"'),
  ],
  [text({ abTestDivision: 0 }), `${VARIANT}/abTestDivision`, 'must be at least 1'],
  [text({ abTestDivision: 101 }), `${VARIANT}/abTestDivision`, 'must be at most 100'],
  [text({ abTestDivision: 1.5 }), `${VARIANT}/abTestDivision`, 'must be a whole number'],
]

const AFTER_EXPIRY: [fields: Fields, path: string, reason: string][] = [
  [{ ...afterExpiry({ delay: 0 }), smsFallback: undefined }, AFTER, 'requires smsFallback, which has the text of the SMS'],
  [{ ...afterExpiry({ delay: 0 }), smsFallback: null }, AFTER, 'requires smsFallback, which has the text of the SMS'],
  [{ ...afterExpiry({ delay: 0 }), expiresAt: undefined }, AFTER, 'requires expiresAt'],
  [afterExpiry({}), AFTER, 'must have at least 1 of sendTime, delay'],
  [afterExpiry({ sendTime: null }), AFTER, 'must have at least 1 of sendTime, delay'],
  [afterExpiry(0), AFTER, 'must be an object'],
  [afterExpiry({ delay: -1 }), `${AFTER}/delay`, 'must be at least 0'],
  [afterExpiry({ delay: 604_801 }), `${AFTER}/delay`, 'must be at most 604800'],
  [afterExpiry({ delay: 0.5 }), `${AFTER}/delay`, 'must be a whole number'],
  [afterExpiry({ sendTime: EXPIRES_AT.replace('Z', '') }), `${AFTER}/sendTime`, zoned],
  [afterExpiry({ sendTime: EXPIRES_AT }), `${AFTER}/sendTime`, 'must be later than expiresAt'],
  [afterExpiry({ sendTime: atOffset(EXPIRES_AT), delay: 60 }), `${AFTER}/sendTime`, 'must be later than expiresAt'],
]

describe('POST /messages with a fallback', () => {
  for (const [fields, path, reason] of [...SHAPES, ...SENDERS, ...FLAGS, ...PARAMETERS, ...TEXTS, ...AFTER_EXPIRY]) {
    test(`rejects ${named(fields)}, and stores nothing`, async () => {
      assertError(await rejected.send('k', rejected.request(fields)), 400, 'RCS_INVALID_SMS_FALLBACK', [[path, reason]])
      await assertNothingStored(rejected)
    })
  }

  test('rejects a misspelt smsFalback', async () => {
    const response = await rejected.send('k', rejected.request({ smsFalback: smsFallback() }))
    assertError(response, 400, 'RCS_INVALID_REQUEST', [['/smsFalback', unknown]])
    await assertNothingStored(rejected)
  })

  test('reports all errors at once', async () => {
    const fields = { ...afterExpiry({ delay: -1 }), smsFallback: smsFallback({ sender: '', delay: 1.5 }, { abTestDivision: 0 }) }
    const { status, body } = await rejected.send('k', rejected.request(fields))
    assert.deepEqual([status, body.code], [400, 'RCS_INVALID_SMS_FALLBACK'])
    const paths = [`${PARAMS}/delay`, `${PARAMS}/sender`, `${VARIANT}/abTestDivision`, `${AFTER}/delay`]
    assert.deepEqual(body.details.map(({ path }: { path: string }) => path).toSorted(), paths.toSorted())
    await assertNothingStored(rejected)
  })

  const right: [fields: Fields, segments?: number][] = [
    ...['A', 'Abcdefghijk', '1234567890a', 'a ._-', '123', '123456789012345'].map((sender): [Fields] => [plan({ sender })]),
    [plan({ campaign: '😀'.repeat(100) })],
    [plan({ campaign: '' })],
    [plan({ smsShipmentType: 1 })],
    [plan({ sendTime: '2020-01-01T00:00:00Z' })],
    [plan({ sendTime: '2027-01-31T09:00+01:00' })],
    [plan({ testNumbers: NUMBERS, useTestNumbers: true })],
    [plan({ testNumbers: [], useTestNumbers: true })],
    [plan({ consentIDS: [0, 2 ** 31 - 1, 0] })],
    [plan({ consentIDS: [] })],
    [plan({ delay: 0 })],
    [plan({ delay: 604_800 })],
    [plan({ mode: null, campaign: null, testNumbers: null, delay: null, controlGroup: null })],
    [text({ content: 'a' })],
    [text({ content: 'a'.repeat(160) })],
    [text({ content: '€'.repeat(80) })],
    [text({ content: 'ж'.repeat(70) })],
    [text({ content: '😀'.repeat(35) })],
    [text({ content: 'ą'.repeat(160) })],
    [text({ content: 'ą'.repeat(160), diacriticalSigns: false })],
    [{ smsFallback: smsFallback({ mode: 'GSM7' }, { content: 'ą'.repeat(160) }) }],
    [{ smsFallback: smsFallback({ mode: 'UNICODE' }, { content: 'a'.repeat(70) }) }],
    [text({ content: 'a'.repeat(161), multipart: true }), 2],
    [text({ content: 'a'.repeat(307), multipart: true }), 3],
    [text({ content: 'ж'.repeat(71), multipart: true }), 2],
    [text({ content: 'a'.repeat(1530), multipart: true }), 10],
    [text({ content: 'ж'.repeat(670), multipart: true }), 10],
    [text({ abTestDivision: 1 })],
    [text({ abTestDivision: 100 })],
    [afterExpiry({ sendTime: oneMillisecondAfter(EXPIRES_AT) })],
    [afterExpiry({ sendTime: atOffset(oneMillisecondAfter(EXPIRES_AT)), delay: 604_800 })],
    [afterExpiry({ delay: 0 })],
    [afterExpiry(null)],
  ]
  for (const [fields, segments = 1] of right) {
    test(`accepts ${named(fields)}, which is ${segments} SMS`, async () => {
      const { status, body } = await accepting.send(newKey(), accepting.request(fields))
      assert.equal(status, 202, JSON.stringify(body))
      assert.equal((await accepting.read(body.messageId)).body.smsFallback.segments, segments)
    })
  }

  test('shows the fallback as WAITING, with its label and the number of SMS', async () => {
    const { agentId, accepted, read } = accepting
    const fields = {
      smsFallback: smsFallback({ campaign: 'Autumn' }, { content: 'a'.repeat(161), multipart: true }),
      expiresAt: EXPIRES_AT,
    }
    const messageId = await accepted(fields)
    const { acceptedAt, ...message } = (await read(messageId)).body
    const common = { messageId, agentId, recipient: RECIPIENT, status: 'ACCEPTED', basic: false, test: false, expiresAt: EXPIRES_AT }
    assert.deepEqual(message, { ...common, smsFallback: { status: 'WAITING', campaign: 'Autumn', segments: 2 } })
    const without = (await read(await accepted())).body
    assert.equal('smsFallback' in without, false)
  })
})

describe('urlShortening counts with the length of a short link', () => {
  const LONG = `https://shop.example/${'p'.repeat(100)}`
  const room = 160 - SHORT_LINK_LENGTH - 1
  const shortened = (content: string, fields: Fields = {}) => text({ content, urlShortening: true, ...fields })

  test('if that makes the text fit', async () => {
    const content = `${'a'.repeat(room)} ${LONG}`
    const { status, body } = await accepting.send(newKey(), accepting.request(shortened(content)))
    assert.equal(status, 202)
    assert.equal((await accepting.read(body.messageId)).body.smsFallback.segments, 1)
    const longer = await rejected.send('k', rejected.request(shortened(`a${content}`)))
    assertError(longer, 400, 'RCS_INVALID_SMS_FALLBACK', [[`${VARIANT}/content`, single(2, 'GSM-7')]])
    const asItIs = await rejected.send('k', rejected.request(text({ content })))
    assertError(asItIs, 400, 'RCS_INVALID_SMS_FALLBACK', [[`${VARIANT}/content`, single(2, 'GSM-7')]])
    await assertNothingStored(rejected)
  })

  test('if that makes the text too long', async () => {
    const content = `${'a'.repeat(160 - 'http://a.pl'.length - 1)} http://a.pl`
    assert.equal((await accepting.send(newKey(), accepting.request(text({ content })))).status, 202)
    const response = await rejected.send('k', rejected.request(shortened(content)))
    assertError(response, 400, 'RCS_INVALID_SMS_FALLBACK', [[`${VARIANT}/content`, single(2, 'GSM-7')]])
    await assertNothingStored(rejected)
    const messageId = await accepting.accepted(shortened(content, { multipart: true }))
    assert.equal((await accepting.read(messageId)).body.smsFallback.segments, 2)
  })

  test('and replays an accepted request unchanged, even if links have become longer', async () => {
    const caller = await newCaller()
    const { url } = await startMessageService(database, { HERALD_PUBLIC_URL: 'https://links.shop.example' })
    const moved = callerAt(url, caller)
    const request = caller.request(shortened(`${'a'.repeat(room)} ${LONG}`))
    const first = await caller.send('k', request)
    const again = await moved.send('k', request)
    assert.deepEqual([again.status, again.body], [202, first.body])
    const anew = await moved.send('another', request)
    assertError(anew, 400, 'RCS_INVALID_SMS_FALLBACK', [[`${VARIANT}/content`, single(2, 'GSM-7')]])
    assert.deepEqual(await countRows(pool, caller.accountId), ONE_MESSAGE)
  })
})

describe('an account without the module sms', () => {
  const NEEDS: [string, string][] = [['/smsFallback', 'requires the module sms, which the account does not have']]
  async function withoutSms(): Promise<MessageCaller> {
    const caller = await newCaller()
    await setModules(pool, caller.accountId, ['rcs'])
    return caller
  }

  test('gets 403 for a fallback, whatever else is wrong with the request', async () => {
    const caller = await withoutSms()
    const requests = [
      { smsFallback: smsFallback() },
      { smsFallback: 'SMS' },
      { smsFallback: smsFallback({ sender: '' }) },
      { smsFallback: smsFallback(), recipient: 'me', message: {}, agentId: 'nobody', smsFalback: 1 },
    ]
    for (const fields of requests) {
      assertError(await caller.send('k', caller.request(fields)), 403, 'RCS_MODULE_NOT_AVAILABLE', NEEDS)
    }
    const withoutKey = await caller.ask('POST', '/messages', caller.request(requests[0]))
    assertError(withoutKey, 403, 'RCS_MODULE_NOT_AVAILABLE', NEEDS)
    await assertNothingStored(caller)
  })

  test('gets 403 before an error about an unknown query parameter', async () => {
    const caller = await withoutSms()
    const request = caller.request({ smsFallback: smsFallback() })
    const response = await caller.ask('POST', '/messages?now=1', request, { 'Idempotency-Key': 'k' })
    assertError(response, 403, 'RCS_MODULE_NOT_AVAILABLE', NEEDS)
    await assertNothingStored(caller)
  })

  test('sends messages without a fallback', async () => {
    const caller = await withoutSms()
    for (const fields of [{}, { smsFallback: null }, { smsFallback: null, smsFallbackAfterExpiry: null }]) {
      assert.equal((await caller.send(newKey(), caller.request(fields))).status, 202)
    }
  })

  test('still gets the replay of a request from when it had the module', async () => {
    const caller = await newCaller()
    const request = caller.request({ smsFallback: smsFallback() })
    const first = await caller.send('k', request)
    assert.equal(first.status, 202)
    await setModules(pool, caller.accountId, ['rcs'])
    const again = await caller.send('k', request)
    assert.deepEqual([again.status, again.body, again.headers.get('idempotent-replayed')], [202, first.body, 'true'])
    const another = caller.request({ smsFallback: smsFallback({}, { content: 'Another' }) })
    assertError(await caller.send('k', another), 403, 'RCS_MODULE_NOT_AVAILABLE', NEEDS)
    assertError(await caller.send('l', request), 403, 'RCS_MODULE_NOT_AVAILABLE', NEEDS)
    assert.deepEqual(await countRows(pool, caller.accountId), ONE_MESSAGE)
  })
})

describe('the Idempotency-Key', () => {
  test('covers the fallback: an equal one is replayed, and another one is a conflict', async () => {
    const caller = await newCaller()
    const fields = { smsFallback: smsFallback({ delay: 5 }), expiresAt: EXPIRES_AT, smsFallbackAfterExpiry: { delay: 1 } }
    const first = await caller.send('k', caller.request(fields))
    const { planParams, smsMessagesPlan } = fields.smsFallback
    const inOtherOrder = { ...fields, smsFallback: { smsMessagesPlan, planParams: { delay: 5, mode: null, sender: planParams.sender } } }
    const replays = await Promise.all(Array.from({ length: 10 }, () => caller.send('k', caller.request(inOtherOrder))))
    for (const { status, body, headers } of replays) {
      assert.deepEqual([status, body, headers.get('idempotent-replayed')], [202, first.body, 'true'])
    }
    const changes = [
      { smsFallback: smsFallback({ delay: 5 }, { content: 'Another text' }) },
      { smsFallback: smsFallback({ delay: 6 }) },
      { smsFallback: smsFallback({ delay: 5 }, { multipart: true }) },
      { smsFallbackAfterExpiry: { delay: 2 } },
      { smsFallbackAfterExpiry: undefined },
      { smsFallback: undefined, smsFallbackAfterExpiry: undefined },
    ]
    for (const change of changes) {
      const { status, body } = await caller.send('k', caller.request({ ...fields, ...change }))
      assert.deepEqual([status, body.code], [409, 'RCS_IDEMPOTENCY_CONFLICT'], JSON.stringify(change))
    }
    assert.deepEqual(
      [await countRows(pool, caller.accountId), await countFallbacks(caller.accountId)],
      [{ ...ONE_MESSAGE, expiries: 1 }, 1],
    )
  })

  test('is not used by a rejected fallback', async () => {
    const caller = await newCaller()
    assert.equal((await caller.send('k', caller.request(plan({ delay: -1 })))).status, 400)
    assert.equal((await caller.send('k', caller.request(text({ content: 'a'.repeat(161) })))).status, 400)
    await assertNothingStored(caller)
    assert.equal((await caller.send('k', caller.request(plan({ delay: 1 })))).status, 202)
  })
})

test('POST /messages/test rejects both fields', async () => {
  const { recipient, ...request } = rejected.request(afterExpiry({ delay: 0 }))
  const { status, body } = await rejected.sendTest({ ...request, recipients: [recipient] })
  assert.deepEqual([status, body.code], [400, 'RCS_INVALID_REQUEST'])
  assert.deepEqual(
    new Set(body.details.map(({ path, reason }: { path: string; reason: string }) => `${path} ${reason}`)),
    new Set([`/smsFallback ${unknown}`, `/smsFallbackAfterExpiry ${unknown}`]),
  )
  await assertNothingStored(rejected)
})
