import { type Asking, type Followed, follow } from './ends.ts'
import type { Evidence } from './evidence.ts'
import { type Comparison, least } from './line.ts'
import type { Received } from './received.ts'
import type { Stored } from './stored.ts'

// Whether what was asked for is what phones got, what the API shows and what was told; and whether it stayed with its account.

const LIFE_MS = 48 * 3_600_000

type Fields = Record<string, unknown>

/** Each field that is not as it should be. */
function differences(what: string, is: Fields, should: Fields): string[] {
  return Object.entries(should)
    .filter(([field, value]) => (is[field] ?? null) !== (value ?? null))
    .map(([field, value]) => `${what}: ${field} is ${JSON.stringify(is[field])}, and was asked for as ${JSON.stringify(value)}`)
}

export function judgeContents(evidence: Evidence): Comparison {
  const followed = follow(evidence)
  const byId = new Map(followed.map((one) => [one.message.id, one]))
  const smsOf = new Map(followed.filter(({ asking }) => asking.contents.sms !== undefined).map((one) => [one.message.recipient, one]))
  const { received, log } = evidence
  return {
    promise: 'contents: asked for, handed over, shown and told',
    figures: `${followed.length} messages; phones got ${received.length} texts, and ${log.length} events name what they are about`,
    compared: least([followed.length, received.length, log.length]),
    wrong: [
      ...followed.flatMap(wrongShown),
      ...received.flatMap((one) =>
        one.channel === 'rcs' ? wrongRcs(one, byId.get(one.messageId ?? '')) : wrongSms(one, smsOf.get(one.phone)),
      ),
      ...log.flatMap((event) => wrongEvent(event, byId)),
    ],
  }
}

function wrongShown({ message, asking }: Followed): string[] {
  const { id, campaignId, triggeredBy, acceptedAt, expiresAt, shown } = message
  const own = {
    messageId: id,
    agentId: asking.agentId,
    recipient: asking.phone,
    clientReferenceId: asking.clientReferenceId,
    campaignId,
    test: false,
    basic: false,
    triggeredBy,
    expiresAt: new Date(untilOf(message, asking)).toISOString(),
  }
  const isLong = expiresAt - acceptedAt > LIFE_MS
  return [...differences(`${id}, as it is shown`, shown, own), ...(isLong ? [`${id} lives for more than 48 hours`] : [])]
}

// A campaign can start just after the transaction began that makes its messages, and none is accepted before the start: but they live from
// the beginning of the transaction on.
const STARTED_LATER_MS = 1_000

/** Those of a campaign may live for a little less than 48 hours. */
function untilOf({ campaignId, acceptedAt, expiresAt }: Stored, asking: Asking): number {
  if (asking.expiresAt !== undefined) return Date.parse(asking.expiresAt)
  const isALittleLess = campaignId !== null && expiresAt <= acceptedAt + LIFE_MS && expiresAt > acceptedAt + LIFE_MS - STARTED_LATER_MS
  return isALittleLess ? expiresAt : acceptedAt + LIFE_MS
}

function wrongRcs(got: Received, one: Followed | undefined): string[] {
  // What is not here at all is found where the network is held against the API.
  if (one === undefined) return []
  const { contents, agentId, phone } = one.asking
  const buttons = contents.button === undefined ? '' : contents.button.text
  const is = { ...got, buttons: got.buttons.join() }
  const expiresAt = new Date(one.message.expiresAt).toISOString()
  return differences(`${one.message.id}, on ${got.phone}`, is, { phone, origin: agentId, text: contents.text, buttons, expiresAt })
}

/** Of one whose worker died on the way, the beginning. */
function wrongSms(got: Received, one: Followed | undefined): string[] {
  if (one === undefined) return [`${got.phone} got an SMS that nobody asked for: ${got.text}`]
  const { sender, text = '' } = one.asking.contents.sms ?? {}
  const begun = got.isWhole ? text : text.slice(0, got.text.length)
  return differences(`the SMS of ${one.message.id}`, got, { origin: sender, text: begun })
}

function wrongEvent({ eventId, kind, subjectId, data }: Evidence['log'][number], byId: Map<string, Followed>): string[] {
  const one = byId.get(subjectId ?? '')
  if (one === undefined) return []
  const { message, asking } = one
  const { id: messageId, campaignId } = message
  // Those of a campaign have no reference of their own.
  const clientReferenceId = campaignId === null ? asking.clientReferenceId : undefined
  return differences(`event ${eventId} (${kind})`, JSON.parse(data), {
    messageId,
    clientReferenceId,
    agentId: asking.agentId,
    recipient: asking.phone,
    campaignId,
    test: false,
  })
}

/** Two accounts with the same references and group numbers: nothing of one is anywhere at the other. */
export function judgeAccounts(evidence: Evidence): Comparison {
  const { asked, messages, campaigns, keys, actions, log, ledger, told, leaked } = evidence
  const agents = new Map(asked.messages.map(({ accountId, body }) => [accountId, body.agentId]))
  const accountOf = new Map([...messages, ...campaigns].map(({ id, accountId }) => [id, accountId]))
  const askedBy = new Map([...asked.messages, ...asked.campaigns].map(({ key, accountId }) => [key, accountId]))
  const handed = new Map(messages.map(({ id, accountId }) => [id, agents.get(accountId)]))
  const strays = [
    ...keys
      .filter(({ accountId, key, id }) => accountId !== askedBy.get(key) || accountId !== accountOf.get(id))
      .map(({ key }) => `key ${key}`),
    ...follow(evidence)
      .filter(({ message, asking }) => message.accountId !== asking.accountId || message.agentId !== asking.agentId)
      .map(({ message: { id } }) => `message ${id}`),
    ...messages
      .filter(({ accountId, campaignId }) => campaignId !== null && accountOf.get(campaignId) !== accountId)
      .map(({ id, campaignId }) => `message ${id} of campaign ${campaignId}`),
    ...log
      .filter(({ accountId, subjectId }) => subjectId !== null && accountOf.get(subjectId) !== accountId)
      .map(({ eventId, subjectId }) => `event ${eventId} about ${subjectId}`),
    ...actions
      .filter(
        ({ accountId, agentId, messageId }) =>
          agents.get(accountId) !== agentId || (messageId !== null && accountOf.get(messageId) !== accountId),
      )
      .map(({ phone, kind }) => `what ${phone} did (${kind})`),
    ...ledger
      .filter(({ kind, messageId, agentId }) => kind === 'accepted' && handed.has(messageId) && handed.get(messageId) !== agentId)
      .map(({ messageId, agentId }) => `${messageId}, which went out by ${agentId},`),
  ]
  const byAccount = told.map(({ accountId }) => `${messages.filter((message) => message.accountId === accountId).length} messages`)
  return {
    promise: 'nothing of one account at another',
    figures: `${told.length} accounts: ${byAccount.join(' and ')}`,
    // Of a single account, nothing can be seen.
    compared: told.length > 1 ? least(told.map(({ followed }) => followed.length)) : 0,
    wrong: [...strays.map((what) => `${what} is at the wrong account`), ...leaked],
  }
}
