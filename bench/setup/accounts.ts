import { execFile } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { createAccount, type Module } from '../../server/src/accounts/accounts.ts'
import { createKey } from '../../server/src/accounts/keys.ts'
import { assignAgent, createAgent } from '../../server/src/agents/agents.ts'
import type { Pool } from '../../server/src/db/pool.ts'
import { postRequest } from '../load/connections.ts'
import { heraldOf } from './checkouts.ts'
import { benchKeyFile } from './files.ts'

export const AGENT = 'bench'

export type Account = { accountId: number; authorization: string }

/** The agent of the simulated network through which every account of the bench sends. */
export async function createBenchAgent(pool: Pool): Promise<void> {
  await createAgent(pool, { agentId: AGENT, name: AGENT, billingType: 'single', carrier: 'simulator' })
}

/** An account of a database of this checkout. */
export async function createSender(pool: Pool, modules: readonly Module[] = ['rcs']): Promise<Account> {
  const { accountId } = await createAccount(pool, 'Bench', modules)
  await assignAgent(pool, AGENT, accountId)
  const { integrationKey, secret } = await createKey(pool, accountId)
  return { accountId, authorization: `Bearer ${integrationKey}:${secret}` }
}

/**
 * Accounts that the `herald` command of a checkout creates, since its schema may differ from that of this checkout. `env` names the database:
 * `HERALD_DATA_DIR` or `HERALD_DATABASE_URL`.
 */
export async function createSendersBy(checkout: string, env: Record<string, string>, count: number): Promise<Account[]> {
  const settings = { PATH: process.env.PATH, HERALD_ENCRYPTION_KEY_FILE: benchKeyFile(), ...env }
  async function command(...args: string[]): Promise<Record<string, unknown>> {
    const { stdout } = await promisify(execFile)(process.execPath, [heraldOf(checkout), ...args, '--json'], { env: settings })
    return JSON.parse(stdout) as Record<string, unknown>
  }
  await command('agent', 'create', AGENT, '--name', AGENT, '--billing-type', 'single')
  const accounts: Account[] = []
  for (let n = 1; n <= count; n++) {
    const { accountId } = await command('account', 'create', `Bench ${n}`)
    await command('agent', 'assign', AGENT, String(accountId))
    const { integrationKey, secret } = await command('key', 'create', String(accountId))
    accounts.push({ accountId: Number(accountId), authorization: `Bearer ${integrationKey}:${secret}` })
  }
  return accounts
}

export async function createSenderBy(checkout: string, env: Record<string, string>): Promise<Account> {
  return (await createSendersBy(checkout, env, 1))[0] as Account
}

export const MESSAGE = { type: 'MESSAGE' as const, content: 'Your order is on its way.' }

/** A recipient to whom the simulated network delivers, at random, so that index entries are spread. The message is READ in the end. */
export function randomRecipient(): string {
  return `+4850${String(randomInt(100_000)).padStart(5, '0')}10`
}

/** The same with four variables, one of them in its default. */
export const PERSONAL = {
  type: 'MESSAGE' as const,
  content: 'Hello {{name|there}}, your order {{order}} is on its way to {{city}} by {{courier}}.',
}
export const VALUES = { order: '1001', city: 'Warsaw', courier: 'Bicycle' }

/** A request to send a message, with a new idempotency key. `fields`: at least its `message`. */
export function messageRequest({ authorization }: Account, fields: object = { message: { inline: MESSAGE } }): string {
  const headers = { Authorization: authorization, 'Idempotency-Key': randomUUID() }
  return postRequest('/v1/messages', headers, JSON.stringify({ agentId: AGENT, recipient: randomRecipient(), ...fields }))
}
