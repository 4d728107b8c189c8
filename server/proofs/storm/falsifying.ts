import assert from 'node:assert/strict'
import { A_MESSAGE, hearAnswer } from './asked.ts'
import type { Answer } from './caller.ts'
import { smsEndOf } from './ends.ts'
import type { Evidence } from './evidence.ts'
import type { Endpoint } from './followers.ts'
import { readLogFaults } from './processes.ts'
import type { Step, Stored } from './stored.ts'
import type { Disturbance } from './upsets.ts'

// What evidence is falsified with, to see that the verdict notices.

export type Falsification = [what: string, falsify: (all: Evidence) => unknown]
/** By the line that has to notice. */
export type Falsifications = Record<string, Falsification[]>

export function first<T>(items: readonly T[], isMeant: (item: T) => boolean = () => true): T {
  const found = items.find(isMeant)
  assert.ok(found !== undefined, 'the run has nothing of the kind')
  return found
}

export function drop<T>(items: T[], isMeant: (item: T) => boolean): void {
  items.splice(items.indexOf(first(items, isMeant)), 1)
}

export const isSingle = ({ campaignId, triggeredBy }: Stored) => campaignId === null && triggeredBy === null
export const hasStatus = (status: string) => (message: Stored) => message.shown.status === status
export const hasStep = (kind: string) => (message: Stored) => message.steps.some((step) => step.kind === kind)
export const smsIs = (end: string) => (message: Stored) => smsEndOf(message).startsWith(end)
export const isKind =
  (kind: string) =>
  <T extends { kind: string }>(entry: T): boolean =>
    entry.kind === kind

/** Of a message that has such a step, in its columns and in its timeline: where it is kept, and the step. */
export function stepOf(messages: Stored[], kind: string, where: 'steps' | 'timeline'): { list: Step[]; step: Step } {
  const list = first(messages, (message) => hasStep(kind)(message) && message.timeline.some(isKind(kind)))[where]
  return { list, step: first(list, isKind(kind)) }
}

/** The endpoint that wants all of the first account's. */
export const endpointOf = ({ told }: Evidence): Endpoint => first(first(told).endpoints)
export const accountsOf = ({ told }: Evidence) => told.map(({ accountId }) => accountId) as [number, number]

export const ANSWER: Answer = { status: 500, body: {}, isReplayed: false, sentAt: 0, answeredAt: 0 }
export const TOO_LATE = { status: 400, body: { details: [{ path: '/expiresAt' }] } }

/** An answer to a message that can run out, or can't. */
export function hear({ asked }: Evidence, canRunOut: boolean, answer: Partial<Answer>): void {
  const one = { ...first(asked.messages, ({ body }) => (body.expiresAt !== undefined) === canRunOut), outcome: 'unanswered' as const }
  hearAnswer(asked, one, { ...ANSWER, ...answer }, A_MESSAGE)
}

export function upset(victim: string, from: number, to: number, frozenMs = 0): Disturbance {
  return { victim, manner: frozenMs > 0 ? 'frozen' : 'killed', from, frozenMs, to }
}

/** So that the outcome of some SMS is not known, though the network has them. */
export function forget({ messages }: Evidence, count: number): Stored[] {
  const some = messages.filter(smsIs('DELIVERED')).slice(0, count)
  assert.equal(some.length, count, 'the run has too few SMS')
  for (const { shown } of some) shown.smsFallback = { status: 'FAILED', reason: 'OUTCOME_UNKNOWN', segments: 1 }
  return some
}

export function takenAtOf({ ledger }: Evidence, { recipient }: Stored): number {
  return Date.parse(first(ledger, ({ kind, phone }) => kind === 'sms-part' && phone === recipient).at)
}

/** An event that the endpoint had taken comes again. */
export function comeAgain(endpoint: Endpoint, count = 1): number {
  const taken = endpoint.arrivals.filter(({ status }) => status < 300).slice(0, count)
  assert.equal(taken.length, count, 'the run has too few events')
  endpoint.arrivals.push(...taken)
  return first(taken).at
}

export const TRY = { nodeUrl: 'http://api', request: 'POST /messages', sentAt: 1_000, answeredAt: 6_000, timeoutMs: 5_000 }
export const ENTRY = { queue: 'queue', entry: 'id', by: 'delivery-1', at: 0, wasRunning: true, isTurned: false } as const

export function complain({ processes }: Evidence, ...lines: string[]): void {
  processes.complaints.push(...readLogFaults('api-1', lines))
}

export function moveAccount(all: Evidence, one: { accountId: number }): void {
  const [ours, theirs] = accountsOf(all)
  one.accountId = one.accountId === ours ? theirs : ours
}
