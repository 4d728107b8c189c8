import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createAssignedAgent } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'
import { pool, SAME_SITE, signedIn } from './shared.ts'

// What an entry of the audit log stores, and to which account it belongs.

const operator = await signedIn('operator')
const newAccount = async () => (await createAccount(pool, 'Account', ['rcs'])).accountId
const entriesOf = async (accountId: number, ...actions: string[]) =>
  (await pool.query('select * from audit_log where account_id = $1 and action = any ($2) order by id', [accountId, actions])).rows
const TEMPLATE = { name: 'Offer', status: 'APPROVED', basic: false, message: TEXT }

test('the entries of a template have the size and the hash of its content, and not its texts', async () => {
  const accountId = await newAccount()
  const path = `/accounts/${accountId}/templates`
  const { body: template } = await operator('POST', path, TEMPLATE)
  const message = { ...TEXT, content: 'Large. '.repeat(400) }
  assert.equal((await operator('PUT', `${path}/${template.id}`, { ...TEMPLATE, message })).status, 200)
  assert.equal((await operator('DELETE', `${path}/${template.id}`)).status, 204)
  const entries = await entriesOf(accountId, 'createTemplate', 'replaceTemplate', 'deleteTemplate')
  const [created, replaced, deleted] = entries.map((entry) => [entry.before?.message ?? null, entry.after?.message ?? null])
  assert.deepEqual(Object.keys(created?.[1]), ['bytes', 'sha256'])
  assert.ok(replaced?.[1].bytes > 2_800)
  assert.deepEqual([created?.[1], replaced?.[1], null], [replaced?.[0], deleted?.[0], deleted?.[1]])
  const texts = JSON.stringify(entries)
  assert.ok(texts.includes('Offer') && !texts.includes(TEXT.content) && !texts.includes('Large'))
})

test('an entry has the size and the hash of a field of over 4 KB', async () => {
  const accountId = await newAccount()
  const path = `/accounts/${accountId}/keys`
  const { body: key } = await operator('POST', path, {})
  const addresses = Array.from({ length: 100 }, (_, index) => `2001:db8:1111:2222:3333:4444:5555:${(0x1000 + index).toString(16)}`)
  const few = addresses.slice(0, 50)
  assert.equal((await operator('PATCH', `${path}/${key.integrationKey}`, { addresses: few })).status, 200)
  assert.equal((await operator('PATCH', `${path}/${key.integrationKey}`, { addresses })).status, 200)
  const [, { before, after }] = await entriesOf(accountId, 'changeKey')
  assert.deepEqual([before.addresses.length, Object.keys(after.addresses)], [50, ['bytes', 'sha256']])
})

test('the entry of a token belongs to the account of the token, if it has only one', async () => {
  const [own, other] = [await newAccount(), await newAccount()]
  const token = { name: 'reader', role: 'viewer', expiresAt: '2099-01-01T00:00:00Z' }
  const { body: one } = await operator('POST', '/tokens', { ...token, accountIds: [own] })
  assert.equal((await operator('POST', `/tokens/${one.tokenId}/revoke`)).status, 200)
  const { body: both } = await operator('POST', '/tokens', { ...token, accountIds: [own, other] })
  const entries = await entriesOf(own, 'createToken', 'revokeToken')
  assert.deepEqual(
    entries.map(({ action, subject }) => [action, subject]),
    [
      ['createToken', `${one.tokenId}`],
      ['revokeToken', `${one.tokenId}`],
    ],
  )
  const ofBoth = await pool.query(`select account_id from audit_log where action = 'createToken' and subject = $1`, [`${both.tokenId}`])
  assert.deepEqual(ofBoth.rows, [{ account_id: null }])
})

test('the entry of a creation has the id of what it created', async () => {
  const { body: account } = await operator('POST', '/accounts', { name: 'New' })
  const path = `/accounts/${account.accountId}`
  const agentId = await createAssignedAgent(pool, account.accountId)
  const created: Record<string, unknown> = { createAccount: account.accountId }
  const create = async (action: string, url: string, body: object, field: string) => {
    const response = await operator('POST', url, body, { ...SAME_SITE, 'idempotency-key': action })
    assert.ok(response.status < 300, `${action}: ${JSON.stringify(response.body)}`)
    assert.ok(response.body[field] !== undefined, action)
    created[action] = response.body[field]
  }
  await create('createAgent', '/agents', { agentId: 'created', name: 'created', billingType: 'single' }, 'agentId')
  await create('createKey', `${path}/keys`, {}, 'integrationKey')
  await create('createTemplate', `${path}/templates`, TEMPLATE, 'id')
  await create('createAutoReply', `${path}/auto-replies`, { agentId, keyword: 'hours', templateId: created.createTemplate }, 'autoReplyId')
  await create('createWebhookEndpoint', `${path}/webhook-endpoints`, { url: 'http://127.0.0.1:9/' }, 'endpointId')
  await create('createPerson', '/people', { email: 'created@example.com', name: 'Created' }, 'personId')
  await create('addAccountPerson', `${path}/people`, { email: 'added@example.com', name: 'Added', role: 'viewer' }, 'personId')
  await operator('PUT', `${path}/segments/1`, { name: 'Members' })
  await create('createCampaign', `${path}/campaigns`, { agentId, name: 'C', segmentIds: [1], message: { inline: TEXT } }, 'campaignId')
  const { rows } = await pool.query(
    `select distinct on (action) action, subject, account_id as "accountId" from audit_log where action = any ($1) order by action, id desc`,
    [Object.keys(created)],
  )
  const ofNone = ['createAgent', 'createPerson']
  assert.deepEqual(
    Object.fromEntries(rows.map(({ action, subject, accountId }) => [action, [subject, accountId]])),
    Object.fromEntries(
      Object.entries(created).map(([action, id]) => [action, [String(id), ofNone.includes(action) ? null : account.accountId]]),
    ),
  )
})

test('the entries of messages have their agent and the masked recipient, and no text', async () => {
  const accountId = await newAccount()
  const agentId = await createAssignedAgent(pool, accountId)
  const path = `/accounts/${accountId}/messages`
  const message = { inline: TEXT }
  const one = await operator('POST', path, { agentId, recipient: '+48500100301', message }, { ...SAME_SITE, 'idempotency-key': 'one' })
  const recipients = ['+48500100302', '+48500100303']
  const { body: test } = await operator('POST', `${path}/test`, { agentId, recipients, message })
  const { messageId } = one.body
  const ids = test.items.map((item: { messageId: string }) => item.messageId)
  const entries = await entriesOf(accountId, 'sendMessage', 'sendTestMessage')
  assert.deepEqual(
    entries.map(({ subject, after }) => [subject, after]),
    [
      [messageId, { messageId, agentId, recipient: '+48•••••••01' }],
      [
        ids.join(' '),
        [
          { messageId: ids[0], agentId, recipient: '+48•••••••02' },
          { messageId: ids[1], agentId, recipient: '+48•••••••03' },
        ],
      ],
    ],
  )
})

test('four equal opt-outs at once leave one entry', async () => {
  const accountId = await newAccount()
  await createAssignedAgent(pool, accountId)
  const optOut = () => operator('PUT', `/accounts/${accountId}/opt-outs/+48500100310`, { block: true })
  for (const { status } of await Promise.all([1, 2, 3, 4].map(optOut))) assert.equal(status, 200)
  const entries = await entriesOf(accountId, 'putOptOut')
  assert.deepEqual(
    entries.map(({ before, after }) => [before, after.map(({ block }: { block: boolean }) => block)]),
    [[[], [true]]],
  )
})

test('the entry of a removed member has the member, with only the names of the attributes', async () => {
  const accountId = await newAccount()
  const path = `/accounts/${accountId}/segments/3`
  await operator('PUT', path, { name: 'Members' })
  const member = { consents: [1, 7], controlGroup: true, status: 'inactive', timeZone: 'Europe/Warsaw' }
  await operator('POST', `${path}/members`, { members: [{ phone: '+48500100320', ...member, attributes: { city: 'Gdynia' } }] })
  assert.equal((await operator('DELETE', `${path}/members/+48500100320`)).status, 204)
  const [entry] = await entriesOf(accountId, 'deleteSegmentMember')
  assert.deepEqual(entry.before, { phone: '+48•••••••20', ...member, attributes: ['city'] })
  assert.equal(entry.after, null)
})

test('the entry of an erasure has the number of rows of each place', async () => {
  const accountId = await newAccount()
  const agentId = await createAssignedAgent(pool, accountId)
  const path = `/accounts/${accountId}`
  await operator('PUT', `${path}/opt-outs/+48500100330`, { agentId })
  const { body } = await operator('POST', `${path}/recipients/+48500100330/erase`)
  await operator('POST', `${path}/recipients/+48500100330/erase`)
  const entries = await entriesOf(accountId, 'eraseRecipient')
  assert.deepEqual(
    entries.map(({ before, after }) => [before, after]),
    [[body.erased, null]],
  )
  assert.equal(body.erased.optOuts, 1)
})
