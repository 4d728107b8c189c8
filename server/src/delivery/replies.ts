import type { Logger } from 'pino'
import type { CarrierEvent } from '../carriers/carrier.ts'
import type { Button } from '../content/buttons.ts'
import { buttonsOf } from '../content/rules.ts'
import { type Executor, isTimedOut, isUnavailable, type Pool, transaction } from '../db/pool.ts'
import { sendTemplate } from '../messages/send-template.ts'
import { type Action, recordAction } from '../replies/actions.ts'
import { type Addressee, findAddressee, findConcerned, findTapped } from '../replies/attribution.ts'
import { readAutoReplies, takeReplyTurn } from '../replies/auto-replies.ts'
import { recordOptOut } from '../replies/opt-outs.ts'
import { matchingKeyword, meaningOf } from '../replies/words.ts'

/** What recipients do. All other events of a network are receipts, or have no effect. */
export const REPLY_KINDS = ['tapped', 'wrote', 'shared-location', 'sent-file', 'subscribed', 'unsubscribed'] as const
type Reply = Extract<CarrierEvent, { kind: (typeof REPLY_KINDS)[number] }>

const MOST_AT_ONCE = 100
const AT_A_TIME = 4

/**
 * Processes what recipients did: attributes each event, and replies if an automatic reply applies. Each event has its own transaction, which
 * marks it as processed: a crash neither loses nor repeats it or its reply. Returns how many there were, and whether there may be more.
 */
export async function processReplies(pool: Pool, logger: Logger): Promise<{ taken: number; mayBeMore: boolean }> {
  const { rows } = await pool.query<EventKey>({
    name: 'find-replies',
    text: `select carrier, event_id as "eventId" from carrier_events where take_up_at <= now() order by take_up_at limit $1`,
    values: [MOST_AT_ONCE],
  })
  const waiting = rows.values()
  async function work(): Promise<void> {
    for (const key of waiting) await takeUp(pool, logger, key)
  }
  const worked = await Promise.allSettled(Array.from({ length: AT_A_TIME }, work))
  for (const result of worked) if (result.status === 'rejected') throw result.reason
  return { taken: rows.length, mayBeMore: rows.length === MOST_AT_ONCE }
}

type EventKey = { carrier: string; eventId: string }

async function takeUp(pool: Pool, logger: Logger, { carrier, eventId }: EventKey): Promise<void> {
  try {
    await transaction(pool, async (tx) => {
      const { rows } = await tx.query<{ event: Reply; occurredAt: Date }>({
        name: 'take-reply',
        text: `update carrier_events e set take_up_at = null
               from (select ctid from carrier_events where carrier = $1 and event_id = $2 and take_up_at <= now() for update skip locked) as mine
               where e.ctid = mine.ctid
               returning e.event, e.occurred_at as "occurredAt"`,
        values: [carrier, eventId],
      })
      if (rows[0] === undefined) return
      const reply = { ...rows[0].event, occurredAt: rows[0].occurredAt }
      const reason = await answer(tx, reply)
      if (reason !== undefined) logger.warn({ carrier, kind: reply.kind, reason }, 'what a recipient did changes nothing')
    })
  } catch (error) {
    if (isUnavailable(error) && !isTimedOut(error)) throw error
    // A fault that may concern this event only, so the others go on.
    logger.error({ carrier, err: error }, 'what a recipient did could not be processed, and is tried again later')
    await pool.query(PUT_OFF, [carrier, eventId])
  }
}

// Unless another worker has processed it meanwhile. The interval grows with each failure, from a minute to an hour.
const PUT_OFF = `
  update carrier_events set take_up_at = now() + least(greatest(now() - received_at, interval '1 minute'), interval '1 hour')
  where carrier = $1 and event_id = $2 and take_up_at is not null`

/** Why a reply has no effect, or not its full effect. */
type Ignored = string | undefined

async function answer(tx: Executor, reply: Reply): Promise<Ignored> {
  switch (reply.kind) {
    case 'tapped':
      return await tapped(tx, reply)
    case 'subscribed':
    case 'unsubscribed':
      return await changeOptOut(tx, reply, reply.kind === 'unsubscribed', 'unsubscribe')
    default: {
      const meaning = reply.kind === 'wrote' ? meaningOf(reply.text) : undefined
      if (meaning !== undefined) return await changeOptOut(tx, reply, meaning === 'stop', 'word')
      const addressee = await findAddressee(tx, reply)
      if (addressee === undefined) return FOR_NOBODY
      await recordAction(tx, actionOf(reply, addressee))
      // Automatic replies are RCS messages, so only replies by RCS get one.
      return reply.kind === 'wrote' && reply.agentId !== undefined ? await replyTo(tx, reply.phone, reply.text, addressee) : undefined
    }
  }
}

const FOR_NOBODY = 'it is for no account'

/** Only the content of the signed postback counts, and only from the phone that got the message. */
async function tapped(tx: Executor, reply: Extract<Reply, { kind: 'tapped' }>): Promise<Ignored> {
  const message = await findTapped(tx, reply, reply.messageId)
  if (message === undefined) return 'the button is of no message to this phone by this agent'
  const button = buttonsOf(message.content)
    .map(({ button: any }) => any as Button)
    .find(({ id }) => id === reply.buttonId)
  const action = { ...actionOf(reply, message), buttonId: reply.buttonId, text: button?.text ?? reply.text }
  if (button?.type === 'url') await recordAction(tx, { ...action, kind: 'clicked', url: button.url })
  else await recordAction(tx, { ...action, ...(button?.type === 'quick_reply' && { payload: button.payload }) })
  return button?.type === 'trigger_template' ? await send(tx, message, reply.phone, button.templateId) : undefined
}

async function replyTo(tx: Executor, phone: string, text: string, addressee: Addressee): Promise<Ignored> {
  const found = matchingKeyword(text, await readAutoReplies(tx, addressee.accountId, addressee.agentId))
  if (found === undefined || !(await takeReplyTurn(tx, addressee.accountId, phone))) return undefined
  return await send(tx, addressee, phone, found.templateId)
}

async function send(tx: Executor, addressee: Addressee, recipient: string, templateId: number): Promise<Ignored> {
  const { accountId, agentId, messageId: triggeredBy, test } = addressee
  const sent = await sendTemplate(tx, { accountId, agentId, recipient, templateId, triggeredBy, test })
  return 'why' in sent ? `its template is not sent: ${sent.why}` : undefined
}

async function changeOptOut(tx: Executor, reply: Reply, optedOut: boolean, source: 'word' | 'unsubscribe'): Promise<Ignored> {
  const concerned = await findConcerned(tx, reply)
  for (const one of concerned) {
    const { accountId, agentId } = one
    const hasChanged = await recordOptOut(tx, { accountId, agentId, phone: reply.phone, optedOut, source, at: reply.occurredAt })
    if (hasChanged) await recordAction(tx, { ...actionOf(reply, one), source, kind: optedOut ? 'opted-out' : 'opted-in' })
  }
  return concerned.length === 0 ? FOR_NOBODY : undefined
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
