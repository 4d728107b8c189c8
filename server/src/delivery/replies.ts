import type { Logger } from 'pino'
import type { CarrierEvent } from '../carriers/carrier.ts'
import type { Button } from '../content/buttons.ts'
import { buttonsOf } from '../content/rules.ts'
import { type Executor, isTimedOut, isUnavailable, type Pool, transaction } from '../db/pool.ts'
import { ALL_ACCOUNTS, ANY_ERASED, type ErasedPeople, isErasedNumber, NOBODY } from '../erasure/erased.ts'
import { sendTemplate } from '../messages/send-template.ts'
import { type Action, recordAction } from '../replies/actions.ts'
import { type Addressee, findAddressee, findConcerned, findTapped } from '../replies/attribution.ts'
import { readAutoReplies, takeReplyTurn } from '../replies/auto-replies.ts'
import { recordOptOut } from '../replies/opt-outs.ts'
import { matchingKeyword, meaningOf } from '../replies/words.ts'

/** Actions of recipients. All other events of a network are receipts, or have no effect. */
export const REPLY_KINDS = ['tapped', 'wrote', 'shared-location', 'sent-file', 'subscribed', 'unsubscribed'] as const
type Reply = Extract<CarrierEvent, { kind: (typeof REPLY_KINDS)[number] }>

const BATCH_SIZE = 100
const CONCURRENCY = 4

/**
 * Processes replies: attributes each to an account, and sends an automatic reply if one applies. Each reply has its own transaction, which
 * also marks it as processed, so a crash neither loses nor repeats it. Returns how many there were, and whether there may be more.
 */
export async function processReplies(pool: Pool, logger: Logger, erased: ErasedPeople): Promise<{ processed: number; mayBeMore: boolean }> {
  const { rows } = await pool.query<EventKey>({
    name: 'find-replies',
    text: FIND_REPLIES,
    values: [BATCH_SIZE],
  })
  const waiting = rows.values()
  async function work(): Promise<void> {
    for (const key of waiting) await processReply(pool, logger, erased, key)
  }
  const worked = await Promise.allSettled(Array.from({ length: CONCURRENCY }, work))
  for (const result of worked) if (result.status === 'rejected') throw result.reason
  return { processed: rows.length, mayBeMore: rows.length === BATCH_SIZE }
}

export const FIND_REPLIES = `select carrier, event_id as "eventId" from carrier_events where process_after <= now() order by process_after limit $1`

type EventKey = { carrier: string; eventId: string }

async function processReply(pool: Pool, logger: Logger, erased: ErasedPeople, { carrier, eventId }: EventKey): Promise<void> {
  try {
    await transaction(pool, async (tx) => {
      const { rows } = await tx.query<{ event: Reply; occurredAt: Date; hasErased: boolean }>({
        name: 'claim-reply',
        text: CLAIM_REPLY,
        values: [carrier, eventId],
      })
      if (rows[0] === undefined) return
      const reply = { ...rows[0].event, occurredAt: rows[0].occurredAt }
      const isErased = rows[0].hasErased ? await erased.find(tx, [reply.phone]) : NOBODY
      const reason = await applyReply(tx, reply, (accountId) => isErased(accountId, reply.phone))
      const isUseless = reason === ERASED_SENDER || (reason === NO_ACCOUNT && isErased !== NOBODY)
      if (isUseless) await tx.query('delete from carrier_events where carrier = $1 and event_id = $2', [carrier, eventId])
      if (reason !== undefined) logger.warn({ carrier, kind: reply.kind, reason }, 'ignored a reply, or part of it')
    })
  } catch (error) {
    if (isUnavailable(error) && !isTimedOut(error)) throw error
    // The fault may concern this reply only, so the loop continues with the other replies.
    logger.error({ carrier, err: error }, 'failed to process a reply; will retry')
    await pool.query(POSTPONE, [carrier, eventId])
  }
}

/**
 * Empties the reply: its account stores what it needs, and this row names no account, so it could not be shown or erased for one. Its id stays,
 * since a network may repeat an event.
 */
export const CLAIM_REPLY = `
  update carrier_events e set process_after = null, phone = '', event = '{}'
  from (
    select ctid, event from carrier_events where carrier = $1 and event_id = $2 and process_after <= now() for update skip locked
  ) as mine
  where e.ctid = mine.ctid
  returning mine.event, e.occurred_at as "occurredAt", ${ANY_ERASED} as "hasErased"`

// Postpones a reply, unless another worker has processed it meanwhile. The delay grows with each failure, from a minute to an hour.
const POSTPONE = `
  update carrier_events set process_after = now() + least(greatest(now() - received_at, interval '1 minute'), interval '1 hour')
  where carrier = $1 and event_id = $2 and process_after is not null`

/** Why a reply has no effect, or only part of its effect; undefined if it had its full effect. */
type Ignored = string | undefined

/** Whether the sender of the reply was erased in this account. Such a reply is dropped: the person is not written to, and leaves no new data. */
type IsErasedIn = (accountId: number) => boolean

const ERASED_SENDER = 'the sender was erased'

async function applyReply(tx: Executor, reply: Reply, isErased: IsErasedIn): Promise<Ignored> {
  if (isErased(ALL_ACCOUNTS)) return ERASED_SENDER
  switch (reply.kind) {
    case 'tapped':
      return await applyTap(tx, reply, isErased)
    case 'subscribed':
    case 'unsubscribed':
      return await changeOptOut(tx, reply, isErased, { optedOut: reply.kind === 'unsubscribed', source: 'unsubscribe' })
    default: {
      const meaning = reply.kind === 'wrote' ? meaningOf(reply.text) : undefined
      if (meaning !== undefined) return await changeOptOut(tx, reply, isErased, { optedOut: meaning === 'stop', source: 'word' })
      const addressee = await findAddressee(tx, reply)
      if (addressee === undefined) return NO_ACCOUNT
      if (isErased(addressee.accountId)) return ERASED_SENDER
      await recordAction(tx, actionOf(reply, addressee))
      // Automatic replies are RCS messages, so only replies by RCS get one.
      return reply.kind === 'wrote' && reply.agentId !== undefined ? await replyTo(tx, reply.phone, reply.text, addressee) : undefined
    }
  }
}

const NO_ACCOUNT = 'no account matches'

/** A tap counts only for the message in its signed postback, and only from the phone that got that message. */
async function applyTap(tx: Executor, reply: Extract<Reply, { kind: 'tapped' }>, isErased: IsErasedIn): Promise<Ignored> {
  const message = await findTapped(tx, reply, reply.messageId)
  if (message === undefined) return await unknownTap(tx, reply.messageId, isErased)
  if (isErased(message.accountId)) return ERASED_SENDER
  const button = buttonsOf(message.content)
    .map(({ button: any }) => any as Button)
    .find(({ id }) => id === reply.buttonId)
  const action = { ...actionOf(reply, message), buttonId: reply.buttonId, text: button?.text ?? reply.text }
  if (button?.type === 'url') await recordAction(tx, { ...action, kind: 'clicked', url: button.url })
  else await recordAction(tx, { ...action, ...(button?.type === 'quick_reply' && { payload: button.payload }) })
  return button?.type === 'trigger_template' ? await send(tx, message, reply.phone, button.templateId) : undefined
}

async function unknownTap(tx: Executor, messageId: string, isErased: IsErasedIn): Promise<string> {
  const text = `select account_id as "accountId" from messages where id = $1 and ${isErasedNumber('recipient')}`
  const { rows } = await tx.query<{ accountId: number }>(text, [messageId])
  return rows.some(({ accountId }) => isErased(accountId)) ? ERASED_SENDER : 'no message from this agent to this phone has the button'
}

async function replyTo(tx: Executor, phone: string, text: string, addressee: Addressee): Promise<Ignored> {
  const found = matchingKeyword(text, await readAutoReplies(tx, addressee.accountId, addressee.agentId))
  if (found === undefined || !(await takeReplyTurn(tx, addressee.accountId, phone))) return undefined
  return await send(tx, addressee, phone, found.templateId)
}

async function send(tx: Executor, addressee: Addressee, recipient: string, templateId: number): Promise<Ignored> {
  const { accountId, agentId, messageId: triggeredBy, test } = addressee
  const sent = await sendTemplate(tx, { accountId, agentId, recipient, templateId, triggeredBy, test })
  return 'why' in sent ? `the template was not sent: ${sent.why}` : undefined
}

type OptOutChange = { optedOut: boolean; source: 'word' | 'unsubscribe' }

async function changeOptOut(tx: Executor, reply: Reply, isErased: IsErasedIn, { optedOut, source }: OptOutChange): Promise<Ignored> {
  const found = await findConcerned(tx, reply)
  const concerned = found.filter(({ accountId }) => !isErased(accountId))
  for (const addressee of concerned) {
    const { accountId, agentId } = addressee
    const hasChanged = await recordOptOut(tx, { accountId, agentId, phone: reply.phone, optedOut, source, at: reply.occurredAt })
    if (hasChanged) await recordAction(tx, { ...actionOf(reply, addressee), source, kind: optedOut ? 'opted-out' : 'opted-in' })
  }
  if (found.length > 0 && concerned.length === 0) return ERASED_SENDER
  return found.length === 0 ? NO_ACCOUNT : undefined
}

function actionOf(reply: Reply, { accountId, agentId, messageId }: Addressee): Action {
  const { phone: recipient, occurredAt } = reply
  const channel = reply.agentId === undefined ? 'sms' : 'rcs'
  const common = { accountId, agentId, recipient, messageId, channel, occurredAt } as const
  switch (reply.kind) {
    case 'shared-location':
      return { ...common, kind: reply.kind, latitude: reply.latitude, longitude: reply.longitude }
    case 'sent-file':
      return { ...common, kind: reply.kind, url: reply.url, text: reply.name, payload: reply.mimeType }
    case 'wrote':
      return { ...common, kind: 'wrote', text: reply.text }
    default:
      return { ...common, kind: 'tapped' }
  }
}
