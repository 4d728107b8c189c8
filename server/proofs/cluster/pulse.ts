import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskTracker } from '../../src/background/task-tracker.ts'
import { A_MESSAGE, type Asked, type AskedMessage, hearAnswer } from '../storm/asked.ts'
import { ask, type Caller } from '../storm/caller.ts'

// Messages that are asked for at known times, beside the load: a message is sent every so often, each once, and when it was answered is noted.
// They are judged with all others.

/** By performance.now(). `status` 0: no answer came. */
export type Beat = { key: string; sentAt: number; answeredAt: number; status: number; messageId: string | undefined }

export type Pulse = {
  /** Those that were answered, or never will be, in that order. */
  beats: Beat[]
  stop: () => Promise<Beat[]>
}

const TIMEOUT_MS = 5_000

let numbers = 0

/** To somebody who has nothing else, whose phone gets it and has it read. */
export function newMessage(asked: Asked, { agentId }: Caller): AskedMessage {
  numbers += 1
  const phone = `+4870${String(numbers).padStart(5, '0')}${10 + (numbers % 90)}`
  const text = `Still there, ${numbers}.`
  const one: AskedMessage = {
    habit: 'gives-up',
    phone,
    body: { agentId, recipient: phone, message: { inline: { type: 'MESSAGE', content: text } } },
    contents: { text },
    lifeMs: undefined,
    timeoutMs: TIMEOUT_MS,
    pauseMs: 0,
    key: randomUUID(),
    outcome: 'unanswered',
    ids: [],
  }
  asked.messages.push(one)
  return one
}

/** Asks for it, once, at this node. */
export async function askFor(asked: Asked, caller: Caller, one: AskedMessage, nodeUrl: string): Promise<Beat> {
  const { key, body } = one
  const sentAt = performance.now()
  const answer = await ask(caller, { method: 'POST', path: '/messages', key, body }, nodeUrl, TIMEOUT_MS)
  hearAnswer(asked, one, answer, A_MESSAGE)
  return { key, sentAt, answeredAt: performance.now(), status: answer.status, messageId: answer.body?.messageId }
}

export function startPulse(asked: Asked, caller: Caller, everyMs: number): Pulse {
  const beats: Beat[] = []
  const underWay = createTaskTracker()
  const stopping = new AbortController()
  async function beat(nodeUrl: string): Promise<void> {
    beats.push(await askFor(asked, caller, newMessage(asked, caller), nodeUrl))
  }
  async function run(): Promise<void> {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const urls = caller.nodeUrls()
      underWay.add(beat(urls[n % urls.length] as string))
      await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }
  underWay.add(run())
  return {
    beats,
    stop: async () => {
      stopping.abort()
      await underWay.ended()
      return beats
    },
  }
}

export const accepted = (beats: readonly Beat[]) => beats.filter(({ status }) => status === 202)
