import { randomBytes, randomUUID } from 'node:crypto'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import type { Pool } from '../../src/db/pool.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { ensureRate } from '../../src/delivery/rate.ts'
import { processReplies } from '../../src/delivery/replies.ts'
import { type EntryResult, recordResults } from '../../src/delivery/results.ts'
import type { SmsEntry } from '../../src/delivery/sms/claim.ts'
import { recordSmsResults, type SmsEntryResult } from '../../src/delivery/sms/results.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { shortCode } from '../../src/links/codes.ts'
import { createLinks } from '../../src/links/links.ts'
import { createAcceptor, type Submission } from '../../src/messages/accept.ts'
import { requestHash } from '../../src/messages/request-hash.ts'
import { fallbackOf } from '../../src/messages/sms-fallback.ts'
import { acceptedCampaign, fillGroup, makeAll } from '../campaigns/support.ts'
import { claimMessages, nextPhone, smsReceipt } from '../delivery/sms/support.ts'
import { claimDueSms, recordSent, SMS_CARRIER } from '../delivery/sms/worker.ts'
import { createReceiver, createSender, receipt, type Sender } from '../delivery/support.ts'
import { CARRIER, logger } from '../delivery/worker.ts'
import { readCounted } from './counted.ts'
import { erased } from './erased.ts'
import { moveExpiry } from './expiring.ts'
import { smsFallback } from './messages.ts'

// Messages of each sort, and every step that a message can take, by the function of the service that takes it.

/** A single message, a message of a campaign, and a test message. */
export type Sort = 'single' | 'campaign' | 'test'

/** `campaignId`: as reports count it. */
export type Made = { sender: Sender; campaignId: string; messageId: string; phone: string }

type Options = {
  sender?: Sender
  count?: number
  /** With an SMS fallback, which is due as soon as the message fails. */
  sms?: { planParams?: Record<string, unknown>; afterExpiry?: { delay: number } }
  buttons?: unknown[]
  clientReferenceId?: string
}

const BUTTONS = [
  { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' },
  { id: 'web', type: 'url', text: 'Web', url: 'https://shop.example/' },
]

let names = 0
const nextName = () => {
  names += 1
  return names
}

const key = randomBytes(32)

export async function createSteps(pool: Pool) {
  await ensureRate(pool, CARRIER)
  await ensureRate(pool, SMS_CARRIER)
  const accept = createAcceptor(pool, () => {})
  const receive = createReceiver(pool)
  const leases = new Map<string, string>()
  const entries = new Map<string, SmsEntry>()

  /** Accepted a moment ago, each to a phone of its own. */
  async function makeAllOf(sort: Sort, options: Options = {}): Promise<Made[]> {
    const { sender = await createSender(pool), count = 1, sms, buttons = BUTTONS, clientReferenceId } = options
    const reference = clientReferenceId === undefined ? {} : { clientReferenceId }
    const message = { inline: { type: 'MESSAGE', content: 'Hello', buttons } as never }
    const phones = Array.from({ length: count }, nextPhone)
    if (sort === 'campaign') {
      const group = nextName()
      await fillGroup(pool, sender.accountId, group, phones)
      const campaignId = await acceptedCampaign(pool, sender, { segmentIds: [group], message, ...reference, ...(sms && { sms }) })
      // Rounded up, it would be a moment ahead.
      await pool.query(`update campaigns set scheduled_at = scheduled_at - interval '1 millisecond' where id = $1`, [campaignId])
      await makeAll(pool)
      const ofCampaign = 'select id as "messageId", recipient as phone from messages where campaign_id = $1 order by recipient'
      const { rows } = await pool.query<Pick<Made, 'messageId' | 'phone'>>(ofCampaign, [campaignId])
      return rows.map((one) => ({ sender, campaignId, ...one }))
    }
    const fallback = sms && fallbackOf(smsFallback(sms.planParams) as never, sms.afterExpiry, 'http://127.0.0.1:8080')
    return await Promise.all(
      phones.map(async (phone) => {
        const { accountId, agentId } = sender
        const submission: Submission = {
          accountId,
          agentId,
          message,
          recipients: [phone],
          test: sort === 'test',
          fallback,
          ...reference,
        }
        const idempotency = { key: randomUUID(), hash: requestHash({}) }
        const { messageIds } = await accept(sort === 'test' ? submission : { ...submission, idempotency })
        return { sender, campaignId: NO_CAMPAIGN, messageId: messageIds[0] as string, phone }
      }),
    )
  }

  async function make(sort: Sort, options: Options = {}): Promise<Made> {
    return (await makeAllOf(sort, options))[0] as Made
  }

  /** Claims all messages that are due, and keeps the leases of the others for later calls. */
  async function leaseOf({ messageId }: Made): Promise<string> {
    for (const entry of await claimMessages(pool)) leases.set(entry.messageId, entry.lease)
    const lease = leases.get(messageId)
    if (lease === undefined) throw new Error(`${messageId} was not due`)
    return lease
  }

  /** Claims the message and records the result of its send. */
  async function handOver(made: Made, result: EntryResult = { is: 'sent' }): Promise<void> {
    await recordResults(pool, [{ messageId: made.messageId, lease: await leaseOf(made), ...result }])
  }

  async function refuse(made: Made): Promise<void> {
    await handOver(made, { is: 'failed', reason: 'NOT_REACHABLE', detail: '' })
  }

  /** `at`: by the clock of the network. */
  async function report({ messageId, phone }: Made, kind: 'delivered' | 'read', at = new Date()): Promise<void> {
    await receive([{ ...receipt({ messageId, phone, kind }), occurredAt: at } as CarrierEvent])
  }

  /** Moves its expiry to `ago`; the next run of the expiry marks it. */
  async function passExpiry({ messageId }: Made, ago = '1 second'): Promise<void> {
    await moveExpiry(pool, [messageId], `now() - interval '${ago}'`)
  }

  async function expire(made: Made, ago?: string): Promise<void> {
    await passExpiry(made, ago)
    await expireDue(pool)
  }

  /** As `leaseOf`, for an SMS. */
  async function claimSmsOf({ messageId }: Made, copy = 0): Promise<SmsEntry> {
    for (const entry of await claimDueSms(pool)) entries.set(`${entry.messageId} ${entry.copy}`, entry)
    const entry = entries.get(`${messageId} ${copy}`)
    if (entry === undefined) throw new Error(`the SMS of ${messageId} was not due`)
    return entry
  }

  async function endSms(made: Made, result: SmsEntryResult): Promise<void> {
    const { messageId, copy, lease } = await claimSmsOf(made)
    await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, submittedSegments: [], ...result }])
  }

  /** Returns the network's id of the SMS. */
  async function sendSms(made: Made, copy?: number): Promise<string> {
    const id = `sms-${nextName()}`
    await recordSent(pool, await claimSmsOf(made, copy), [id])
    return id
  }

  async function reportSms(
    { phone }: Pick<Made, 'phone'>,
    id: string,
    kind: 'sms-delivered' | 'sms-failed' = 'sms-delivered',
  ): Promise<void> {
    await receive([smsReceipt({ kind, phone, ids: [id] })])
  }

  /** An event from the carrier: the recipient acts at `at`. */
  function actionEvent({ sender, phone }: Made, action: Record<string, unknown>, at = new Date()): CarrierEvent {
    return { carrier: CARRIER, eventId: randomUUID(), phone, agentId: sender.agentId, occurredAt: at, ...action } as unknown as CarrierEvent
  }

  async function act(made: Made, action: Record<string, unknown>, at?: Date): Promise<void> {
    await receive([actionEvent(made, action, at)])
    await processReplies(pool, logger, erased)
  }

  async function tap(made: Made, buttonId: string, at?: Date): Promise<void> {
    await act(made, { kind: 'tapped', messageId: made.messageId, buttonId, text: undefined }, at)
  }

  /** The code of a short link in its SMS. */
  async function link({ sender, messageId, phone }: Made, copy = 0): Promise<string> {
    const code = shortCode(key, messageId, copy, nextName())
    const { accountId, agentId } = sender
    await createLinks(pool, [{ code, accountId, messageId, copy, agentId, recipient: phone, url: 'https://shop.example/' }])
    return code
  }

  /** Cancels the campaign before any of its messages is sent. */
  async function withdraw({ campaignId }: Made): Promise<void> {
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await withdrawCancelled(pool)
  }

  /** The counters of all hours, by campaign, without `unsent` and `claimed`: the check of the dropped database compares these. */
  async function counted(sender: Sender): Promise<Record<string, Record<string, number>>> {
    const byCampaign = Map.groupBy(await readCounted(pool, sender), ({ campaignId }) => campaignId)
    return Object.fromEntries(
      [...byCampaign].map(([campaignId, hours]) => {
        const sums: Record<string, number> = {}
        for (const { counts } of hours) for (const [kind, count] of Object.entries(counts)) sums[kind] = (sums[kind] ?? 0) + count
        const { unsent, claimed, ...shown } = sums
        return [campaignId, shown]
      }),
    )
  }

  const ofMessages = { make, makeAllOf, leaseOf, handOver, refuse, report, passExpiry, expire, withdraw }
  const ofSms = { claimSmsOf, endSms, sendSms, reportSms }
  return { ...ofMessages, ...ofSms, receive, actionEvent, act, tap, link, counted }
}
