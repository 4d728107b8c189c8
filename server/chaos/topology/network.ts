import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/ports.ts'
import { type LedgerEntry, readEntries } from '../history/ledger.ts'
import { createProgram, type Program } from './program.ts'

// The simulated network as a process of its own. Its ledger is on disk, and a kill must not change it.

export type Network = Program & {
  url: string
  /** For HERALD_CARRIERS. */
  carriersFile: string
  ask: (path: string, body?: unknown, method?: string) => Promise<any>
  /** What was in the ledger just before each kill; not before a kill while it was frozen. */
  seen: LedgerEntry[]
}

const PROGRAM = fileURLToPath(new URL('../../../simulator/bin/herald-simulator.js', import.meta.url))
const DELAY_MS = 200
const RESPONSE_TIMEOUT_MS = 10_000
/** A realistic network. It takes its time, so calls are under way at every kill; it loses responses, and repeats and reorders receipts. */
export const USUAL_FAULTS = {
  api: { latency: { rate: 1, ms: 80 }, dropAfter: { rate: 0.01 } },
  webhooks: { duplicated: { rate: 0.05 }, reordered: { rate: 0.2, withinMs: 1_000 } },
  smpp: { receiptBeforeAnswer: { rate: 0.2 }, receiptDuplicated: { rate: 0.05 } },
}

export async function createNetwork(dir: string): Promise<Network> {
  const [port, smppPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const dataDir = join(dir, 'network')
  const options = { '--data-dir': dataDir, '--port': port, '--smpp-port': smppPort, '--delay-ms': DELAY_MS }
  const args = [PROGRAM, ...Object.entries(options).flatMap(([name, value]) => [name, String(value)]), '--stop-with-stdin']
  const program = createProgram({ name: 'network', args, env: {}, dir, readyText: '"ready":true' })
  const carriersFile = join(dataDir, 'carriers.json')
  const ask: Network['ask'] = (path, body, method) => askSimulator({ url, carriersFile }, path, body, method)
  const seen: LedgerEntry[] = []
  let isFrozen = false
  async function kill(): Promise<void> {
    if (program.isRunning() && !isFrozen) seen.push(...(await readEntries({ ask }, seen.at(-1)?.seq).catch(() => [])))
    await program.kill()
    isFrozen = false
  }
  function freeze(): void {
    isFrozen = true
    program.freeze()
  }
  function thaw(): void {
    isFrozen = false
    program.thaw()
  }
  return { ...program, freeze, thaw, url, carriersFile, ask, seen, kill }
}

/** Throws if the request fails. Only `PUT webhook` requires the token. */
async function askSimulator(
  { url, carriersFile }: Pick<Network, 'url' | 'carriersFile'>,
  path: string,
  body?: unknown,
  method = body === undefined ? 'GET' : 'POST',
): Promise<any> {
  const authorization = `Bearer ${JSON.parse(readFileSync(carriersFile, 'utf8')).simulator.webhookToken}`
  const response = await fetch(`${url}/simulator/${path}`, {
    method,
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return await response.json()
}
