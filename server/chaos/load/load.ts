import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskTracker } from '../../src/background/task-tracker.ts'
import type { Pool } from '../../src/db/pool.ts'
import { between, type Random } from '../support/random.ts'
import { type ApiResponse, type Caller, callOnce, isUnanswered, persist } from './caller.ts'
import { runCampaign } from './campaigns.ts'
import { isRightlyLate, MESSAGE, type Requested, type RequestedMessage, recordResponse } from './requested.ts'
import { type DrawnCampaign, type DrawnMessage, drawMessage, type Sender } from './requests.ts'

// The load of one account. Stop it when all nodes run again: most callers repeat a request until there is a response.

export type LoadOptions = {
  caller: Caller
  sender: Sender
  requested: Requested
  /** For the operator who pauses and cancels campaigns. */
  pool: Pool
  /** Messages in a second. */
  rate: number
  random: Random
  campaigns: readonly DrawnCampaign[]
  campaignEveryMs: number
}

export type Load = { stop: () => Promise<void> }

// At most this many callers wait for a response at once.
const MAX_CALLERS = 400

export function startLoad(options: LoadOptions): Load {
  const { requested } = options
  const stopping = new AbortController()
  const tasks = createTaskTracker()
  let callers = 0
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => {})

  async function begin(work: Promise<void>): Promise<void> {
    callers += 1
    await work
    callers -= 1
  }

  async function sendMessages(): Promise<void> {
    const { random, rate, sender } = options
    for (let n = 0; !stopping.signal.aborted; n++) {
      const drawn = drawMessage(random, n, sender)
      await pause((between(random, 0, 2) * 1_000) / rate)
      while (callers >= MAX_CALLERS && !stopping.signal.aborted) await pause(50)
      if (!stopping.signal.aborted) tasks.add(begin(sendOne(options, drawn)))
    }
  }

  async function startCampaigns(): Promise<void> {
    for (const drawn of options.campaigns) {
      if (stopping.signal.aborted) return
      tasks.add(runCampaign(options, requested, drawn))
      await pause(options.campaignEveryMs)
    }
  }

  tasks.add(sendMessages())
  tasks.add(startCampaigns())
  return {
    stop: async () => {
      stopping.abort()
      await tasks.ended()
    },
  }
}

async function sendOne({ caller, requested }: LoadOptions, drawn: DrawnMessage): Promise<void> {
  const { startInMs, lifeMs, habit, timeoutMs, pauseMs } = drawn
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const body = {
    ...drawn.body,
    ...(startInMs !== undefined && { sendAt: inMs(startInMs) }),
    ...(lifeMs !== undefined && { expiresAt: inMs((startInMs ?? 0) + lifeMs) }),
  }
  const one: RequestedMessage = { ...drawn, body, key: randomUUID(), outcome: 'unanswered', ids: [] }
  requested.messages.push(one)
  const request = { method: 'POST', path: '/messages', key: one.key, body } as const

  const record = (response: ApiResponse) => recordResponse(requested, one, response, MESSAGE)
  async function send(): Promise<void> {
    if (isUnanswered(await persist(caller, request, record))) requested.unexpected.push(`${one.key}: no response within two minutes`)
  }
  if (habit === 'stops-waiting') {
    const urls = caller.nodeUrls()
    record(await callOnce(caller, request, urls[requested.messages.length % urls.length] as string, timeoutMs))
    return
  }
  if (habit === 'twice-at-once') await Promise.all(caller.nodeUrls().map((url) => callOnce(caller, request, url).then(record)))
  await send()
  if (habit === 'again' || habit === 'other-content') await sleep(pauseMs)
  if (habit === 'again') await send()
  if (habit === 'other-content' && one.outcome === 'accepted') await misuseKey(caller, requested, request)
}

/** Expects a 409, or the error that the request has expired, which comes first. */
async function misuseKey(caller: Caller, requested: Requested, request: { key: string; body: Record<string, unknown> }): Promise<void> {
  const { key, body } = request
  const other = { method: 'POST', path: '/messages', key, body: { ...body, clientReferenceId: 'something else' } } as const
  const response = await persist(caller, other)
  if (response.status === 409 || isRightlyLate(response, body, MESSAGE)) return
  requested.unexpected.push(`${key}, with other content: ${response.status} ${JSON.stringify(response.body)}`)
}
