import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskTracker } from '../../src/background/task-tracker.ts'
import type { Pool } from '../../src/db/pool.ts'
import { between, type Random } from '../random.ts'
import { A_MESSAGE, type Asked, type AskedMessage, hearAnswer, isRightlyLate } from './asked.ts'
import { type Answer, ask, type Caller, isNoAnswer, persist } from './caller.ts'
import { runCampaign } from './campaigns.ts'
import { type Asker, drawWanted, type Wanted, type WantedCampaign } from './requests.ts'

// The load: `const load = startLoad({ caller, asker, pool, rate, random, campaigns })`; later `const asked = await load.stop()`, once all
// that callers need is there again: whoever does not give up asks until there is an answer. `caller.nodeUrls` may change at any time; `pool`
// is for those who pause and cancel campaigns. `campaigns` are of `prepareCampaigns`, spread over `campaignEveryMs`.

export type LoadOptions = {
  caller: Caller
  asker: Asker
  pool: Pool
  /** Messages in a second. */
  rate: number
  random: Random
  campaigns: readonly WantedCampaign[]
  campaignEveryMs: number
}

export type Load = { stop: () => Promise<Asked>; asked: Asked; underWay: () => number }

// So many callers at once, and nobody new while they all wait.
const MOST_CALLERS = 400

export function startLoad(options: LoadOptions): Load {
  const asked: Asked = { messages: [], campaigns: [], strange: [] }
  const stopping = new AbortController()
  const underWay = createTaskTracker()
  let callers = 0
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => {})

  async function begin(work: Promise<void>): Promise<void> {
    callers += 1
    await work
    callers -= 1
  }

  async function sendMessages(): Promise<void> {
    const { random, rate, asker } = options
    for (let n = 0; !stopping.signal.aborted; n++) {
      const wanted = drawWanted(random, n, asker)
      await pause((between(random, 0, 2) * 1_000) / rate)
      while (callers >= MOST_CALLERS && !stopping.signal.aborted) await pause(50)
      if (!stopping.signal.aborted) underWay.add(begin(sendOne(options, asked, wanted)))
    }
  }

  async function startCampaigns(): Promise<void> {
    for (const wanted of options.campaigns) {
      if (stopping.signal.aborted) return
      underWay.add(runCampaign(options, asked, wanted))
      await pause(options.campaignEveryMs)
    }
  }

  underWay.add(sendMessages())
  underWay.add(startCampaigns())
  return {
    asked,
    underWay: () => callers,
    stop: async () => {
      stopping.abort()
      await underWay.ended()
      return asked
    },
  }
}

async function sendOne({ caller }: LoadOptions, asked: Asked, wanted: Wanted): Promise<void> {
  const { lifeMs, habit, timeoutMs, pauseMs } = wanted
  const body = { ...wanted.body, ...(lifeMs !== undefined && { expiresAt: new Date(Date.now() + lifeMs).toISOString() }) }
  const one: AskedMessage = { ...wanted, body, key: randomUUID(), outcome: 'unanswered', ids: [] }
  asked.messages.push(one)
  const request = { method: 'POST', path: '/messages', key: one.key, body } as const

  const hear = (answer: Answer) => hearAnswer(asked, one, answer, A_MESSAGE)
  async function send(): Promise<void> {
    if (isNoAnswer(await persist(caller, request, hear))) asked.strange.push(`${one.key}: no answer, for as long as anybody would wait`)
  }
  if (habit === 'gives-up') {
    const urls = caller.nodeUrls()
    hear(await ask(caller, request, urls[asked.messages.length % urls.length] as string, timeoutMs))
    return
  }
  if (habit === 'twice-at-once') await Promise.all(caller.nodeUrls().map((url) => ask(caller, request, url).then(hear)))
  await send()
  if (habit === 'again' || habit === 'other-content') await sleep(pauseMs)
  if (habit === 'again') await send()
  if (habit === 'other-content' && one.outcome === 'accepted') await misuseKey(caller, asked, request)
}

/** Its key is taken, and stays so. That the request has run out meanwhile is told first. */
async function misuseKey(caller: Caller, asked: Asked, request: { key: string; body: Record<string, unknown> }): Promise<void> {
  const { key, body } = request
  const other = { method: 'POST', path: '/messages', key, body: { ...body, clientReferenceId: 'something else' } } as const
  const answer = await persist(caller, other)
  if (answer.status === 409 || isRightlyLate(answer, body, A_MESSAGE)) return
  asked.strange.push(`${key}, with other content: ${answer.status} ${JSON.stringify(answer.body)}`)
}
