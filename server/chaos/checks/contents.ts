import type { History } from '../history/history.ts'
import type { StoredMessage } from '../history/messages.ts'
import type { PhoneMessage } from '../history/phones.ts'
import { type Intent, type Traced, trace } from './expected.ts'
import { type Check, least } from './result.ts'

// Whether phones, the API and events have what was requested, and whether it stayed with its account.

const LIFE_MS = 48 * 3_600_000

type Fields = Record<string, unknown>

/** Each field that differs. */
function differences(what: string, is: Fields, should: Fields): string[] {
  return Object.entries(should)
    .filter(([field, value]) => (is[field] ?? null) !== (value ?? null))
    .map(([field, value]) => `${what}: ${field} is ${JSON.stringify(is[field])}, and was requested as ${JSON.stringify(value)}`)
}

export const checkContents: Check = (history) => {
  const traced = trace(history)
  const byId = new Map(traced.map((one) => [one.message.id, one]))
  const smsOf = new Map(traced.filter(({ intent }) => intent.contents.sms !== undefined).map((one) => [one.message.recipient, one]))
  const { phones, log } = history
  return {
    compared: least([traced.length, phones.length, log.length]),
    wrong: [
      ...traced.flatMap(wrongShown),
      ...phones.flatMap((one) =>
        one.channel === 'rcs' ? wrongRcs(one, byId.get(one.messageId ?? '')) : wrongSms(one, smsOf.get(one.phone)),
      ),
      ...log.flatMap((event) => wrongEvent(event, byId)),
    ],
  }
}

function wrongShown({ message, intent }: Traced): string[] {
  const { id, campaignId, triggeredBy, acceptedAt, expiresAt, shown } = message
  const own = {
    messageId: id,
    agentId: intent.agentId,
    recipient: intent.phone,
    clientReferenceId: intent.clientReferenceId,
    campaignId,
    test: false,
    basic: false,
    triggeredBy,
    scheduledAt: intent.sendAt,
    expiresAt: new Date(expiryOf(message, intent)).toISOString(),
  }
  const startAt = startOf(acceptedAt, intent)
  const isLong = expiresAt - startAt > LIFE_MS
  const isEarly = shown.sentAt !== undefined && Date.parse(shown.sentAt) < startAt
  return [
    ...differences(`${id}, as the API shows it`, shown, own),
    ...(isLong ? [`${id} lives for more than 48 hours`] : []),
    ...(isEarly ? [`${id} was sent before its time`] : []),
  ]
}

// A campaign can start just after the begin of the transaction that creates its messages. They are accepted at the start, but live from the
// begin of the transaction on.
const STARTED_LATER_MS = 1_000

const startOf = (acceptedAt: number, { sendAt }: Intent) => (sendAt === undefined ? acceptedAt : Math.max(acceptedAt, Date.parse(sendAt)))

/** A campaign's message may live for a little less than 48 hours. */
function expiryOf({ campaignId, acceptedAt, expiresAt }: StoredMessage, intent: Intent): number {
  if (intent.expiresAt !== undefined) return Date.parse(intent.expiresAt)
  if (intent.sendAt !== undefined) return Date.parse(intent.sendAt) + LIFE_MS
  const isALittleLess = campaignId !== null && expiresAt <= acceptedAt + LIFE_MS && expiresAt > acceptedAt + LIFE_MS - STARTED_LATER_MS
  return isALittleLess ? expiresAt : acceptedAt + LIFE_MS
}

function wrongRcs(got: PhoneMessage, one: Traced | undefined): string[] {
  // The check of the network reports a message that is not stored here.
  if (one === undefined) return []
  const { contents, agentId, phone } = one.intent
  const is = { ...got, buttons: got.buttons.join() }
  const expiresAt = new Date(one.message.expiresAt).toISOString()
  const should = { phone, origin: agentId, text: contents.text, buttons: contents.button?.text ?? '', expiresAt }
  return differences(`${one.message.id}, on ${got.phone}`, is, should)
}

/** If its worker died, the phone may have only the beginning. */
function wrongSms(got: PhoneMessage, one: Traced | undefined): string[] {
  if (one === undefined) return [`${got.phone} got an SMS that nobody requested: ${got.text}`]
  const { sender, text = '' } = one.intent.contents.sms ?? {}
  const begun = got.isWhole ? text : text.slice(0, got.text.length)
  return differences(`the SMS of ${one.message.id}`, got, { origin: sender, text: begun })
}

function wrongEvent({ eventId, kind, subjectId, data }: History['log'][number], byId: Map<string, Traced>): string[] {
  const one = byId.get(subjectId ?? '')
  if (one === undefined) return []
  const { message, intent } = one
  const { id: messageId, campaignId } = message
  // A campaign's messages have no reference of their own.
  const clientReferenceId = campaignId === null ? intent.clientReferenceId : undefined
  const should = { messageId, clientReferenceId, agentId: intent.agentId, recipient: intent.phone, campaignId, test: false }
  return differences(`event ${eventId} (${kind})`, JSON.parse(data), should)
}

/** Two accounts use the same references and group numbers. Nothing of one account is at the other. */
export const checkAccounts: Check = (history) => {
  const { requested, messages, campaigns, keys, actions, log, ledger, received, leaked } = history
  const agents = new Map(requested.messages.map(({ accountId, body }) => [accountId, body.agentId]))
  const accountOf = new Map([...messages, ...campaigns].map(({ id, accountId }) => [id, accountId]))
  const requestedBy = new Map([...requested.messages, ...requested.campaigns].map(({ key, accountId }) => [key, accountId]))
  const agentOf = new Map(messages.map(({ id, accountId }) => [id, agents.get(accountId)]))
  const strays = [
    ...keys
      .filter(({ accountId, key, id }) => accountId !== requestedBy.get(key) || accountId !== accountOf.get(id))
      .map(({ key }) => `key ${key}`),
    ...trace(history)
      .filter(({ message, intent }) => message.accountId !== intent.accountId || message.agentId !== intent.agentId)
      .map(({ message: { id } }) => `message ${id}`),
    ...messages
      .filter(({ accountId, campaignId }) => campaignId !== null && accountOf.get(campaignId) !== accountId)
      .map(({ id, campaignId }) => `message ${id} of campaign ${campaignId}`),
    ...log
      .filter(({ accountId, subjectId }) => subjectId !== null && accountOf.get(subjectId) !== accountId)
      .map(({ eventId, subjectId }) => `event ${eventId} about ${subjectId}`),
    ...actions
      .filter(({ accountId, agentId }) => agents.get(accountId) !== agentId)
      .concat(actions.filter(({ accountId, messageId }) => messageId !== null && accountOf.get(messageId) !== accountId))
      .map(({ phone, kind }) => `the action of ${phone} (${kind})`),
    ...ledger
      .filter(({ kind, messageId, agentId }) => kind === 'accepted' && agentOf.has(messageId) && agentOf.get(messageId) !== agentId)
      .map(({ messageId, agentId }) => `${messageId}, which went out by ${agentId},`),
  ]
  return {
    // With a single account, nothing is proved.
    compared: received.length > 1 ? least(received.map(({ feed }) => feed.length)) : 0,
    wrong: [...strays.map((what) => `${what} is at the wrong account`), ...leaked],
  }
}
