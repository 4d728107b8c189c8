import { randomUUID } from 'node:crypto'
import type { Reach } from '../carrier.ts'
import { fieldsOf, isObject } from '../json.ts'
import { isRefusal } from './answers.ts'
import type { Answer, Request } from './http.ts'

// Whether numbers can be reached by RCS. The network's own answer is up to hours old: phones check in every one to four hours.

/** Undefined where it was not answered. */
type Ask = (agentId: string, request: Request) => Promise<Answer | undefined>
/** What the network said, by number. Numbers that it said nothing about are missing. */
type Answers = Map<string, Reach>

// A look-up of one number asks its network; a list is answered from Google's cache, in one request for 10,000 at the most.
const MOST_ASKED_SINGLY = 3
const MOST_IN_A_LIST = 10_000
// Some 15 MB. The oldest go first, and many at a time: to find the oldest, a Map passes over all that went since it last grew.
const MOST_REMEMBERED = 100_000
const FORGOTTEN_AT_ONCE = 10_000

export function createReach(ask: Ask): (agentId: string, recipients: string[], maxAgeMs: number) => Promise<Reach[]> {
  const known = new Map<string, { reach: Reach; at: number }>()
  /** Look-ups under way: whoever asks for the same meanwhile waits for the same answer. */
  const underway = new Map<string, Promise<Answers>>()

  function remember(agentId: string, answers: Answers): Answers {
    for (const [recipient, reach] of answers) {
      const key = keyOf(agentId, recipient)
      known.delete(key)
      known.set(key, { reach, at: performance.now() })
      if (known.size > MOST_REMEMBERED) for (const oldest of known.keys().take(FORGOTTEN_AT_ONCE)) known.delete(oldest)
    }
    return answers
  }

  function lookUp(agentId: string, recipients: string[]): void {
    const lists = recipients.length <= MOST_ASKED_SINGLY ? recipients.map((recipient) => [recipient]) : chunks(recipients, MOST_IN_A_LIST)
    for (const list of lists) {
      const asking = (list.length === 1 ? askOne(ask, agentId, list[0] as string) : askMany(ask, agentId, list))
        .then((answers) => remember(agentId, answers))
        .finally(() => {
          for (const recipient of list) underway.delete(keyOf(agentId, recipient))
        })
      for (const recipient of list) underway.set(keyOf(agentId, recipient), asking)
    }
  }

  return async (agentId, recipients, maxAgeMs) => {
    const answers: Answers = new Map()
    for (const recipient of recipients) {
      const found = known.get(keyOf(agentId, recipient))
      if (found !== undefined && performance.now() - found.at <= maxAgeMs) answers.set(recipient, found.reach)
    }
    const missing = [...new Set(recipients)].filter((recipient) => !answers.has(recipient))
    lookUp(
      agentId,
      missing.filter((recipient) => !underway.has(keyOf(agentId, recipient))),
    )
    for (const found of await Promise.all(new Set(missing.map((recipient) => underway.get(keyOf(agentId, recipient)))))) {
      for (const [recipient, reach] of found ?? []) answers.set(recipient, reach)
    }
    return recipients.map((recipient) => answers.get(recipient) ?? { recipient, reachable: undefined, checkedAt: new Date() })
  }
}

async function askOne(ask: Ask, agentId: string, recipient: string): Promise<Answers> {
  const query = new URLSearchParams({ requestId: randomUUID(), agentId })
  const answer = await ask(agentId, { method: 'GET', path: `/v1/phones/${recipient}/capabilities?${query}` })
  const isReachable = answer?.status === 200 && hasOnly(answer.body, ['features', 'carrier'])
  const isUnreachable = (answer?.status === 404 || answer?.status === 403) && isRefusal(answer)
  return isReachable || isUnreachable ? new Map([[recipient, { recipient, reachable: isReachable, checkedAt: new Date() }]]) : new Map()
}

async function askMany(ask: Ask, agentId: string, recipients: string[]): Promise<Answers> {
  const answer = await ask(agentId, { method: 'POST', path: '/v1/users:batchGet', body: JSON.stringify({ users: recipients, agentId }) })
  const { reachableUsers = [] } = fieldsOf(answer?.body)
  if (answer?.status !== 200 || !hasOnly(answer.body, LIST_FIELDS) || !Array.isArray(reachableUsers)) return new Map()
  const reachable = new Set<unknown>(reachableUsers)
  const checkedAt = new Date()
  return new Map(recipients.map((recipient) => [recipient, { recipient, reachable: reachable.has(recipient), checkedAt }]))
}

const LIST_FIELDS = ['reachableUsers', 'reachableUsersMap', 'totalRandomSampleUserCount', 'reachableRandomSampleUserCount']

/**
 * Protocol buffers leave an empty list and a zero out of their JSON, so an answer that says "nobody" may be an empty object. One with
 * anything else in it is not the API's: it would make all numbers of a list unreachable.
 */
function hasOnly(body: unknown, names: string[]): boolean {
  return isObject(body) && Object.keys(body).every((name) => names.includes(name))
}

/** An agent may be launched on one network and not on another, so a number's answer is the agent's own. */
function keyOf(agentId: string, recipient: string): string {
  return `${agentId} ${recipient}`
}

function chunks<T>(list: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) => list.slice(index * size, (index + 1) * size))
}
