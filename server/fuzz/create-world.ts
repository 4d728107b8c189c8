import { readFileSync } from 'node:fs'
import { createAccount } from '../src/accounts/accounts.ts'
import { createKey } from '../src/accounts/keys.ts'
import { createPool, type Pool } from '../src/db/pool.ts'
import { createLink, redeemLink } from '../src/people/links.ts'
import { createPerson } from '../src/people/people.ts'
import { listSessions, openSession } from '../src/people/sessions.ts'
import { createToken } from '../src/people/tokens.ts'
import { addAutoReply } from '../src/replies/auto-replies.ts'
import { joinGroup } from '../test/support/groups.ts'
import { createAssignedAgent, createCaller, type TestCaller } from '../test/support/service.ts'
import type { Ids, Victims, World } from './world.ts'

// Creates what a run begins with: accounts with data and credentials, people, and victims for requests that end something.

const GROUPS = [1, 2]
const VICTIM_SEGMENTS = [101, 102, 103]
const MEMBERS = 5
const TEMPLATES = 10
const MESSAGES = 10
const CAMPAIGNS = 3
const ENDPOINTS = 3
const KEYS = 5
const SESSIONS = 200
const PEOPLE = 5
const TOKENS = 5
// More than a page of a list, so that there are cursors.
const VICTIM_PHONES = 60
const DAY_MS = 86_400_000
const PHONES = Array.from({ length: MESSAGES }, (_, n) => `+4850010020${n}`)

export async function createWorld(url: string, databaseUrl: string, carriersFile: string): Promise<World> {
  const pool = createPool({ connectionString: databaseUrl }, () => {})
  const [own, other, bare] = [await createCaller(pool), await createCaller(pool), await createCaller(pool, [])]
  const agents: string[] = []
  for (const { accountId } of [own, other]) {
    agents.push(await createAssignedAgent(pool, accountId))
    for (const group of GROUPS)
      for (let n = 0; n < MEMBERS; n++) await joinGroup(pool, accountId, `+48500${group}0${n}${accountId % 10}10`, { group })
  }
  const [agentId = '', otherAgentId = ''] = agents
  const world: World = {
    now: Date.now(),
    agentId,
    groups: GROUPS,
    keys: { own: own.authorization, other: other.authorization, withoutModule: bare.authorization },
    tokens: await createTokens(pool, own.accountId, other.accountId),
    ...(await createOperator(pool)),
    webhookToken: /"webhookToken":\s*"([^"]+)"/.exec(readFileSync(carriersFile, 'utf8'))?.[1] as string,
    own: await createIds(pool, url, own, agentId),
    other: await createIds(pool, url, other, otherAgentId),
    victims: await createVictims(pool, own.accountId),
    phones: PHONES,
    phoneIds: [],
    links: [],
    cursors: new Map(),
  }
  world.victims.sessions.push(...(await listSessions(pool, world.operatorId)).map(({ sessionId }) => sessionId))
  await pool.end()
  return world
}

const newToken = async (pool: Pool, role: 'operator' | 'admin' | 'viewer', accountIds: number[]) =>
  await createToken(pool, { name: role, role, accountIds, expiresAt: new Date(Date.now() + DAY_MS) })

async function createTokens(pool: Pool, own: number, other: number): Promise<World['tokens']> {
  const bearer = async (...token: Parameters<typeof newToken>) => `Bearer ${(await newToken(...token)).secret}`
  return {
    operator: await bearer(pool, 'operator', []),
    admin: await bearer(pool, 'admin', [own]),
    viewer: await bearer(pool, 'viewer', [own]),
    other: await bearer(pool, 'admin', [other]),
  }
}

async function createOperator(pool: Pool): Promise<Pick<World, 'operatorId' | 'email' | 'password' | 'cookies'>> {
  const [email, password] = ['operator@example.com', 'a password only of the fuzzer']
  const { personId: operatorId } = await createPerson(pool, { email, name: 'Operator', isOperator: true })
  await redeemLink(pool, { secret: (await createLink(pool, operatorId)).token, password })
  const cookies: string[] = []
  for (let n = 0; n < SESSIONS; n++)
    cookies.push(`herald-local=${await openSession(pool, operatorId, { address: '127.0.0.1', userAgent: 'fuzz' })}`)
  return { operatorId, email, password, cookies }
}

async function createVictims(pool: Pool, ownAccountId: number): Promise<Victims> {
  const { accountId } = await createAccount(pool, 'Victim', ['rcs', 'sms'])
  const people: number[] = []
  for (let n = 0; n < PEOPLE; n++)
    people.push((await createPerson(pool, { email: `victim-${n}@example.com`, name: `Victim ${n}` })).personId)
  const tokens: number[] = []
  for (let n = 0; n < TOKENS; n++) tokens.push((await newToken(pool, 'viewer', [accountId])).tokenId)
  const phones = Array.from({ length: VICTIM_PHONES }, (_, n) => `+48509000${String(n).padStart(3, '0')}`)
  for (const group of VICTIM_SEGMENTS) for (const phone of phones) await joinGroup(pool, ownAccountId, phone, { group })
  return {
    accountId,
    agentId: await createAssignedAgent(pool, ownAccountId),
    assignedAgentId: await createAssignedAgent(pool, ownAccountId),
    people,
    tokens,
    sessions: [],
    segments: VICTIM_SEGMENTS,
    phones,
  }
}

async function createIds(pool: Pool, url: string, { accountId, authorization }: TestCaller, agentId: string): Promise<Ids> {
  let requests = 0
  async function post<T>(path: string, body: object): Promise<T> {
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': `prepare-${requests++}` }
    const response = await fetch(`${url}/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  const message = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
  const ids: Ids = { accountId, templates: [], messages: [], campaigns: [], keys: [], endpoints: [], autoReplies: [] }
  for (let n = 0; n < TEMPLATES; n++)
    ids.templates.push((await post<{ id: number }>('/templates', { name: `Template ${n}`, status: 'APPROVED', message })).id)
  for (const recipient of PHONES)
    ids.messages.push((await post<{ messageId: string }>('/messages', { agentId, recipient, message: { inline: message } })).messageId)
  for (let n = 0; n < CAMPAIGNS; n++) {
    const body = { name: `Campaign ${n}`, agentId, segmentIds: GROUPS, message: { inline: message } }
    ids.campaigns.push((await post<{ campaignId: string }>('/campaigns', body)).campaignId)
  }
  for (let n = 0; n < ENDPOINTS; n++)
    ids.endpoints.push((await post<{ endpointId: number }>('/webhook-endpoints', { url: `https://hooks.example.com/${n}` })).endpointId)
  for (let n = 0; n < KEYS; n++) ids.keys.push((await createKey(pool, accountId)).integrationKey)
  const [templateId = 0] = ids.templates
  ids.autoReplies.push((await addAutoReply(pool, { accountId, agentId, keyword: 'info', templateId })).autoReplyId)
  return ids
}
