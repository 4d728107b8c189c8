import { inParallel } from '../chaos/support/in-parallel.ts'
import type { Check } from './check.ts'
import type { FuzzRequest, Generator } from './generate.ts'
import type { Response, Sender } from './wire.ts'

// Sends the requests over several lanes at once, checks every response, and tallies both.

export type Finding = { request: FuzzRequest; response: Response; problems: string[] }

export type Tally = {
  sent: number
  /** By operation, how many responses had each status; `closed` if there was none. */
  statuses: Map<string, Map<string, number>>
  findings: Finding[]
  slowestMs: number
  tookMs: number
}

export type RunOptions = {
  /** The numbers of the requests, in parts. */
  parts: number[][]
  /** Called between two parts, when no request is under way. */
  onPause?: () => Promise<void>
  generate: Generator
  sender: Sender
  check: Check
  lanes: number
  /** Called after each response. `sent`: how many requests have a response. */
  onResponse?: (request: FuzzRequest, response: Response, sent: number) => void
}

export async function run({ parts, onPause, generate, sender, check, lanes, onResponse }: RunOptions): Promise<Tally> {
  const tally: Tally = { sent: 0, statuses: new Map(), findings: [], slowestMs: 0, tookMs: 0 }
  const freeLanes = Array.from({ length: lanes }, (_, lane) => lane)
  const startedAt = performance.now()
  const sendOne = async (number: number) => {
    const lane = freeLanes.pop() as number
    const request = generate(number)
    const response = await sender.send(request, lane)
    freeLanes.push(lane)
    const problems = check(request, response)
    if (problems.length > 0) tally.findings.push({ request, response, problems })
    count(tally, request, response)
    onResponse?.(request, response, tally.sent)
  }
  for (const [index, numbers] of parts.entries()) {
    if (index > 0) await onPause?.()
    await inParallel(numbers, lanes, sendOne)
  }
  tally.tookMs = performance.now() - startedAt
  return tally
}

function count(tally: Tally, { operation }: FuzzRequest, { status, tookMs, isHang }: Response): void {
  tally.sent += 1
  tally.slowestMs = Math.max(tally.slowestMs, tookMs)
  const statuses = tally.statuses.get(operation.id) ?? new Map<string, number>()
  const name = isHang ? 'hang' : String(status ?? 'closed')
  statuses.set(name, (statuses.get(name) ?? 0) + 1)
  tally.statuses.set(operation.id, statuses)
}
