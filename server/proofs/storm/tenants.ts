import type { Pool } from '../../src/db/pool.ts'
import type { Keyring } from '../../src/encryption/keyring.ts'
import { streamOf } from '../random.ts'
import type { Asked } from './asked.ts'
import type { Caller } from './caller.ts'
import { prepareCampaigns } from './campaigns.ts'
import { type Followers, startFollowers, type Told } from './followers.ts'
import { type Load, startLoad } from './load.ts'
import { makeTemplates } from './templates.ts'

// The accounts of a run, each with an agent, a key, templates, groups, endpoints and a reader of the feed of its own. They use the same group
// numbers and references, and write to different people. `const tenants = await startTenants(…)`; later `load.stop()` of each, and
// `followers.stop()` when all is settled.

export type Tenant = { caller: Caller; load: Load; followers: Followers }

/** What became of it. */
export type Tenancy = { caller: Caller; asked: Asked; told: Told }

export type TenantOptions = {
  pool: Pool
  keyring: Keyring
  callers: readonly Caller[]
  seed: number
  /** Messages a second, of all together. */
  rate: number
  /** Of each. */
  campaigns: number
  campaignEveryMs: number
  people: number
}

/** Of the load, by account: the first asks for most of it. */
const SHARES = [0.8, 0.2]
export const ACCOUNTS = SHARES.length

export async function startTenants({ callers, ...options }: TenantOptions): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  for (const [digit, caller] of callers.entries()) tenants.push(await startTenant(caller, digit, options))
  return tenants
}

async function startTenant(caller: Caller, digit: number, options: Omit<TenantOptions, 'callers'>): Promise<Tenant> {
  const { pool, keyring, seed, campaignEveryMs } = options
  const stream = (name: string) => streamOf(seed, `${name} ${digit}`)
  const share = SHARES[digit] ?? 0
  const asker = { agentId: caller.agentId, digit, templates: await makeTemplates(caller) }
  const people = Math.ceil(options.people * share)
  const campaigns = await prepareCampaigns(pool, caller.accountId, asker, stream('campaigns'), options.campaigns, people)
  const followers = await startFollowers({ pool, keyring, caller, random: stream('followers') })
  const load = startLoad({ caller, asker, pool, rate: options.rate * share, random: stream('messages'), campaigns, campaignEveryMs })
  return { caller, load, followers }
}

/** When all that callers need is there again. */
export async function stopLoads(tenants: readonly Tenant[]): Promise<void> {
  await Promise.all(tenants.map(({ load }) => load.stop()))
}

/** When all is settled. */
export async function endTenancies(tenants: readonly Tenant[]): Promise<Tenancy[]> {
  return await Promise.all(
    tenants.map(async ({ caller, load, followers }) => ({ caller, asked: load.asked, told: await followers.stop() })),
  )
}
