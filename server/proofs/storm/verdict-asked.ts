import type { AskedCampaign, AskedMessage } from './asked.ts'
import { ANSWER_MS, type Try } from './caller.ts'
import { explainsNoAnswer, isStarved } from './causes.ts'
import type { Evidence } from './evidence.ts'
import { type Comparison, countBy, least, listCounts } from './line.ts'
import type { Stored } from './stored.ts'

// What callers were told, against what there is.

export function judgeAnswers({ asked: { strange }, tries }: Evidence): Comparison {
  const statuses = countBy(tries, ({ status }) => (status === 0 ? 'no answer' : String(status)))
  const never = tries.filter(({ status }) => status === 429 || (status >= 500 && status !== 503))
  return {
    promise: 'callers are told nothing but what is promised',
    figures: listCounts(statuses),
    compared: tries.length,
    wrong: [...strange, ...never.map(({ request, status }) => `${request}: ${status}`)],
  }
}

// A timer can fire a millisecond earlier than the clock says.
const TIMER_SLACK_MS = 1

/** A caller that stopped waiting earlier than usual misses no answer. */
const isMissing = ({ status, sentAt, answeredAt, timeoutMs }: Try) =>
  status === 503 || (status === 0 && !(timeoutMs < ANSWER_MS && answeredAt - sentAt >= timeoutMs - TIMER_SLACK_MS))

/** An answer is only missing while the node that was asked, or the database, is upset; or while the machine had no time for any of them. */
export function judgeAvailability({ tries, upsets, stalls, addresses }: Evidence): Comparison {
  const nameOf = new Map(Object.entries(addresses).map(([name, url]) => [url, name]))
  const missing = tries.filter(isMissing)
  const spanOf = ({ sentAt, answeredAt }: Try) => ({ from: sentAt, to: answeredAt })
  const calm = missing.filter((one) => !upsets.some((upset) => explainsNoAnswer(upset, nameOf.get(one.nodeUrl), spanOf(one))))
  const inexplicable = calm.filter((one) => !isStarved(spanOf(one), stalls))
  return {
    promise: 'every request is answered, unless its node or the database is upset',
    figures: `${tries.length} requests, ${missing.length} without an answer or told to come again, ${calm.length - inexplicable.length} of them for want of a processor`,
    compared: tries.length,
    wrong: inexplicable.map(
      ({ nodeUrl, request, status, sentAt, answeredAt }) =>
        `${request} at ${nameOf.get(nodeUrl) ?? nodeUrl}, ${new Date(sentAt).toISOString()}: ${status === 0 ? 'no answer' : status} after ${answeredAt - sentAt} ms`,
    ),
  }
}

type Things = { keys: Map<string, string[]>; exists: Set<string>; noun: string }

/** One thing for each key that was accepted, at most one where nobody knows, none where it was refused. */
function wrongOf({ key, outcome, ids }: AskedMessage | AskedCampaign, { keys, exists, noun }: Things): string[] {
  const made = keys.get(key) ?? []
  const different = new Set([...ids, ...made])
  if (different.size > 1) return [`key ${key} has several ${noun}s: ${[...different].join(', ')}`]
  const missing = made.filter((id) => !exists.has(id))
  if (missing.length > 0) return [`key ${key} has a ${noun} that is not there: ${missing.join(', ')}`]
  if (outcome === 'accepted' && made.length === 0) return [`key ${key} was accepted as ${ids[0]}, and is not there`]
  if (outcome === 'too-late' && made.length > 0) return [`key ${key} was refused as too late, and made ${made.join(', ')}`]
  return []
}

function keysOf({ keys }: Evidence, endpoint: string): Map<string, string[]> {
  const ofEndpoint = keys.filter((one) => one.endpoint === endpoint)
  return new Map([...Map.groupBy(ofEndpoint, ({ key }) => key)].map(([key, rows]) => [key, rows.map(({ id }) => id)]))
}

export function judgeAccepted(evidence: Evidence): Comparison {
  const { asked, messages } = evidence
  const keys = keysOf(evidence, 'messages')
  const byId = new Map(messages.map((message) => [message.id, message]))
  const known = new Set(asked.messages.map(({ key }) => key))
  const owned = new Set([...keys].flatMap(([key, ids]) => (known.has(key) ? ids : [])))
  const single = messages.filter(({ campaignId, triggeredBy }) => campaignId === null && triggeredBy === null)
  const accepted = asked.messages.filter(({ outcome }) => outcome === 'accepted').length
  return {
    promise: 'accepted against the database',
    figures: `${asked.messages.length} asked for, ${accepted} accepted; ${single.length} messages`,
    compared: least([accepted, single.length]),
    wrong: [
      ...asked.messages.flatMap((one) => wrongOf(one, { keys, exists: new Set(byId.keys()), noun: 'message' })),
      ...asked.messages.flatMap(({ key, phone }) =>
        (keys.get(key) ?? []).filter((id) => byId.has(id) && byId.get(id)?.recipient !== phone).map((id) => `${id} is not to ${phone}`),
      ),
      ...single.filter(({ id }) => !owned.has(id)).map(({ id }) => `nobody asked for ${id}`),
    ],
  }
}

export function judgeCampaigns(evidence: Evidence): Comparison {
  const { asked, campaigns, messages } = evidence
  const keys = keysOf(evidence, 'campaigns')
  const exists = new Set(campaigns.map(({ id }) => id))
  const ofCampaign = Map.groupBy(messages, ({ campaignId }) => campaignId)
  const askedIds = new Set(asked.campaigns.flatMap(({ ids }) => ids))
  const statuses = new Map(campaigns.map(({ id, status }) => [id, status]))
  const people = campaigns.reduce((sum, { id }) => sum + (ofCampaign.get(id)?.length ?? 0), 0)
  return {
    promise: 'campaigns: one message for everybody',
    figures: `${asked.campaigns.length} asked for, ${campaigns.length} there (${listCounts(countBy(campaigns, ({ status }) => status))}); ${people} messages`,
    compared: least([asked.campaigns.length, people]),
    wrong: [
      ...asked.campaigns.flatMap((one) => wrongOf(one, { keys, exists, noun: 'campaign' })),
      ...campaigns.filter(({ id }) => !askedIds.has(id)).map(({ id }) => `nobody asked for campaign ${id}`),
      ...asked.campaigns.flatMap((one) =>
        one.ids.slice(0, 1).flatMap((id) => misdelivered(one, id, statuses.get(id), ofCampaign.get(id) ?? [])),
      ),
      ...[...ofCampaign.keys()].filter((id) => id !== null && !exists.has(id)).map((id) => `there are messages of no campaign ${id}`),
    ],
  }
}

/** Everybody has one message. Of a campaign that was cancelled, nobody has two. */
function misdelivered({ course, phones }: AskedCampaign, id: string, status: string | undefined, messages: Stored[]): string[] {
  const recipients = messages.map(({ recipient }) => recipient)
  const twice = [...countBy(recipients, (phone) => phone)].filter(([, count]) => count > 1)
  const strangers = recipients.filter((phone) => !phones.includes(phone))
  const had = new Set(recipients)
  const left = status === 'CANCELLED' ? [] : phones.filter((phone) => !had.has(phone))
  const mayBe = course === 'cancelled' ? ['CANCELLED', 'COMPLETED'] : ['COMPLETED']
  return [
    ...(mayBe.includes(status ?? '') ? [] : [`campaign ${id} (${course}) is ${status}`]),
    ...twice.map(([phone]) => `campaign ${id} has two messages for ${phone}`),
    ...strangers.map((phone) => `campaign ${id} has a message for ${phone}, who is not in its group`),
    ...left.map((phone) => `campaign ${id} has none for ${phone}`),
  ]
}

/** Asked for once more when all was over, every key that has made something gives the same answer. */
export function judgeKeys({ again, keys }: Evidence): Comparison {
  const made = new Map(keys.map(({ key, id }) => [key, id]))
  const asked = new Set(again.map(({ key }) => key))
  return {
    promise: 'idempotency keys against messages',
    figures: `${keys.length} keys; ${again.filter(({ isReplayed }) => isReplayed).length} give the answer of the first time`,
    compared: again.length,
    wrong: [
      ...again
        .filter(({ key, status, id, isReplayed }) => status !== 202 || !isReplayed || id !== made.get(key))
        .map(({ key, status, id }) => `key ${key} of ${made.get(key)} now gives ${status} ${id}`),
      ...keys.filter(({ key }) => !asked.has(key)).map(({ key }) => `nobody has asked with key ${key}`),
    ],
  }
}

export function judgeGivenUp(evidence: Evidence): Comparison {
  const keys = keysOf(evidence, 'messages')
  const givenUp = evidence.asked.messages.filter(({ habit }) => habit === 'gives-up')
  const unanswered = givenUp.filter(({ outcome }) => outcome === 'unanswered')
  const kept = unanswered.filter(({ key }) => keys.has(key))
  return {
    promise: 'keys whose caller gave up: one message at most',
    figures: `${givenUp.length} asked once, ${unanswered.length} without an answer, ${kept.length} of those have a message`,
    compared: givenUp.length,
    wrong: givenUp.filter(({ key }) => (keys.get(key)?.length ?? 0) > 1).map(({ key }) => `key ${key} has ${keys.get(key)?.join(', ')}`),
  }
}
