import type { ICONS } from '../kit/icons.ts'
import type { Tone } from '../kit/tone.ts'
import * as say from '../words/en-timeline.ts'
import { type Lane, LOOKS } from './looks.ts'
import { sentence } from './outcome.ts'
import type { Message, RuleResult, Step, TimelineItem } from './types.ts'
import { assignCalls, type WebhookCall, webhookCallsOf } from './webhooks.ts'

export type ExplainedRule = { name: string; result: RuleResult['result']; facts: string }

/** A step in words. */
export type ExplainedStep = {
  atMs: number
  lane: Lane
  tone: Tone
  icon: keyof typeof ICONS
  title: string
  /** The codes of the API: the status from this step on, and the reason. */
  codes: string[]
  why: string
  /** The network's own words. */
  network: string | undefined
  rules: ExplainedRule[]
  webhooks: WebhookCall[]
}

/** Herald's descriptions put this before the words of a network (server/src/delivery/failures.ts). */
export const NETWORK_SAID = ' The network said: '

/** Explains the steps of a message. `others`: calls of webhook endpoints that belong to no step. */
export function explain(message: Message, items: TimelineItem[]): { steps: ExplainedStep[]; others: WebhookCall[] } {
  const assigned = assignCalls(items, webhookCallsOf(items))
  const steps = items.flatMap((item, index) =>
    item.step === 'webhook-attempt'
      ? []
      : [{ ...explainStep(message, item), ...(isRevocation(items, index) && say.revocation), webhooks: assigned.get(index) ?? [] }],
  )
  return { steps, others: assigned.get(-1) ?? [] }
}

/** After a message has failed or expired, its attempts only revoke it. */
const isRevocation = (items: TimelineItem[], index: number) =>
  items[index]?.step === 'attempt-failed' && items.slice(0, index).some(({ step }) => step === 'failed' || step === 'expired')

/** Steps whose reason is left out: it is why there is an SMS at all, which an earlier step says. */
const NO_REASON: Step[] = ['sms-sent', 'sms-delivered']

function explainStep(message: Message, item: TimelineItem): Omit<ExplainedStep, 'webhooks'> {
  const { step, reason, occurredAt, data } = item
  const [lane, tone, icon, status] = LOOKS[step]
  const rules = (Array.isArray(data.rules) ? (data.rules as RuleResult[]) : []).map(explainRule)
  const isHeldBack = step === 'sms-checked' && reason !== null
  return {
    atMs: Date.parse(occurredAt),
    lane,
    tone: isHeldBack ? 'bad' : tone,
    icon: isHeldBack ? 'hand' : icon,
    title: titleOf(item, rules),
    codes: [status, NO_REASON.includes(step) ? undefined : (reason ?? undefined)].filter((code) => code !== undefined),
    why: whyOf(message, item).join(' '),
    network: networkWords(item),
    rules,
  }
}

function titleOf({ step, reason }: TimelineItem, rules: ExplainedRule[]): string {
  const [title] = say.steps[step]
  if (step === 'failed' && reason !== null) {
    const because = known(say.failures, reason)
    return because === undefined ? title : say.failedBecause(because)
  }
  const failed = rules.find(({ result }) => result === 'failed')
  return step === 'sms-checked' && failed !== undefined ? say.heldBackBy(failed.name) : title
}

/** The words of a code. A newer server may know more codes; its own description then stands in. */
const known = <Words>(dictionary: Record<string, Words>, code: string): Words | undefined =>
  Object.hasOwn(dictionary, code) ? dictionary[code] : undefined

function whyOf(message: Message, item: TimelineItem): string[] {
  const { step, data } = item
  const [, why] = say.steps[step]
  switch (step) {
    case 'accepted':
      return [why, ...aboutMessage(message)]
    case 'attempt-failed':
      return [why, ...(typeof data.attempt === 'number' ? [say.attempt(data.attempt)] : [])]
    case 'failed':
      return [reasonOf(say.failures, item), ...(item.reason === 'NOT_REACHABLE' ? [say.noRcs] : [])]
    case 'sms-scheduled':
      return [reasonOf(say.fallback, item), ...dueIn(item), ...smsFacts(item), why]
    case 'sms-checked':
      return [reasonOf(say.fallback, item)]
    case 'sms-skipped':
    case 'sms-not-needed':
      return [why, ...(item.reason === null ? [] : [reasonOf(say.fallback, item)])]
    case 'sms-sent':
      return [why, ...smsFacts(item)]
    case 'sms-failed':
      return [reasonOf(say.smsFailures, item), why]
    case 'delivered-late':
    case 'read-late':
      return [why, ...ofText(data.reportedAt, say.reportedAt)]
    default:
      return [why, ...actionFacts(data)]
  }
}

function reasonOf(dictionary: Record<string, string>, { step, reason, description }: TimelineItem): string {
  if (reason === null) return say.steps[step][1]
  return sentence(known(dictionary, reason)) || (description.split(NETWORK_SAID, 1)[0] as string)
}

function aboutMessage({ expiresAt, smsFallback, test }: Message): string[] {
  return [sentence(say.until(expiresAt)), test ? say.isTest : sentence(smsFallback === undefined ? say.noSms : say.hasSms)]
}

/** A sentence about a fact, if there is one. */
const ofText = (fact: unknown, words: (text: string) => string): string[] => (typeof fact === 'string' && fact !== '' ? [words(fact)] : [])

const dueIn = ({ occurredAt, data }: TimelineItem) => ofText(data.dueAt, (at) => say.due(at, Date.parse(at) - Date.parse(occurredAt)))

function smsFacts({ data: { segments, encoding, sender } }: TimelineItem): string[] {
  if (typeof segments !== 'number' || typeof encoding !== 'string' || typeof sender !== 'string' || sender === '') return []
  return [say.smsAs(segments, encoding, sender)]
}

/** What a recipient did, with their own words. */
function actionFacts({ text, buttonId, url, latitude, longitude, channel }: Record<string, unknown>): string[] {
  return [
    ...ofText(text, say.quoted),
    ...ofText(buttonId, say.button),
    ...ofText(url, say.link),
    ...(typeof latitude === 'number' && typeof longitude === 'number' ? [say.place(latitude, longitude)] : []),
    ...(channel === 'sms' ? [say.bySms] : []),
  ]
}

function networkWords({ step, description, data }: TimelineItem): string | undefined {
  if (typeof data.response === 'string') return data.response
  const [, quoted] = description.split(NETWORK_SAID, 2)
  if (quoted !== undefined) return quoted
  // The words of an SMS receipt, such as "UNDELIV, error 001", stand alone. Herald's own sentences end with a full stop.
  return step === 'sms-failed' && !description.endsWith('.') ? description : undefined
}

function explainRule({ rule, result, ...facts }: RuleResult): ExplainedRule {
  const text = result === 'not-required' ? say.results[result] : (say.ruleFacts[rule]?.(facts) ?? (result === 'passed' ? say.no : say.yes))
  return { name: known(say.rules, rule) ?? rule, result, facts: text }
}
