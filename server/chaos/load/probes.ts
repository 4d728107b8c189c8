import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskTracker } from '../../src/background/task-tracker.ts'
import { until } from '../../test/support/until.ts'
import { type Caller, callOnce, RESPONSE_TIMEOUT_MS } from './caller.ts'
import { MESSAGE, type Requested, type RequestedMessage, recordResponse } from './requested.ts'

// Requests at known times beside the load: messages, each sent once, reads, and probes of readiness. All checks apply to the messages.

/** Times are of the clock. `status` 0: no response came. */
export type Probe = {
  kind: 'send' | 'read' | 'ready'
  key: string
  sentAt: number
  respondedAt: number
  status: number
  messageId: string | undefined
}

export type Probes = {
  /** Those that have ended, in that order. */
  done: Probe[]
  stop: () => Promise<Probe[]>
}

let numbers = 0

/** To a phone that gets no other message. Its last two digits decide what it does; by default it reads the message. */
export function newMessage(requested: Requested, { agentId }: Caller, ending?: string): RequestedMessage {
  numbers += 1
  const phone = `+4870${String(numbers).padStart(5, '0')}${ending ?? 10 + (numbers % 90)}`
  const text = `Still there, ${numbers}.`
  const one: RequestedMessage = {
    habit: 'stops-waiting',
    phone,
    body: { agentId, recipient: phone, message: { inline: { type: 'MESSAGE', content: text } } },
    contents: { text },
    startInMs: undefined,
    lifeMs: undefined,
    timeoutMs: RESPONSE_TIMEOUT_MS,
    pauseMs: 0,
    key: randomUUID(),
    outcome: 'unanswered',
    ids: [],
  }
  requested.messages.push(one)
  return one
}

/** Sends it to this node, once. */
export async function sendTo(requested: Requested, caller: Caller, one: RequestedMessage, nodeUrl: string): Promise<Probe> {
  const { key, body } = one
  const response = await callOnce(caller, { method: 'POST', path: '/messages', key, body }, nodeUrl)
  recordResponse(requested, one, response, MESSAGE)
  const { sentAt, respondedAt, status } = response
  return { kind: 'send', key, sentAt, respondedAt, status, messageId: response.body?.messageId }
}

async function ask(kind: 'read' | 'ready', caller: Caller, messageId: string | undefined, nodeUrl: string): Promise<Probe> {
  if (kind === 'read') {
    const { sentAt, respondedAt, status } = await callOnce(caller, { method: 'GET', path: `/messages/${messageId}` }, nodeUrl)
    return { kind, key: '', sentAt, respondedAt, status, messageId }
  }
  const sentAt = Date.now()
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS)
  const status = await fetch(`${nodeUrl}/readyz`, { signal }).then(
    (response) => response.status,
    () => 0,
  )
  return { kind, key: '', sentAt, respondedAt: Date.now(), status, messageId: undefined }
}

/** Without waiting for responses: of ten probes six are messages, three are reads and one asks for readiness. */
export function startProbes(requested: Requested, caller: Caller, everyMs: number): Probes {
  const done: Probe[] = []
  const tasks = createTaskTracker()
  const stopping = new AbortController()
  let known: string | undefined
  async function probe(n: number, nodeUrl: string): Promise<void> {
    const kind = n % 10 === 9 ? 'ready' : n % 3 === 2 && known !== undefined ? 'read' : 'send'
    const one =
      kind === 'send' ? await sendTo(requested, caller, newMessage(requested, caller), nodeUrl) : await ask(kind, caller, known, nodeUrl)
    known ??= one.messageId
    done.push(one)
  }
  async function run(): Promise<void> {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const urls = caller.nodeUrls()
      tasks.add(probe(n, urls[n % urls.length] as string))
      await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }
  tasks.add(run())
  return {
    done,
    stop: async () => {
      stopping.abort()
      await tasks.ended()
      return done
    },
  }
}

export const accepted = (probes: readonly Probe[]) => probes.filter(({ kind, status }) => kind === 'send' && status === 202)

/** The first message that is sent from now on and accepted; returns how long after `from`. */
export async function untilAccepted({ done }: Probes, from = Date.now()): Promise<number> {
  const { respondedAt } = await until('a message is accepted', () => accepted(done).find(({ sentAt }) => sentAt >= from), 60_000)
  return respondedAt - from
}
