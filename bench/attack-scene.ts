import { heraldOf } from './checkouts.ts'
import { type Account, commandOf, createBenchAgent, createCaller } from './commands.ts'
import { startHerald } from './processes.ts'

// The service under attack: one process with all roles, the embedded database and the simulated network, with the default limits.

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
  const program = heraldOf(checkout)
  const herald = await startHerald([], DEFAULT_LIMITS, { program })
  const command = commandOf(program, { HERALD_DATA_DIR: herald.dataDir })
  await createBenchAgent(command)
  const victim = await createCaller(command, 'Victim')
  const { authorization: attacker } = await createCaller(command, 'Attacker')
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
