import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastify from 'fastify'
import { createAccount } from '../../src/accounts/accounts.ts'
import { guardAdmin } from '../../src/admin/guard.ts'
import { WRONG_CREDENTIALS_POLICY } from '../../src/http/guard.ts'
import type { Role } from '../../src/people/roles.ts'
import { createToken } from '../../src/people/tokens.ts'
import { call, untilAvailable } from '../support/service.ts'
import { ADMIN, newAddress, newPerson, pool, SAME_SITE, sessionOf } from './shared.ts'

/** The lowest role of every operation. `anyone`: without a session. `signedIn`: with a session, whatever its role. `somewhere`: with a role in any account. */
const TABLE: Record<Role | 'anyone' | 'signedIn' | 'somewhere', string> = {
  anyone: 'signIn setUp listSignInOptions startOidc signInWithOidc',
  signedIn: 'readSession signOut confirmPassword changePassword confirmWithOidc listSessions endSession listAccounts',
  somewhere: 'readMedia',
  viewer: `readAccount readQuotas listKeys readKey listAssignments readAssignment listAutoReplies readAutoReply
    listAgents listTemplates readTemplate checkTemplate readCampaignContent readCampaignFailures readCampaignMinutes countAudience
    readMessage readMessageContent listMessages readTimeline listCampaigns readCampaign
    listSegments readSegment listSegmentMembers listOptOuts checkCapabilities
    readCampaignSummary readCampaignAggregations listCampaignActions listCampaignRecipients readMessagesSummary readMessagesAggregations
    followEvents streamEvents listWebhookEndpoints readWebhookEndpoint listWebhookAttempts readWebhookAttempt listPhones readPhone followPhone
    listPhoneSms listAccountCarriers readReceived`,
  admin: `createKey changeKey rotateKey revokeKey createAutoReply changeAutoReply deleteAutoReply planCancel planRetry retryCampaign
    listAccountPeople readAccountPerson addAccountPerson setAccountRole removeAccountPerson createAccountPersonLink listAccountAudit exportAccountAudit
    readRecipient exportRecipient eraseRecipient allowRecipient
    changeAgent createTemplate replaceTemplate deleteTemplate sendMessage sendTestMessage cancelMessage
    createCampaign pauseCampaign resumeCampaign cancelCampaign
    nameSegment deleteSegment putSegmentMembers deleteSegmentMember importSegment putOptOut deleteOptOut exportMessages exportFoundMessages exportCampaign
    createWebhookEndpoint changeWebhookEndpoint deleteWebhookEndpoint rotateWebhookSecret testWebhookEndpoint replayWebhookEvents
    deliverToPhone readOnPhone tapOnPhone replyFromPhone stopFromPhone subscribeFromPhone unsubscribeFromPhone typeOnPhone
    shareLocationFromPhone sendFileFromPhone takePhoneOffline bringPhoneOnline`,
  operator: `createAccount listAccountTroubles changeAccount countWaiting suspendAccount resumeAccount setQuotas setCampaignWindow removeCampaignWindow
    listAllAgents readAgent createAgent updateAgent assignAgent unassignAgent activateAgent
    listPeople readPerson listPersonSessions endPersonSession createPerson changePerson createPersonLink setPersonRole removePersonRole
    listTokens createToken revokeToken listAudit exportAudit readHealth readEncryption rotateEncryption
    readFaults setFaults clearFaults
    readRecipientEverywhere exportRecipientEverywhere eraseRecipientEverywhere allowRecipientEverywhere`,
}

type Operation = { id: string; method: string; path: string; needed: keyof typeof TABLE }

async function operations(): Promise<Operation[]> {
  const { body } = await call(`${ADMIN}/openapi.json`)
  const needed = new Map(Object.entries(TABLE).flatMap(([role, ids]) => ids.split(/\s+/).map((id) => [id, role as Operation['needed']])))
  const found = Object.entries<Record<string, { operationId: string }>>(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId: id }]) => ({
      id,
      method: method.toUpperCase(),
      // A stream would not end. An allowed request gets an error for its cursor.
      path: id === 'streamEvents' ? `${path}?accountId={accountId}&cursor=x` : path,
      needed: needed.get(id),
    })),
  )
  assert.deepEqual(
    found.map(({ id }) => id).sort(),
    [...needed.keys()].sort(),
    'the table of this test has exactly the operations of the API',
  )
  return found as Operation[]
}

const own = (await createAccount(pool, 'Own', ['rcs', 'sms'])).accountId
const foreign = (await createAccount(pool, 'Foreign', ['rcs', 'sms'])).accountId
const ORDER: Role[] = ['viewer', 'admin', 'operator']
const people = {
  none: (await newPerson(undefined)).personId,
  viewer: (await newPerson('viewer', [own])).personId,
  admin: (await newPerson('admin', [own])).personId,
  operator: (await newPerson('operator')).personId,
}
type Somebody = keyof typeof people
const expiresAt = new Date(Date.now() + 3_600_000)
const newToken = async (role: Role) =>
  (await createToken(pool, { name: role, role, accountIds: role === 'operator' ? [] : [own], expiresAt })).secret
const tokens = { viewer: await newToken('viewer'), admin: await newToken('admin'), operator: await newToken('operator') }

/** Who sends a request, and how: with a session from a page of Herald or from another site, with a token, or with nothing. */
type Sender = { role: Somebody; by: 'page' | 'other site' | 'token' } | { role: 'anonymous'; by: 'page' | 'other site' }

const SENDERS: Sender[] = [
  ...(['page', 'other site'] as const).flatMap((by) =>
    (['anonymous', 'none', 'viewer', 'admin', 'operator'] as const).map((role) => ({ role, by })),
  ),
  ...(['viewer', 'admin', 'operator'] as const).map((role) => ({ role, by: 'token' as const })),
]
const OF_SESSIONS = [
  'readSession',
  'signOut',
  'confirmPassword',
  'changePassword',
  'listSessions',
  'endSession',
  'confirmWithOidc',
  'createPersonLink',
  'createAccountPersonLink',
]

/** What the table says about a request: the refusal of the guard, or undefined. */
function expected({ id, method, path, needed }: Operation, { role, by }: Sender, accountId: number): string | undefined {
  // The public operations take no token: a program does not sign in.
  if (needed === 'anyone') return by !== 'page' && method !== 'GET' ? 'RCS_CROSS_SITE' : undefined
  if (role === 'anonymous') return 'RCS_UNAUTHORIZED'
  if (by === 'other site' && method !== 'GET') return 'RCS_CROSS_SITE'
  if (by === 'token' && OF_SESSIONS.includes(id)) return 'RCS_ROLE'
  if (needed === 'signedIn') return undefined
  if (needed === 'somewhere') return role === 'none' ? 'RCS_ROLE' : undefined
  return role === 'operator' ? undefined : refusalInAccount({ path, needed }, role, accountId)
}

function refusalInAccount({ path, needed }: { path: string; needed: Role }, role: Somebody, accountId: number): string | undefined {
  const hasRole = role !== 'none' && path.includes('{accountId}') && accountId === own
  if (path.includes('{accountId}') && !hasRole) return 'RCS_ACCOUNT_NOT_FOUND'
  return hasRole && ORDER.indexOf(role as Role) >= ORDER.indexOf(needed) ? undefined : 'RCS_ROLE'
}

async function headersOf({ role, by }: Sender): Promise<Record<string, string>> {
  const site = by === 'page' ? SAME_SITE : { 'sec-fetch-site': 'cross-site' }
  if (role === 'anonymous') return site
  if (by === 'token') return { authorization: `Bearer ${tokens[role as Role]}` }
  // A session of its own, since some operations end it.
  return { ...site, cookie: (await sessionOf(people[role])).cookie.replace('herald-local', '__Host-herald') }
}

const REFUSALS = ['RCS_UNAUTHORIZED', 'RCS_CROSS_SITE', 'RCS_ACCOUNT_NOT_FOUND', 'RCS_ROLE', 'RCS_PASSWORD_REQUIRED']

async function checkRequest(operation: Operation, sender: Sender, accountId: number): Promise<void> {
  const { id, method, path: pattern, needed } = operation
  const path = pattern.replace('{accountId}', String(accountId)).replaceAll(/\{\w+\}/g, '999999')
  // An address of its own: wrong credentials are limited by address.
  const headers = { 'x-forwarded-for': newAddress(), 'x-forwarded-proto': 'https', ...(await headersOf(sender)) }
  const { status, body } = await untilAvailable(() => call(ADMIN + path, { method, headers, ...(method !== 'GET' && { body: {} }) }))
  // A sign-in without a password is refused by its handler, not by the guard.
  const isGuards = REFUSALS.includes(body?.code) && !(needed === 'anyone' && body.code === 'RCS_UNAUTHORIZED')
  const request = `${id} ${path} of ${sender.role} by ${sender.by}: ${status} ${JSON.stringify(body)}`
  assert.equal(isGuards ? body.code : undefined, expected(operation, sender, accountId), request)
  assert.ok(status < 500, request)
  if (status >= 400) assert.doesNotMatch(JSON.stringify(body), /herald \w|--\w/, `${request} names a command`)
}

test('every operation is allowed for exactly the roles, accounts and sites of the table', async () => {
  for (const operation of await operations()) {
    const accounts = operation.path.includes('{accountId}') ? [own, foreign] : [own]
    await Promise.all(SENDERS.flatMap((sender) => accounts.map((accountId) => checkRequest(operation, sender, accountId))))
  }
})

test('a route that declares no role stops the start', () => {
  const app = fastify()
  guardAdmin(app, { pool, limiter: async () => assert.fail('nothing is limited'), publicReads: WRONG_CREDENTIALS_POLICY })
  assert.throws(() => app.get('/new', async () => null), /the route GET \/new declares no role/)
})

test('a stream without an account says that it needs an operator', async () => {
  const { body } = await (await sessionOf(people.viewer)).ask('GET', '/stream')
  assert.deepEqual([body.code, body.details[0].reason], ['RCS_ROLE', 'The request needs the role operator; yours is lower.'])
})

test('an id that is too large for the database names nothing', async () => {
  const { ask } = await sessionOf(people.operator)
  for (const { method, path } of await operations()) {
    for (const name of path.match(/(?<=\{)\w*id(?=\})/gi) ?? []) {
      for (const tooLarge of ['3000000000', '1e308']) {
        const filled = path
          .replace(`{${name}}`, tooLarge)
          .replaceAll('{accountId}', String(own))
          .replaceAll(/\{\w+\}/g, '1')
        const { status, body } = await ask(method, filled, method === 'GET' ? undefined : {})
        assert.ok(status >= 400 && status < 500, `${method} ${filled}: ${status} ${JSON.stringify(body)}`)
      }
    }
  }
})

type DocumentedOperation = { operationId: string; security?: object[]; requestBody?: object; responses: object }

test('the document says which operations need no credentials or a session, and what a body can be refused for', async () => {
  const { body } = await call(`${ADMIN}/openapi.json`)
  const documented = Object.values<Record<string, DocumentedOperation>>(body.paths).flatMap((methods) => Object.values(methods))
  const idsWith = (security: object[]) =>
    new Set(documented.filter((each) => JSON.stringify(each.security) === JSON.stringify(security)).map(({ operationId }) => operationId))
  assert.deepEqual(idsWith([]), new Set(TABLE.anyone.split(' ')))
  assert.deepEqual(idsWith([{ session: [] }]), new Set(OF_SESSIONS))
  // An import has no limit of its size.
  for (const { operationId, requestBody, responses } of documented) {
    if (requestBody === undefined || operationId === 'importSegment') continue
    assert.ok('413' in responses && '415' in responses, operationId)
  }
})

const WITH_PASSWORD = `createPerson changePerson createPersonLink endPersonSession setPersonRole removePersonRole createToken revokeToken
  addAccountPerson setAccountRole removeAccountPerson createAccountPersonLink
  createKey rotateKey createWebhookEndpoint rotateWebhookSecret cancelCampaign
  eraseRecipient allowRecipient eraseRecipientEverywhere allowRecipientEverywhere`

test('dangerous operations ask for the password if it was given more than ten minutes ago, and only these', async () => {
  const asked: string[] = []
  for (const { id, method, path, needed } of await operations()) {
    if (needed === 'anyone') continue
    const { ask, cookie } = await sessionOf(people.operator)
    // The column rounds to milliseconds.
    await pool.query(`update sessions set confirmed_at = now() - interval '10 minutes 1 ms' where secret_hash = sha256($1)`, [
      cookie.split('=')[1],
    ])
    const filled = path.replace('{accountId}', String(own)).replaceAll(/\{\w+\}/g, '999999')
    const { body } = await ask(method, filled, method === 'GET' ? undefined : {})
    if (body?.code === 'RCS_PASSWORD_REQUIRED') asked.push(id)
  }
  assert.deepEqual(new Set(asked), new Set(WITH_PASSWORD.split(/\s+/)))
})
