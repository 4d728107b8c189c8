import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startHerald } from './processes.ts'
import { type Account, AGENT } from './service.ts'

// The service under attack: one process with all roles, the embedded database and the simulated network, with the default limits. The
// accounts are made by the commands of the measured checkout, since the schema of its database may not be that of this one.

const DEFAULT_LIMITS = { HERALD_LIMIT_MESSAGES_PER_SECOND: '', HERALD_LIMIT_OTHERS_PER_MINUTE: '' }

export type Scene = {
  url: string
  port: number
  pid: number
  victim: Account
  /** The authorization header of another account. */
  attacker: string
  stop: () => Promise<void>
}

/** `checkout`: the directory of the Herald to measure. */
export async function setScene(checkout: string): Promise<Scene> {
  const program = join(checkout, 'server', 'bin', 'herald.js')
  const herald = await startHerald([], DEFAULT_LIMITS, { program })
  const command = async (...args: string[]) => {
    const env = { PATH: process.env.PATH, HERALD_DATA_DIR: herald.dataDir }
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args, '--json'], { env })
    return JSON.parse(stdout)
  }
  await command('agent', 'create', AGENT, '--name', AGENT, '--billing-type', 'single')
  const createCaller = async (name: string) => {
    const { accountId } = await command('account', 'create', name)
    await command('agent', 'assign', AGENT, String(accountId))
    const { integrationKey, secret } = await command('key', 'create', String(accountId))
    return { accountId, authorization: `Bearer ${integrationKey}:${secret}`, templateId: 0 }
  }
  const victim = await createCaller('Victim')
  const { authorization: attacker } = await createCaller('Attacker')
  const { url, child, stop } = herald
  return { url, port: Number(new URL(url).port), pid: child.pid as number, victim, attacker, stop }
}

/** 20 of these fill the page of 4 MiB that older versions send (now 1 MiB), and one address may create them in a minute. */
const TEMPLATES = 20

/** Returns the size of a page in bytes. */
export async function fillTemplates({ url, attacker }: Scene): Promise<number> {
  const headers = { authorization: attacker, 'content-type': 'application/json' }
  for (let n = 0; n < TEMPLATES; n++) {
    const response = await fetch(`${url}/v1/templates`, { method: 'POST', headers, body: JSON.stringify(largestTemplate(n)) })
    if (response.status !== 201) throw new Error(`template ${n} was refused: ${await response.text()}`)
    await response.arrayBuffer()
  }
  const page = await fetch(`${url}/v1/templates?limit=200`, { headers: { authorization: attacker } })
  return (await page.arrayBuffer()).byteLength
}

/** 252 KB as JSON: a carousel with every button it may have, each with the longest payload, of three bytes a character. */
function largestTemplate(number: number): object {
  const button = (id: string) => ({ id, type: 'quick_reply', text: 'Yes', payload: '\u20ac'.repeat(2_048) })
  const card = (n: number) => ({ title: `Card ${n}`, buttons: [0, 1, 2, 3].map((b) => button(`b${n}-${b}`)) })
  const message = { type: 'CAROUSEL', data: { cards: Array.from({ length: 10 }, (_, n) => card(n)) } }
  return { name: `Large ${number}`, message }
}

/** The head of a request whose body and blank line come after it. */
export function headOf(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}`
}
