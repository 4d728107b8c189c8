import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { transaction } from '../../src/db/pool.ts'
import { untilBlocked } from '../delivery/locks.ts'
import { call } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'
import { until } from '../support/until.ts'
import { ADMIN, newPerson, owner, pool, SAME_SITE, sessionOf } from './shared.ts'

type Step = { action: string; method: string; path: string; body?: unknown; headers?: Record<string, string> }

const operator = await newPerson('operator')
const { ask, cookie } = await sessionOf(operator.personId)
const PHONE = '+48500100200'
/** The ids that earlier steps have made, by their action. */
const made: Record<string, any> = {}
/** What the entries of these steps say of the state before. */
const befores: Record<string, any> = {}

/** Every operation that changes something, in an order in which each one can. `$action.field`: what the step of that action returned. */
const ACCOUNT = '/accounts/$createAccount.accountId'
const STEPS = `
  createAccount POST /accounts {"name":"Audited"}
  changeAccount PATCH ${ACCOUNT} {"name":"Renamed","quarantineHours":3}
  setQuotas PATCH ${ACCOUNT}/quotas {"templates":5}
  setCampaignWindow PUT ${ACCOUNT}/campaign-window {"from":"09:00","to":"20:00"}
  removeCampaignWindow DELETE ${ACCOUNT}/campaign-window
  suspendAccount POST ${ACCOUNT}/suspend
  resumeAccount POST ${ACCOUNT}/resume
  createKey POST ${ACCOUNT}/keys {"scopes":["read"]}
  changeKey PATCH ${ACCOUNT}/keys/$createKey.integrationKey {"addresses":["10.0.0.0/8"]}
  rotateKey POST ${ACCOUNT}/keys/$createKey.integrationKey/rotate
  revokeKey POST ${ACCOUNT}/keys/$createKey.integrationKey/revoke
  createAgent POST /agents {"agentId":"audited","name":"audited","billingType":"single"}
  updateAgent PATCH /agents/audited {"name":"renamed"}
  assignAgent PUT ${ACCOUNT}/assignments/audited
  changeAgent PATCH ${ACCOUNT}/agents/audited {"active":false}
  activateAgent POST ${ACCOUNT}/assignments/audited/activate
  createTemplate POST ${ACCOUNT}/templates {"name":"A","status":"APPROVED","message":${JSON.stringify(TEXT)}}
  replaceTemplate PUT ${ACCOUNT}/templates/$createTemplate.id {"name":"B","status":"APPROVED","basic":false,"message":${JSON.stringify(TEXT)}}
  createAutoReply POST ${ACCOUNT}/auto-replies {"agentId":"audited","keyword":"hours","templateId":"$createTemplate.id"}
  changeAutoReply PATCH ${ACCOUNT}/auto-replies/$createAutoReply.autoReplyId {"keyword":"opening hours"}
  deleteAutoReply DELETE ${ACCOUNT}/auto-replies/$createAutoReply.autoReplyId
  deleteTemplate DELETE ${ACCOUNT}/templates/$createTemplate.id
  nameSegment PUT ${ACCOUNT}/segments/7 {"name":"Members"}
  putSegmentMembers POST ${ACCOUNT}/segments/7/members {"members":[{"phone":"${PHONE}"}]}
  deleteSegmentMember DELETE ${ACCOUNT}/segments/7/members/${PHONE}
  importSegment PUT ${ACCOUNT}/segments/7/import phone
  putOptOut PUT ${ACCOUNT}/opt-outs/${PHONE} {}
  deleteOptOut DELETE ${ACCOUNT}/opt-outs/${PHONE}
  sendMessage POST ${ACCOUNT}/messages {"agentId":"audited","recipient":"${PHONE}","message":{"inline":${JSON.stringify(TEXT)}}}
  cancelMessage POST ${ACCOUNT}/messages/$sendMessage.messageId/cancel
  sendTestMessage POST ${ACCOUNT}/messages/test {"agentId":"audited","recipients":["${PHONE}"],"message":{"inline":${JSON.stringify(TEXT)}}}
  createCampaign POST ${ACCOUNT}/campaigns {"agentId":"audited","name":"C","segmentIds":[7],"message":{"inline":${JSON.stringify(TEXT)}}}
  pauseCampaign POST ${ACCOUNT}/campaigns/$createCampaign.campaignId/pause
  resumeCampaign POST ${ACCOUNT}/campaigns/$createCampaign.campaignId/resume
  cancelCampaign POST ${ACCOUNT}/campaigns/$createCampaign.campaignId/cancel
  retryCampaign POST ${ACCOUNT}/campaigns/$createCampaign.campaignId/retry {}
  deleteSegment DELETE ${ACCOUNT}/segments/7
  createWebhookEndpoint POST ${ACCOUNT}/webhook-endpoints {"url":"http://127.0.0.1:9/"}
  changeWebhookEndpoint PATCH ${ACCOUNT}/webhook-endpoints/$createWebhookEndpoint.endpointId {"types":["campaign.cancelled"]}
  rotateWebhookSecret POST ${ACCOUNT}/webhook-endpoints/$createWebhookEndpoint.endpointId/rotate
  testWebhookEndpoint POST ${ACCOUNT}/webhook-endpoints/$createWebhookEndpoint.endpointId/test
  replayWebhookEvents POST ${ACCOUNT}/webhook-endpoints/$createWebhookEndpoint.endpointId/replay {"from":"2026-01-01T00:00:00Z"}
  deleteWebhookEndpoint DELETE ${ACCOUNT}/webhook-endpoints/$createWebhookEndpoint.endpointId
  eraseRecipient POST ${ACCOUNT}/recipients/${PHONE}/erase
  allowRecipient POST ${ACCOUNT}/recipients/${PHONE}/allow
  eraseRecipientEverywhere POST /recipients/${PHONE}/erase
  allowRecipientEverywhere POST /recipients/${PHONE}/allow
  unassignAgent DELETE ${ACCOUNT}/assignments/audited
  createPerson POST /people {"email":"new@example.com","name":"New"}
  changePerson PATCH /people/$createPerson.personId {"name":"Newer"}
  createPersonLink POST /people/$createPerson.personId/link
  setPersonRole PUT /people/$createPerson.personId/roles/$createAccount.accountId {"role":"viewer"}
  removePersonRole DELETE /people/$createPerson.personId/roles/$createAccount.accountId
  addAccountPerson POST ${ACCOUNT}/people {"email":"new@example.com","name":"New","role":"viewer"}
  setAccountRole PUT ${ACCOUNT}/people/$createPerson.personId {"role":"admin"}
  createAccountPersonLink POST ${ACCOUNT}/people/$createPerson.personId/link
  removeAccountPerson DELETE ${ACCOUNT}/people/$createPerson.personId
  createToken POST /tokens {"name":"program","role":"operator","expiresAt":"2099-01-01T00:00:00Z"}
  revokeToken POST /tokens/$createToken.tokenId/revoke
`
  .trim()
  .split('\n')
  .map((line) => line.trim())

/** What the database must hold before some steps, which only workers make. */
const PREPARED: Record<string, () => Promise<unknown>> = {
  // Otherwise the event may be due already, since the router places it in the log only now.
  replayWebhookEvents: async () => {
    await until('the log is complete', async () => (await pool.query('select from log_pages where last_position is null')).rowCount === 0)
    await owner.query('delete from webhook_deliveries')
  },
  pauseCampaign: () =>
    owner.query(`update campaigns set status = 'RUNNING', started_at = now() where id = $1`, [made.createCampaign.campaignId]),
  retryCampaign: () => owner.query(`update campaigns set withdrawn_at = now() where id = $1`, [made.createCampaign.campaignId]),
}

function stepOf(line: string): Step {
  const filled = line.replaceAll(/"?\$(\w+)\.(\w+)"?/g, (_, action, field) => String(made[action][field]))
  const [action = '', method = '', path = '', ...rest] = filled.split(' ')
  const text = rest.join(' ')
  if (action === 'importSegment') return { action, method, path, body: `phone\n${PHONE}\n`, headers: { 'content-type': 'text/csv' } }
  return { action, method, path, ...(text !== '' && { body: JSON.parse(text) }) }
}

/** The rows of all tables, except sessions, which every request may change, and what the process writes by itself. */
async function snapshot(): Promise<Record<string, string>> {
  const { rows: tables } = await owner.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
     and c.relname not in ('sessions', 'log_heads', 'webhook_deliveries', 'node_status') order by 1`,
  )
  const texts = tables.map(({ name }) => {
    const hash = name === 'log_pages' ? 'sum(event_count)::text' : `md5(string_agg(t::text, '' order by t::text))`
    return `select '${name}' as name, ${hash} as hash from ${name} t`
  })
  const { rows } = await owner.query<{ name: string; hash: string }>(texts.join(' union all '))
  return Object.fromEntries(rows.map(({ name, hash }) => [name, hash]))
}

const readLog = async () => (await pool.query('select * from audit_log order by id')).rows
const send = ({ action, method, path, body, headers }: Step) =>
  ask(method, path, body, {
    ...SAME_SITE,
    ...(path.endsWith('messages') || path.endsWith('campaigns') ? { 'idempotency-key': action === '' ? 'twice' : 'once' } : {}),
    ...headers,
  })

/** Waits only for the entry: without a worker, a test of an endpoint takes 20 s. */
async function sendTestEvent({ path }: Step): Promise<void> {
  const client = new AbortController()
  const headers = { ...SAME_SITE, cookie }
  const response = fetch(ADMIN + path, { method: 'POST', headers, signal: client.signal }).catch(() => {})
  await until('the test is recorded', async () => (await readLog()).at(-1)?.action === 'testWebhookEndpoint')
  client.abort()
  await response
}

const MESSAGE = { agentId: 'audited', recipient: PHONE, message: { inline: TEXT } }
const MEMBER = { phone: PHONE, consents: [1], timeZone: 'Europe/Warsaw', attributes: { city: 'Gdynia' } }
const CAMPAIGN = { agentId: 'audited', name: 'Repeated', segmentIds: [8], message: { inline: TEXT } }

after(() => owner.query('drop trigger if exists refuse_entry on audit_log'))

test('every operation and its entry in the audit log are one transaction', async () => {
  await owner.query(`
    create function refuse_entry() returns trigger language plpgsql as $$ begin raise exception 'no entry'; end $$;
    create trigger refuse_entry before insert on audit_log for each row execute function refuse_entry()`)
  for (const line of STEPS) {
    const step = stepOf(line)
    await PREPARED[step.action]?.()
    const before = await snapshot()
    await owner.query('alter table audit_log enable trigger refuse_entry')
    const failed = await send(step)
    assert.equal(failed.status, 500, `${line} without its entry: ${JSON.stringify(failed.body)}`)
    assert.deepEqual(await snapshot(), before, `${line} changed nothing`)
    await owner.query('alter table audit_log disable trigger refuse_entry')
    const entries = (await readLog()).length
    const response = step.action === 'testWebhookEndpoint' ? await sendTestEvent(step) : await send(step)
    assert.ok(response === undefined || response.status < 300, `${line}: ${response?.status} ${JSON.stringify(response?.body)}`)
    made[step.action] = response?.body
    const [entry, ...others] = (await readLog()).slice(entries)
    assert.deepEqual(others, [], line)
    assert.deepEqual(
      [entry?.action, entry?.actor_kind, entry?.actor_name, entry?.address],
      [step.action, 'person', operator.email, '127.0.0.1'],
      line,
    )
    if (response !== undefined) assert.equal(entry.request_id, response.headers.get('x-request-id'), line)
    assert.equal(entry.account_id, /^\/accounts|PersonRole$/.test(step.path + step.action) ? made.createAccount.accountId : null, line)
    if (entry.before !== null) befores[step.action] = entry.before
  }
})

/** What phones of the simulated network do, and how that network fails, is no change of Herald's data. */
const OF_THE_SIMULATOR = `deliverToPhone readOnPhone tapOnPhone replyFromPhone stopFromPhone subscribeFromPhone unsubscribeFromPhone typeOnPhone
  shareLocationFromPhone sendFileFromPhone takePhoneOffline bringPhoneOnline setFaults clearFaults`

test('the walk includes every operation that changes something', async () => {
  const { body } = await call(`${ADMIN}/openapi.json`)
  const changing = Object.values<Record<string, any>>(body.paths).flatMap((methods) =>
    Object.entries(methods).flatMap(([method, { operationId, tags }]) =>
      method === 'get' || tags[0] === 'Sign-in' ? [] : [operationId as string],
    ),
  )
  const walked = STEPS.map((line) => line.split(' ')[0] as string)
  assert.deepEqual(
    changing.sort(),
    [...walked, 'checkTemplate', 'checkCapabilities', 'rotateEncryption', ...OF_THE_SIMULATOR.split(/\s+/)].sort(),
  )
})

test('entries have no secrets, and no whole phone numbers', async () => {
  const texts = JSON.stringify(await readLog())
  for (const secret of [
    made.createKey.secret,
    made.rotateKey.secret,
    made.createWebhookEndpoint.secret,
    made.createToken.secret,
    made.createPersonLink.token,
  ]) {
    assert.ok(secret.length > 20 && !texts.includes(secret))
  }
  assert.ok(!texts.includes(PHONE.slice(1)) && texts.includes('+48•••••••00'), 'masked')
})

test('a number is masked however it is written in a path, and so are numbers that are refused', async () => {
  const account = `/accounts/${made.createAccount.accountId}`
  const written = ['48500100277', '+48 500 100 277', '+48-500-100-277']
  for (const phone of written) {
    assert.equal((await ask('PUT', `${account}/opt-outs/${encodeURIComponent(phone)}`, {})).status, 200, phone)
    assert.equal((await ask('POST', `${account}/recipients/${encodeURIComponent(phone)}/erase`)).status, 200, phone)
    assert.equal((await readLog()).at(-1).subject, '+48•••••••77', phone)
  }
  assert.equal((await ask('PUT', `${account}/segments/8`, { name: 'Refused' })).status, 200)
  assert.equal((await ask('POST', `${account}/segments/8/members`, { members: [{ phone: PHONE }, { phone: '0500100277' }] })).status, 200)
  assert.deepEqual((await readLog()).at(-1).after, { added: 1, updated: 0, rejected: 1 })
  assert.doesNotMatch(JSON.stringify(await readLog()), /500.?100.?277/)
})

test('of two changes at once, the later one records what the earlier one has made', async () => {
  const { body: account } = await ask('POST', '/accounts', { name: 'First' })
  const path = `/accounts/${account.accountId}`
  const changing = await transaction(owner, async (tx) => {
    await tx.query('select from accounts where id = $1 for update', [account.accountId])
    const there = ask('PATCH', path, { name: 'Second' })
    await untilBlocked(owner, 1)
    const back = ask('PATCH', path, { name: 'First' })
    await untilBlocked(owner, 2)
    return [there, back]
  })
  for (const response of await Promise.all(changing)) assert.equal(response.status, 200)
  const entries = (await readLog()).filter((entry) => entry.account_id === account.accountId && entry.action === 'changeAccount')
  assert.deepEqual(
    entries.map(({ before, after }) => [before.name, after.name]),
    [
      ['First', 'Second'],
      ['Second', 'First'],
    ],
  )
})

test('removals of groups, which can take long, leave the connections of other requests free', async () => {
  const account = `/accounts/${made.createAccount.accountId}`
  const numbers = [21, 22, 23, 24]
  for (const number of numbers) await ask('PUT', `${account}/segments/${number}`, { name: 'Large' })
  const removing = await transaction(owner, async (tx) => {
    await tx.query('select from groups where number = any ($1) for update', [numbers])
    const removals = numbers.map((number) => ask('DELETE', `${account}/segments/${number}`))
    await untilBlocked(owner, numbers.length)
    assert.equal((await ask('GET', account)).status, 200)
    return removals
  })
  for (const response of await Promise.all(removing)) assert.equal(response.status, 204)
  const removed = (await readLog()).filter(({ action, subject }) => action === 'deleteSegment' && numbers.includes(Number(subject)))
  assert.equal(removed.length, numbers.length)
})

test('a refused change, or one that changes nothing, leaves no entry', async () => {
  const account = `/accounts/${made.createAccount.accountId}`
  for (const [method, path, body, status, left = 0] of [
    ['PATCH', account, { name: 'Renamed' }, 200],
    ['POST', `${account}/resume`, undefined, 200],
    ['PATCH', account, {}, 400],
    ['POST', '/people', { email: 'new@example.com', name: 'Again' }, 409],
    ['DELETE', `${account}/segments/7`, undefined, 404],
    ['PUT', `${account}/segments/8`, { name: 'Refused' }, 200],
    ['PUT', `${account}/segments/8`, { name: 'Renamed' }, 200, 1],
    ['POST', `${account}/segments/8/members`, { members: [{ phone: '1' }] }, 200],
    ['DELETE', `${account}/segments/8/members/+48500100266`, undefined, 204],
    ['DELETE', `${account}/opt-outs/+48500100266`, undefined, 204],
    // Before the account has agents: it counts for agents that are assigned later.
    ['PUT', `${account}/opt-outs/+48500100266`, {}, 200, 1],
    ['PUT', `${account}/assignments/audited`, undefined, 200, 1],
    ['PUT', `${account}/assignments/audited`, undefined, 200],
    ['PUT', `${account}/opt-outs/+48500100266`, {}, 200],
    ['PUT', `${account}/opt-outs/+48500100266`, { block: true }, 200, 1],
    ['PUT', `${account}/opt-outs/+48500100266`, { block: true }, 200],
    ['PUT', `${account}/opt-outs/+48500100266`, { agentId: 'audited', block: true }, 200, 1],
    ['POST', `${account}/recipients/+48500100266/erase`, undefined, 200, 1],
    ['POST', `${account}/recipients/+48500100266/erase`, undefined, 200],
    ['POST', '/recipients/+48500100266/erase', undefined, 200, 1],
    ['POST', '/recipients/+48500100266/erase', undefined, 200],
    ['POST', `${account}/segments/8/members`, { members: [{ phone: '+48500100266' }] }, 200, 1],
    ['POST', `${account}/recipients/+48500100266/erase`, undefined, 200, 1],
    ['POST', `${account}/assignments/audited/activate`, undefined, 200],
    ['PATCH', '/agents/audited', { name: 'Another name' }, 200, 1],
    ['PATCH', '/agents/audited', { name: 'Another name' }, 200],
    ['PATCH', `${account}/agents/audited`, { displayName: 'Shop' }, 200, 1],
    ['PATCH', `${account}/agents/audited`, { displayName: 'Shop' }, 200],
    ['POST', `${account}/segments/8/members`, { members: [MEMBER] }, 200, 1],
    ['POST', `${account}/segments/8/members`, { members: [MEMBER] }, 200],
    ['POST', `${account}/segments/8/members`, { members: [{ ...MEMBER, attributes: {} }] }, 200, 1],
    ['POST', `${account}/messages`, MESSAGE, 202, 1],
    ['POST', `${account}/messages`, MESSAGE, 202],
    ['POST', `${account}/campaigns`, CAMPAIGN, 202, 1],
    ['POST', `${account}/campaigns`, CAMPAIGN, 202],
    ['POST', `/tokens/${made.createToken.tokenId}/revoke`, undefined, 200],
    ['PUT', `/people/${made.createPerson.personId}/roles/${made.createAccount.accountId}`, { role: 'viewer' }, 200, 1],
    ['PUT', `/people/${made.createPerson.personId}/roles/${made.createAccount.accountId}`, { role: 'viewer' }, 200],
    ['POST', `${account}/people`, { email: 'new@example.com', name: 'New', role: 'viewer' }, 201],
    ['POST', `${account}/people`, { email: 'new@example.com', name: 'New', role: 'admin' }, 409],
  ] as const) {
    const entries = (await readLog()).length
    assert.equal((await send({ action: '', method, path, body })).status, status, path)
    assert.equal((await readLog()).length - entries, left, `${method} ${path}`)
  }
})

test('a message is announced to workers after its commit', async () => {
  const account = `/accounts/${made.createAccount.accountId}`
  const listener = await owner.connect()
  try {
    await listener.query('listen herald_queue')
    const seen = new Promise<number>((resolve, reject) =>
      listener.once('notification', () => readLog().then((entries) => resolve(entries.length), reject)),
    )
    await owner.query(`
      create function delay_entry() returns trigger language plpgsql as $$ begin perform pg_sleep(0.3); return new; end $$;
      create trigger delay_entry before insert on audit_log for each row execute function delay_entry()`)
    const entries = (await readLog()).length
    const body = { ...MESSAGE, recipient: '+48500100255' }
    assert.equal((await ask('POST', `${account}/messages`, body, { ...SAME_SITE, 'idempotency-key': 'announced' })).status, 202)
    assert.equal((await seen) - entries, 1)
  } finally {
    await owner.query('drop trigger if exists delay_entry on audit_log')
    listener.release(true)
  }
})

test('an entry has the state before the change', () => {
  const { createAccount, createToken, createPerson } = made
  assert.equal(befores.changeAccount.name, 'Audited')
  assert.equal(befores.activateAgent.active, false)
  assert.deepEqual([befores.changeAutoReply.keyword, befores.deleteAutoReply.keyword], ['hours', 'opening hours'])
  assert.deepEqual([befores.deleteOptOut.length, befores.deleteOptOut[0].optedOut, befores.deleteOptOut[0].agentId], [1, true, 'audited'])
  assert.deepEqual([befores.revokeToken.tokenId, befores.revokeToken.revokedAt], [createToken.tokenId, null])
  assert.deepEqual(befores.removePersonRole, { personId: createPerson.personId, email: 'new@example.com', role: 'viewer' })
  assert.equal(befores.deleteTemplate.id, made.createTemplate.id, `template of account ${createAccount.accountId}`)
  assert.deepEqual([befores.changeAgent.agentId, befores.changeAgent.active], ['audited', true])
  assert.deepEqual([befores.allowRecipient.length, befores.allowRecipient[0].accountId], [1, createAccount.accountId])
  assert.ok(befores.eraseRecipient.messages >= 2, JSON.stringify(befores.eraseRecipient))
  for (const action of ['retryCampaign', 'createPersonLink', 'createAccountPersonLink']) assert.equal(befores[action], undefined, action)
})

test('the entry of a deletion has the deleted state before, and nothing after', async () => {
  const entries = (await readLog()).filter((entry) => entry.account_id === made.createAccount.accountId)
  for (const [action, field, id] of [
    ['deleteTemplate', 'id', made.createTemplate.id],
    ['deleteAutoReply', 'autoReplyId', made.createAutoReply.autoReplyId],
    ['deleteSegment', 'segmentId', undefined],
    ['deleteWebhookEndpoint', 'endpointId', made.createWebhookEndpoint.endpointId],
    ['deleteSegmentMember', 'phone', '+48•••••••00'],
  ]) {
    const { before, after: left } = entries.find((entry) => entry.action === action)
    assert.deepEqual([before[field] ?? before.group, left], [id ?? 7, null], action)
  }
  assert.equal(befores.deleteWebhookEndpoint.status, 'ACTIVE')
  const replayed = entries.find(({ action }) => action === 'replayWebhookEvents')
  assert.deepEqual(replayed.after, { from: '2026-01-01T00:00:00Z' })
})
