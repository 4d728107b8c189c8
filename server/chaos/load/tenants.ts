import { streamOf } from '../support/random.ts'
import type { Topology } from '../topology/topology.ts'
import { type Caller, persist } from './caller.ts'
import { prepareCampaigns } from './campaigns.ts'
import { type Load, startLoad } from './load.ts'
import type { Requested } from './requested.ts'
import type { Template, Templates } from './requests.ts'
import { type Received, type Subscribers, startSubscribers } from './subscribers.ts'

// The accounts of a run. They use the same group numbers and references, and write to different phones.

/** `startLoad`: until `load.stop()`. */
export type Tenant = { caller: Caller; requested: Requested; subscribers: Subscribers; startLoad: () => Load }

/** What is known of a tenant at the end. */
export type TenantRecord = { caller: Caller; requested: Requested; received: Received }

export type LoadSize = {
  seed: number
  /** Messages a second, of all accounts together. */
  rate: number
  /** Of each account; `people` of all accounts together. */
  campaigns: number
  campaignEveryMs: number
  people: number
}

/** The share of each account in the load. */
const SHARES = [0.8, 0.2]
export const ACCOUNTS = SHARES.length

type Shared = Pick<Topology, 'pool' | 'keyring' | 'callers'>

export async function prepareTenants({ callers, ...shared }: Shared, size: LoadSize): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  for (const [digit, caller] of callers.entries()) tenants.push(await prepareTenant(shared, caller, digit, size))
  return tenants
}

async function prepareTenant({ pool, keyring }: Omit<Shared, 'callers'>, caller: Caller, digit: number, size: LoadSize): Promise<Tenant> {
  const stream = (name: string) => streamOf(size.seed, `${name} ${digit}`)
  const share = SHARES[digit] ?? 0
  const sender = { agentId: caller.agentId, digit, templates: await makeTemplates(caller) }
  const campaignSize = { count: size.campaigns, people: Math.ceil(size.people * share) }
  const campaigns = await prepareCampaigns(pool, caller.accountId, sender, stream('campaigns'), campaignSize)
  const subscribers = await startSubscribers({ pool, keyring, caller, random: stream('subscribers') })
  const requested: Requested = { messages: [], campaigns: [], unexpected: [] }
  const load = { caller, sender, requested, pool, rate: size.rate * share, campaigns, campaignEveryMs: size.campaignEveryMs }
  return { caller, requested, subscribers, startLoad: () => startLoad({ ...load, random: stream('messages') }) }
}

/** No other account has these texts. */
async function makeTemplates(caller: Caller): Promise<Templates> {
  async function make(name: string): Promise<Template> {
    const text = `${name}, of ${caller.agentId}.`
    const body = { name, status: 'APPROVED', message: { type: 'MESSAGE', content: text } }
    return { id: (await persist(caller, { method: 'POST', path: '/templates', body })).body.id, text }
  }
  return { plain: await make('Plain'), triggered: await make('Triggered') }
}

/** When everything is settled. */
export async function stopTenants(tenants: readonly Tenant[]): Promise<TenantRecord[]> {
  return await Promise.all(
    tenants.map(async ({ caller, requested, subscribers }) => ({ caller, requested, received: await subscribers.stop() })),
  )
}
