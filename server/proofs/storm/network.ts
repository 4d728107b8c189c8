import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/ports.ts'
import { until } from '../../test/support/until.ts'
import { type LedgerEntry, readEntries } from '../ledger.ts'
import { createProgram, type Program } from './process.ts'

// The simulated network as a process of its own. Its ledger is on its disk, and a kill must not change what was in it.

export type Network = Program & {
  url: string
  /** For HERALD_CARRIERS. */
  carriersFile: string
  ask: (path: string, body?: unknown, method?: string) => Promise<any>
  /** What was in the ledger just before each kill, but for one in its sleep. */
  seen: LedgerEntry[]
}

const PROGRAM = fileURLToPath(new URL('../../../simulator/bin/herald-simulator.js', import.meta.url))
const DELAY_MS = 200
/** A network as they are: it takes its time, so that something is under way whenever somebody dies; answers get lost, reports come twice and in any order. */
export const USUAL_FAULTS = {
  api: { latency: { rate: 1, ms: 80 }, dropAfter: { rate: 0.01 } },
  webhooks: { duplicated: { rate: 0.05 }, reordered: { rate: 0.2, withinMs: 1_000 } },
  smpp: { receiptBeforeAnswer: { rate: 0.2 }, receiptDuplicated: { rate: 0.05 } },
}
const START_TIMEOUT_MS = 30_000
const ANSWER_MS = 10_000

export async function createNetwork(dir: string): Promise<Network> {
  const [port, smppPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const dataDir = join(dir, 'network')
  const options = { '--data-dir': dataDir, '--port': port, '--smpp-port': smppPort, '--delay-ms': DELAY_MS }
  const program = createProgram({
    name: 'network',
    args: [PROGRAM, ...Object.entries(options).flatMap(([name, value]) => [name, String(value)]), '--stop-with-stdin'],
    env: {},
    dir,
    untilReady: async ({ outFile, assertRunning }) => {
      const starts = countStarts(outFile)
      await until(
        'the network is ready',
        () => {
          assertRunning()
          return countStarts(outFile) > starts
        },
        START_TIMEOUT_MS,
      )
    },
  })
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

function countStarts(outFile: string): number {
  if (statSync(outFile, { throwIfNoEntry: false }) === undefined) return 0
  return readFileSync(outFile, 'utf8').split('"ready":true').length - 1
}

/** Fails where the request does. Only `PUT webhook` requires the token. */
async function askSimulator(
  { url, carriersFile }: Pick<Network, 'url' | 'carriersFile'>,
  path: string,
  body?: unknown,
  method = body === undefined ? 'GET' : 'POST',
): Promise<any> {
  const authorization = `Bearer ${JSON.parse(readFileSync(carriersFile, 'utf8')).simulator.webhookToken}`
  const answer = await fetch(`${url}/simulator/${path}`, {
    method,
    signal: AbortSignal.timeout(ANSWER_MS),
    headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return await answer.json()
}
