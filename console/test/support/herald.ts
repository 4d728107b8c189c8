import { assignAgent, createAgent } from '../../../server/src/agents/agents.ts'
import type { Pool } from '../../../server/src/db/pool.ts'
import { changePerson, createPerson, setRole } from '../../../server/src/people/people.ts'
import type { AccountRole, Role } from '../../../server/src/people/roles.ts'
import { openSession } from '../../../server/src/people/sessions.ts'
import { createTestDatabase } from '../../../server/test/support/database.ts'
import { call, createCaller, startTestService } from '../../../server/test/support/service.ts'
import { startSimulator } from '../../../server/test/support/simulator.ts'

// A whole Herald for browser tests: the service with all roles, its database, and the simulated network.

export type Herald = Awaited<ReturnType<typeof startHerald>>

type Options = {
  /** Why the tests write rows that no request wrote, if they do. */
  byHand?: string
  /** By default, a new one on the server that all tests share. */
  database?: { pool: Pool; url: string }
}

export async function startHerald({ byHand, database }: Options = {}) {
  const rows = byHand === undefined ? {} : { uncounted: byHand, unmetered: byHand }
  const { pool, url: HERALD_DATABASE_URL } = database ?? (await createTestDatabase({ unlogged: 'nothing here concerns crashes', ...rows }))
  const simulator = await startSimulator()
  const service = await startTestService(
    // Tests look again and again.
    { HERALD_DATABASE_URL, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000' },
    { findCarriers: async () => ({ rcs: [simulator.rcs], sms: simulator.sms }), streamLimits: { checkEveryMs: 500 } },
  )
  await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
  const newAccount = (carrier = simulator.rcs.name) => addAccount({ pool, url: service.url, carrier })
  return { url: service.url, pool, simulator, service, newAccount, ...(await newAccount()) }
}

type Place = { pool: Pool; url: string; carrier: string }

let agents = 0

/** An account that has sent nothing, with an agent of the simulated network. */
async function addAccount({ pool, url, carrier }: Place) {
  const { accountId, authorization } = await createCaller(pool)
  agents += 1
  const agentId = agents === 1 ? 'greenhouse' : `greenhouse-${agents}`
  await createAgent(pool, { agentId, name: 'Greenhouse', billingType: 'single', carrier })
  await assignAgent(pool, agentId, accountId)
  let people = 0
  let keys = 0

  /** The cookie of a new person with this role in the account. */
  async function signIn(role: Role): Promise<string> {
    people += 1
    const { personId } = await createPerson(pool, { email: `${role}-${people}@account-${accountId}.example.com`, name: 'Anna Nowak' })
    if (role === 'operator') await changePerson(pool, personId, { isOperator: true })
    else await setRole(pool, personId, accountId, role as AccountRole)
    return await openSession(pool, personId, { address: '127.0.0.1', userAgent: 'test' })
  }

  /** Sends a message as a caller of the API does, and returns its id. */
  async function send(recipient: string, message: object, more: object = {}): Promise<string> {
    keys += 1
    const { status, body } = await call(`${url}/v1/messages`, {
      method: 'POST',
      authorization,
      headers: { 'idempotency-key': `key-${keys}` },
      body: { agentId, recipient, message: { inline: message }, ...more },
    })
    if (status !== 202) throw new Error(`POST /v1/messages: ${status} ${JSON.stringify(body)}`)
    return body.messageId
  }

  /** Makes a group of these numbers and sends a campaign to it, as a caller of the API does. Returns its id. */
  async function sendCampaign(name: string, numbers: string[], message: object): Promise<string> {
    keys += 1
    const ask = async (method: string, path: string, body: object) => {
      const headers = { 'idempotency-key': `key-${keys}` }
      const response = await call(`${url}/v1/${path}`, { method, authorization, headers, body })
      if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
      return response.body
    }
    await ask('PUT', `segments/${keys}`, { name })
    await ask('POST', `segments/${keys}/members`, { members: numbers.map((phone) => ({ phone })) })
    return (await ask('POST', 'campaigns', { name, agentId, segmentIds: [keys], message: { inline: message } })).campaignId
  }
  return { accountId, agentId, authorization, signIn, send, sendCampaign }
}
