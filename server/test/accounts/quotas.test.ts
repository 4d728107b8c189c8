import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { type Quota, readQuotas, setQuotas } from '../../src/accounts/quotas.ts'
import { ROW_BYTES } from '../../src/accounts/usage.ts'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { createAcceptor, type Submission } from '../../src/messages/accept.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import {
  callerAt,
  countRows,
  type MessageCaller,
  NOTHING,
  newKey,
  RECIPIENT,
  smsFallback,
  startMessageService,
} from '../support/messages.ts'
import { untilFarFromMidnight } from '../support/midnight.ts'
import { type ApiResponse, createAssignedAgent } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'

const database = await createTestDatabase()
const { hotPool: pool } = database
const { newCaller } = await startMessageService(database)
const otherNode = await startMessageService(database)

const MESSAGE_BYTES = ROW_BYTES + JSON.stringify(TEXT).length

async function callerWith(quotas: Partial<Record<Quota, number>>): Promise<MessageCaller> {
  const caller = await newCaller()
  await setQuotas(pool, caller.accountId, quotas)
  return caller
}

function assertExceeded({ status, headers, body }: ApiResponse, quota: Quota, limit: number, used: number, advice: string): void {
  const code = 'RCS_QUOTA_EXCEEDED'
  const reason = `The quota ${quota} of the account is ${limit}, and ${used} are used: ${advice}.`
  assert.deepEqual(body, { statusCode: 429, code, message: code, requestId: body.requestId, details: [{ path: '', reason }] })
  assert.equal(status, 429)
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d{0,4}$/)
}

const MIDNIGHT = 'the count starts again at 00:00 UTC'
const ASK = 'ask the operator for a higher quota, or to drop old months'
const DELETE = 'delete templates that you no longer need, or ask the operator for a higher quota'

const codes = (responses: ApiResponse[]) => Object.groupBy(responses, ({ status, body }) => (status < 300 ? 'accepted' : body.code))
const used = async ({ accountId }: MessageCaller) => (await readQuotas(pool, accountId)).messagesPerDay.used

describe('the quota of messages a day', () => {
  beforeEach(untilFarFromMidnight)

  test('rejects the eleventh message with 429 until midnight, stores nothing of it, and leaves other accounts alone', async () => {
    const [caller, other] = [await callerWith({ messagesPerDay: 10 }), await newCaller()]
    for (let n = 1; n <= 10; n++) assert.equal((await caller.send(`k${n}`, caller.request())).status, 202)
    const refused = await caller.send('k11', caller.request())
    assertExceeded(refused, 'messagesPerDay', 10, 10, MIDNIGHT)
    const secondsLeft = (86_400_000 - (Date.now() % 86_400_000)) / 1_000
    assert.ok(Math.abs(Number(refused.headers.get('retry-after')) - secondsLeft) < 30)
    assert.deepEqual(await countRows(pool, caller.accountId), { messages: 10, queue: 10, expiries: 0, keys: 10 })
    assert.equal((await other.send('k11', other.request())).status, 202)
  })

  test('replays a request, and reports its other errors first', async () => {
    const caller = await callerWith({ messagesPerDay: 1 })
    const first = await caller.send('k', caller.request())
    const again = await caller.send('k', caller.request())
    assert.deepEqual([again.status, again.body, again.headers.get('idempotent-replayed')], [202, first.body, 'true'])
    const responses = [
      await caller.send('k', caller.request({ clientReferenceId: 'another' })),
      await caller.send('k2', caller.request({ agentId: 'nobody' })),
      await caller.send('k2', caller.request({ recipient: '12' })),
    ]
    assert.deepEqual(
      responses.map(({ status }) => status),
      [409, 404, 400],
    )
    assert.equal((await caller.send('k2', caller.request())).status, 429)
    await setQuotas(pool, caller.accountId, { messagesPerDay: 2 })
    const accepted = await caller.send('k2', caller.request())
    assert.deepEqual([accepted.status, accepted.headers.get('idempotent-replayed')], [202, null], 'a rejected request leaves its key free')
  })

  test('holds on every node for the first request after it was changed', async () => {
    const caller = await newCaller()
    const there = callerAt(otherNode.url, caller)
    for (const node of [caller, there]) assert.equal((await node.send(newKey(), caller.request())).status, 202)
    await setQuotas(pool, caller.accountId, { messagesPerDay: 2 })
    for (const node of [there, caller]) assert.equal((await node.send(newKey(), caller.request())).status, 429)
    await setQuotas(pool, caller.accountId, { messagesPerDay: 0 })
    assertExceeded(await there.send(newKey(), caller.request()), 'messagesPerDay', 0, 2, MIDNIGHT)
    await setQuotas(pool, caller.accountId, { messagesPerDay: null })
    for (const node of [there, caller]) assert.equal((await node.send(newKey(), caller.request())).status, 202)
  })

  test('accepts exactly ten of fifty concurrent requests on one node, and treats equal keys alike', async () => {
    const caller = await callerWith({ messagesPerDay: 10 })
    const keys = Array.from({ length: 50 }, newKey)
    const responses = await Promise.all([...keys, ...keys].map((key) => caller.send(key, caller.request())))
    const { accepted = [], RCS_QUOTA_EXCEEDED = [] } = codes(responses)
    assert.equal(accepted.length + RCS_QUOTA_EXCEEDED.length, 100)
    assert.equal(new Set(accepted.map(({ body }) => body.messageId)).size, 10)
    assert.equal(accepted.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 10)
    assert.deepEqual(await countRows(pool, caller.accountId), { messages: 10, queue: 10, expiries: 0, keys: 10 })
    for (const { headers } of RCS_QUOTA_EXCEEDED) assert.match(headers.get('retry-after') ?? '', /^\d+$/)
  })

  test('is exceeded on two nodes by at most one batch, and then holds on both', async () => {
    const caller = await callerWith({ messagesPerDay: 10 })
    const there = callerAt(otherNode.url, caller)
    const responses = await Promise.all(
      Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? caller : there).send(newKey(), caller.request())),
    )
    const accepted = codes(responses).accepted?.length ?? 0
    assert.ok(accepted >= 10 && accepted <= 20, `${accepted} accepted`)
    assert.equal(await used(caller), accepted)
    for (const node of [caller, there]) assert.equal((await node.send(newKey(), caller.request())).status, 429)
  })

  test('fails no other request of a batch when the database rejects one of an account near its quota', async () => {
    const [near, other] = [await callerWith({ messagesPerDay: 10 }), await newCaller()]
    const accept = createAcceptor(pool, () => {})
    const message = { inline: TEXT } as Submission['message']
    const submission = ({ accountId, agentId }: MessageCaller, recipient: string) =>
      accept({ accountId, agentId, recipients: [recipient], test: true, message })
    const results = await Promise.allSettled([
      submission(other, RECIPIENT),
      submission(near, RECIPIENT),
      // The schema rejects it before, so only a direct call gets here.
      submission(near, '+48\u0000500'),
      submission(near, '+48500100201'),
    ])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual([await used(other), await used(near)], [1, 2])
  })

  test('accepts no message twice when the database rejects a later request that waited for the quota', async () => {
    const near = await callerWith({ messagesPerDay: 2 })
    const accept = createAcceptor(pool, () => {})
    const { accountId, agentId } = near
    const message = { inline: TEXT } as Submission['message']
    const submission = (recipient: string, fields: Partial<Submission> = {}) =>
      accept({ accountId, agentId, recipients: [recipient], test: true, message, ...fields })
    const results = await Promise.allSettled([
      submission(RECIPIENT),
      // Uses no quota, so that a second statement accepts one more.
      submission('+48500100201', { agentId: 'nobody' }),
      submission('+48\u0000500'),
    ])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected'],
    )
    const { rows } = await pool.query('select recipient from messages where account_id = $1', [accountId])
    assert.deepEqual(rows, [{ recipient: RECIPIENT }])
  })

  test('counts each recipient of a test message', async () => {
    const caller = await callerWith({ messagesPerDay: 3 })
    const { recipient: _, ...request } = caller.request()
    const toTwo = { ...request, recipients: [RECIPIENT, '+48500100201'] }
    assert.equal((await caller.sendTest(toTwo)).status, 202)
    assertExceeded(await caller.sendTest(toTwo), 'messagesPerDay', 3, 2, MIDNIGHT)
    assert.equal((await caller.sendTest({ ...request, recipients: [RECIPIENT] })).status, 202)
    assert.equal(await used(caller), 3)
  })

  test('does not count the messages of a campaign, which count in bytes', async () => {
    const caller = await callerWith({ messagesPerDay: 0 })
    await fillGroup(pool, caller.accountId, 1, phones(0, 3))
    await acceptedCampaign(pool, caller, { sms: {} })
    const before = (await readQuotas(pool, caller.accountId)).storedBytes.used
    await makeAll(pool)
    const { messagesPerDay, storedBytes } = await readQuotas(pool, caller.accountId)
    const { rows } = await pool.query('select sum($2 + octet_length(plan::text))::int as bytes from sms_fallbacks where account_id = $1', [
      caller.accountId,
      ROW_BYTES,
    ])
    assert.deepEqual([messagesPerDay.used, storedBytes.used - before], [0, rows[0].bytes])
  })
})

describe('the quota of stored bytes', () => {
  test('counts a message with its content, reference and SMS plan, and rejects the first that does not fit', async () => {
    const caller = await callerWith({ storedBytes: MESSAGE_BYTES + 3 })
    assert.equal((await caller.send(newKey(), caller.request({ clientReferenceId: 'ąb' }))).status, 202)
    assertExceeded(await caller.send(newKey(), caller.request()), 'storedBytes', MESSAGE_BYTES + 3, MESSAGE_BYTES + 3, ASK)
    await setQuotas(pool, caller.accountId, { storedBytes: 2 * MESSAGE_BYTES + 3 })
    assert.equal((await caller.send(newKey(), caller.request({ smsFallback: smsFallback() }))).status, 429, 'the plan counts')
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
  })

  test('rejects templates and campaigns that would exceed it, but not the renaming of a template', async () => {
    const caller = await newCaller()
    const id = await caller.template()
    await fillGroup(pool, caller.accountId, 1, phones(0, 3))
    await pool.query('update groups set members = 3 where account_id = $1', [caller.accountId])
    const { storedBytes } = await readQuotas(pool, caller.accountId)
    assert.equal(storedBytes.used, JSON.stringify(TEXT).length)
    await setQuotas(pool, caller.accountId, { storedBytes: storedBytes.used })
    const template = { name: 'Template', status: 'APPROVED', basic: false, message: TEXT }
    assertExceeded(await caller.ask('POST', '/templates', template), 'storedBytes', storedBytes.used, storedBytes.used, ASK)
    assert.equal((await caller.ask('PUT', `/templates/${id}`, { ...template, name: 'Renamed' })).status, 200)
    assert.equal((await caller.ask('PUT', `/templates/${id}`, { ...template, message: { ...TEXT, content: 'Other' } })).status, 429)
    const campaign = { name: 'c', agentId: caller.agentId, segmentIds: [1], message: { templateId: id } }
    const ask = () => caller.ask('POST', '/campaigns', campaign, { 'Idempotency-Key': 'c' })
    const needed = ROW_BYTES + 3 * ROW_BYTES
    await setQuotas(pool, caller.accountId, { storedBytes: storedBytes.used + needed - 1 })
    const { status, body } = await ask()
    assert.equal(status, 429)
    assert.match(
      body.details[0].reason,
      new RegExp(`, and ${storedBytes.used} are used, and the request needs ${needed} more: ask the operator`),
    )
    await setQuotas(pool, caller.accountId, { storedBytes: storedBytes.used + needed })
    assert.equal((await ask()).status, 202)
    await setQuotas(pool, caller.accountId, { storedBytes: 0 })
    assert.equal((await ask()).headers.get('idempotent-replayed'), 'true')
    assert.equal((await caller.ask('GET', `/templates/${id}`)).body.name, 'Renamed')
    assert.deepEqual(await countRows(pool, caller.accountId), { ...NOTHING, keys: 1 })
  })
})

describe('bytes that a campaign reserves for its messages', () => {
  const MEMBERS = 3
  const start = new Date(Date.now() + 3_600_000).toISOString()

  /** A caller with a quota for this number of campaigns, and a function that posts one. */
  async function callerFor(campaigns: number, scheduledAt?: string) {
    const caller = await newCaller()
    const templateId = await caller.template()
    await fillGroup(pool, caller.accountId, 1, phones(0, MEMBERS))
    await pool.query('update groups set members = $2 where account_id = $1', [caller.accountId, MEMBERS])
    const usedBytes = async () => (await readQuotas(pool, caller.accountId)).storedBytes.used
    const before = await usedBytes()
    await setQuotas(pool, caller.accountId, { storedBytes: before + campaigns * (1 + MEMBERS) * ROW_BYTES })
    const campaign = { name: 'c', agentId: caller.agentId, segmentIds: [1], message: { templateId }, ...(scheduledAt && { scheduledAt }) }
    const post = () => caller.ask('POST', '/campaigns', campaign, { 'Idempotency-Key': newKey() })
    return { accountId: caller.accountId, post, usedRows: async () => ((await usedBytes()) - before) / ROW_BYTES }
  }

  test('count from its acceptance, so that waiting campaigns do not exceed the quota together', async () => {
    const { post, usedRows } = await callerFor(2, start)
    const responses = [await post(), await post(), await post()]
    assert.deepEqual(
      responses.map(({ status }) => status),
      [202, 202, 429],
    )
    assert.equal(await usedRows(), 2 * (1 + MEMBERS))
  })

  test('are replaced by the bytes of its messages, and released when it is cancelled', async () => {
    const { post, usedRows } = await callerFor(10)
    await post()
    assert.equal(await usedRows(), 1 + MEMBERS)
    await makeAll(pool)
    assert.equal(await usedRows(), 1 + MEMBERS)
    const waiting = await callerFor(10, start)
    const { body } = await waiting.post()
    await moveCampaign(pool, body.campaignId, 'CANCELLED')
    assert.equal(await waiting.usedRows(), 1)
  })

  test('are released when the group has fewer members than it counted', async () => {
    const { post, usedRows, accountId } = await callerFor(100)
    await pool.query('update groups set members = members + 100 where account_id = $1', [accountId])
    await post()
    await makeAll(pool)
    assert.equal(await usedRows(), 1 + MEMBERS)
  })
})

test('the quota of templates accepts exactly five of twenty on two nodes, and one more after a deletion', async () => {
  const caller = await callerWith({ templates: 5 })
  const there = callerAt(otherNode.url, caller)
  const template = { name: 'Template', message: TEXT }
  const create = (n: number) => (n % 2 === 0 ? caller : there).ask('POST', '/templates', template)
  const responses = await Promise.all(Array.from({ length: 20 }, (_, n) => create(n)))
  const { accepted = [], RCS_QUOTA_EXCEEDED = [] } = codes(responses)
  assert.deepEqual([accepted.length, RCS_QUOTA_EXCEEDED.length], [5, 15])
  assertExceeded(RCS_QUOTA_EXCEEDED[0] as ApiResponse, 'templates', 5, 5, DELETE)
  await caller.ask('DELETE', `/templates/${accepted[0]?.body.id}`)
  assert.equal((await create(0)).status, 201)
  assert.equal((await create(0)).status, 429)
})

test('a message that a recipient triggers counts in bytes, and no quota rejects it', async () => {
  const caller = await callerWith({ messagesPerDay: 0, storedBytes: 0 })
  const { sendTemplate } = await import('../../src/messages/send-template.ts')
  const { insertTemplate } = await import('../../src/templates/templates.ts')
  const template = { name: 'T', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: 'Hello' } } as const
  const { id: templateId } = await insertTemplate(pool, caller.accountId, template)
  const agentId = await createAssignedAgent(pool, caller.accountId)
  const wanted = { accountId: caller.accountId, agentId, recipient: RECIPIENT, templateId, triggeredBy: undefined, test: false }
  assert.ok('messageId' in (await sendTemplate(pool, wanted)))
  const { messagesPerDay, storedBytes } = await readQuotas(pool, caller.accountId)
  assert.deepEqual([messagesPerDay.used, storedBytes.used], [0, MESSAGE_BYTES])
})
