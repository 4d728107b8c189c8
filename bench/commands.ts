import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { benchKeyFile } from './keys.ts'

// Accounts made by the `herald` command of the checkout that is measured: the schema of its database may not be that of this checkout.

export const AGENT = 'bench'

export type Account = { accountId: number; authorization: string; templateId: number }

/** Runs a command and returns what it prints as JSON. */
export type Command = (...args: string[]) => Promise<Record<string, unknown>>

/** `env` says which database: `HERALD_DATA_DIR` or `HERALD_DATABASE_URL`. */
export function commandOf(program: string, env: Record<string, string>): Command {
  const settings = { PATH: process.env.PATH, HERALD_ENCRYPTION_KEY_FILE: benchKeyFile(), ...env }
  return async (...args) => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args, '--json'], { env: settings })
    return JSON.parse(stdout) as Record<string, unknown>
  }
}

/** The agent of the simulated network that every account of the bench sends by. */
export async function createBenchAgent(command: Command): Promise<void> {
  await command('agent', 'create', AGENT, '--name', AGENT, '--billing-type', 'single')
}

/** An account that may send by the agent, without a template. */
export async function createCaller(command: Command, name: string): Promise<Account> {
  const { accountId } = await command('account', 'create', name)
  await command('agent', 'assign', AGENT, String(accountId))
  const { integrationKey, secret } = await command('key', 'create', String(accountId))
  return { accountId: Number(accountId), authorization: `Bearer ${integrationKey}:${secret}`, templateId: 0 }
}
