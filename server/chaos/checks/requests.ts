import type { History } from '../history/history.ts'
import type { StoredMessage } from '../history/messages.ts'
import { type Call, RESPONSE_TIMEOUT_MS } from '../load/caller.ts'
import type { RequestedCampaign, RequestedMessage } from '../load/requested.ts'
import { explainsNoResponse, isStarved } from './causes.ts'
import { type Check, countBy, duplicates, least, listCounts } from './result.ts'

// The responses that callers got, against what is stored.

export const checkResponses: Check = ({ requested: { unexpected }, calls }) => {
  const never = calls.filter(({ status }) => status === 429 || (status >= 500 && status !== 503))
  return {
    compared: calls.length,
    wrong: [...unexpected, ...never.map(({ request, status }) => `${request}: ${status}`)],
    note: listCounts(countBy(calls, ({ status }) => (status === 0 ? 'no response' : String(status)))),
  }
}

// A timer can fire a millisecond earlier than the clock says.
const TIMER_SLACK_MS = 1

/** A caller that stopped waiting earlier than usual misses no response. */
const isMissing = ({ status, sentAt, respondedAt, timeoutMs }: Call) =>
  status === 503 || (status === 0 && !(timeoutMs < RESPONSE_TIMEOUT_MS && respondedAt - sentAt >= timeoutMs - TIMER_SLACK_MS))

/** A response is only missing during a fault of the node or the database, or while the machine had no processor for them. */
export const checkAvailability: Check = ({ calls, faults, stalls, addresses }) => {
  const nameOf = new Map(Object.entries(addresses).map(([name, url]) => [url, name]))
  const missing = calls.filter(isMissing)
  const spanOf = ({ sentAt, respondedAt }: Call) => ({ from: sentAt, to: respondedAt })
  const calm = missing.filter((one) => !faults.some((fault) => explainsNoResponse(fault, nameOf.get(one.nodeUrl), spanOf(one))))
  const inexplicable = calm.filter((one) => !isStarved(spanOf(one), stalls))
  return {
    compared: calls.length,
    wrong: inexplicable.map(
      ({ nodeUrl, request, status, sentAt, respondedAt }) =>
        `${request} at ${nameOf.get(nodeUrl) ?? nodeUrl}, ${new Date(sentAt).toISOString()}: ${status || 'no response'} after ${respondedAt - sentAt} ms`,
    ),
    note: `${missing.length} without a response or with a 503, ${calm.length - inexplicable.length} of them for want of a processor`,
  }
}

type Things = { keys: Map<string, string[]>; exists: Set<string>; noun: string }

/** One message or campaign for each accepted key, at most one for a key without a response, none for a rejected key. */
function wrongOf({ key, outcome, ids }: RequestedMessage | RequestedCampaign, { keys, exists, noun }: Things): string[] {
  const created = keys.get(key) ?? []
  const different = new Set([...ids, ...created])
  if (different.size > 1) return [`key ${key} has several ${noun}s: ${[...different].join(', ')}`]
  const missing = created.filter((id) => !exists.has(id))
  if (missing.length > 0) return [`key ${key} has a ${noun} that does not exist: ${missing.join(', ')}`]
  if (outcome === 'accepted' && created.length === 0) return [`key ${key} was accepted as ${ids[0]}, and is not stored`]
  if (outcome === 'too-late' && created.length > 0) return [`key ${key} was rejected as too late, and created ${created.join(', ')}`]
  return []
}

function keysOf({ keys }: History, endpoint: string): Map<string, string[]> {
  const ofEndpoint = keys.filter((one) => one.endpoint === endpoint)
  return new Map([...Map.groupBy(ofEndpoint, ({ key }) => key)].map(([key, rows]) => [key, rows.map(({ id }) => id)]))
}

export const checkAccepted: Check = (history) => {
  const { requested, messages } = history
  const keys = keysOf(history, 'messages')
  const byId = new Map(messages.map((message) => [message.id, message]))
  const known = new Set(requested.messages.map(({ key }) => key))
  const owned = new Set([...keys].flatMap(([key, ids]) => (known.has(key) ? ids : [])))
  const single = messages.filter(({ campaignId, triggeredBy }) => campaignId === null && triggeredBy === null)
  return {
    compared: least([requested.messages.filter(({ outcome }) => outcome === 'accepted').length, single.length]),
    wrong: [
      ...requested.messages.flatMap((one) => wrongOf(one, { keys, exists: new Set(byId.keys()), noun: 'message' })),
      ...requested.messages.flatMap(({ key, phone }) =>
        (keys.get(key) ?? []).filter((id) => byId.has(id) && byId.get(id)?.recipient !== phone).map((id) => `${id} is not to ${phone}`),
      ),
      ...single.filter(({ id }) => !owned.has(id)).map(({ id }) => `nobody requested ${id}`),
    ],
  }
}

export const checkCampaigns: Check = (history) => {
  const { requested, campaigns, messages } = history
  const keys = keysOf(history, 'campaigns')
  const exists = new Set(campaigns.map(({ id }) => id))
  const ofCampaign = Map.groupBy(messages, ({ campaignId }) => campaignId)
  const requestedIds = new Set(requested.campaigns.flatMap(({ ids }) => ids))
  const statuses = new Map(campaigns.map(({ id, status }) => [id, status]))
  return {
    compared: least([requested.campaigns.length, campaigns.reduce((sum, { id }) => sum + (ofCampaign.get(id)?.length ?? 0), 0)]),
    wrong: [
      ...requested.campaigns.flatMap((one) => wrongOf(one, { keys, exists, noun: 'campaign' })),
      ...campaigns.filter(({ id }) => !requestedIds.has(id)).map(({ id }) => `nobody requested campaign ${id}`),
      ...requested.campaigns.flatMap((one) =>
        one.ids.slice(0, 1).flatMap((id) => wrongRecipients(one, id, statuses.get(id), ofCampaign.get(id) ?? [])),
      ),
      ...[...ofCampaign.keys()]
        .filter((id) => id !== null && !exists.has(id))
        .map((id) => `campaign ${id} of some messages does not exist`),
    ],
  }
}

/** Every phone has one message; of a cancelled campaign, at most one. */
function wrongRecipients({ lifecycle, phones }: RequestedCampaign, id: string, status: string | undefined, messages: StoredMessage[]) {
  const recipients = messages.map(({ recipient }) => recipient)
  const [had, wanted] = [new Set(recipients), new Set(phones)]
  const missing = status === 'CANCELLED' ? [] : phones.filter((phone) => !had.has(phone))
  const allowed = lifecycle === 'cancelled' ? ['CANCELLED', 'COMPLETED'] : ['COMPLETED']
  return [
    ...(allowed.includes(status ?? '') ? [] : [`campaign ${id} (${lifecycle}) is ${status}`]),
    ...duplicates(recipients, (phone) => phone).map(([phone]) => `campaign ${id} has two messages for ${phone}`),
    ...[...had.difference(wanted)].map((phone) => `campaign ${id} has a message for ${phone}, which is not in its groups`),
    ...missing.map((phone) => `campaign ${id} has no message for ${phone}`),
  ]
}

/** At the end, every key that has created something returns the first response again. */
export const checkKeys: Check = ({ replays, keys }) => {
  const created = new Map(keys.map(({ key, id }) => [key, id]))
  const repeated = new Set(replays.map(({ key }) => key))
  return {
    compared: replays.length,
    wrong: [
      ...replays
        .filter(({ key, status, id, isReplayed }) => status !== 202 || !isReplayed || id !== created.get(key))
        .map(({ key, status, id }) => `key ${key} of ${created.get(key)} now returns ${status} ${id}`),
      ...keys.filter(({ key }) => !repeated.has(key)).map(({ key }) => `nobody has used key ${key}`),
    ],
  }
}

export const checkAbandonedKeys: Check = (history) => {
  const keys = keysOf(history, 'messages')
  const abandoned = history.requested.messages.filter(({ habit }) => habit === 'stops-waiting')
  return {
    compared: abandoned.length,
    wrong: abandoned.filter(({ key }) => (keys.get(key)?.length ?? 0) > 1).map(({ key }) => `key ${key} has ${keys.get(key)?.join(', ')}`),
  }
}
