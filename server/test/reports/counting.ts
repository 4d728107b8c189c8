import { randomBytes, randomUUID } from 'node:crypto'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import type { CarrierEvent } from '../../src/carriers/carrier.ts'
import type { Pool } from '../../src/db/pool.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
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
import { claimMessages, nextPhone, recordSent, SMS_CARRIER, smsReceipt, takeSms } from '../delivery/sms/support.ts'
import { CARRIER, createReceiver, createSender, logger, receipt, type Sender } from '../delivery/support.ts'
import { readCounted } from '../support/counted.ts'
import { moveExpiry } from '../support/expiring.ts'
import { smsFallback } from '../support/messages.ts'

// What tests of the counters share: messages of each sort, and each step that one can take, by the function that takes it.

/** What an account sends by itself, what a campaign sends, and what is only a test. */
export const SORTS = ['own', 'campaign', 'test'] as const
export type Sort = (typeof SORTS)[number]

/** `campaignId`: under which it is counted. */
export type Made = { sender: Sender; campaignId: string; messageId: string; phone: string }

export type Making = {
  sender?: Sender
  count?: number
  /** With a fallback to SMS, which is due at once. */
  sms?: { planParams?: Record<string, unknown>; afterExpiry?: { delay: number } }
  buttons?: unknown[]
}

export const BUTTONS = [
  { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' },
  { id: 'web', type: 'url', text: 'Web', url: 'https://shop.example/' },
]

let names = 0
const nextName = () => {
  names += 1
  return names
}

const key = randomBytes(32)

export async function startCounting(pool: Pool) {
  await ensurePace(pool, CARRIER)
  await ensurePace(pool, SMS_CARRIER)
  const accept = createAcceptor(pool, () => {})
  const take = createReceiver(pool)
  const leases = new Map<string, string>()
  const entries = new Map<string, SmsEntry>()

  /** Accepted a moment ago, each to a phone of its own. */
  async function makeAllOf(sort: Sort, making: Making = {}): Promise<Made[]> {
    const { sender = await createSender(pool), count = 1, sms, buttons = BUTTONS } = making
    const message = { inline: { type: 'MESSAGE', content: 'Hello', buttons } as never }
    const phones = Array.from({ length: count }, nextPhone)
    if (sort === 'campaign') {
      const group = nextName()
      await fillGroup(pool, sender.accountId, group, phones)
      const campaignId = await acceptedCampaign(pool, sender, { segmentIds: [group], message, ...(sms && { sms }) })
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
        const submission: Submission = { accountId, agentId, message, recipients: [phone], test: sort === 'test', fallback }
        const idempotency = { key: randomUUID(), hash: requestHash({}) }
        const { messageIds } = await accept(sort === 'test' ? submission : { ...submission, idempotency })
        return { sender, campaignId: NO_CAMPAIGN, messageId: messageIds[0] as string, phone }
      }),
    )
  }

  async function make(sort: Sort, making: Making = {}): Promise<Made> {
    return (await makeAllOf(sort, making))[0] as Made
  }

  /** Takes up all that is due, and remembers it for the next one that is asked for. */
  async function leaseOf({ messageId }: Made): Promise<string> {
    for (const entry of await claimMessages(pool)) leases.set(entry.messageId, entry.lease)
    const lease = leases.get(messageId)
    if (lease === undefined) throw new Error(`${messageId} was not due`)
    return lease
  }

  /** Takes it up and writes down what came of it. */
  async function handOver(made: Made, verdict: EntryResult = { is: 'sent' }): Promise<void> {
    await recordResults(pool, [{ messageId: made.messageId, lease: await leaseOf(made), ...verdict }])
  }

  async function refuse(made: Made): Promise<void> {
    await handOver(made, { is: 'failed', reason: 'NOT_REACHABLE', detail: '' })
  }

  /** `at`: what the network's clock said. */
  async function report({ messageId, phone }: Made, kind: 'delivered' | 'read', at = new Date()): Promise<void> {
    await take([{ ...receipt({ messageId, phone, kind }), occurredAt: at } as CarrierEvent])
  }

  /** Its time is over as of `ago`; the next worker marks it. */
  async function runOut({ messageId }: Made, ago = '1 second'): Promise<void> {
    await moveExpiry(pool, [messageId], `now() - interval '${ago}'`)
  }

  async function expire(made: Made, ago?: string): Promise<void> {
    await runOut(made, ago)
    await expireDue(pool)
  }

  /** As `leaseOf`, of an SMS. */
  async function takeSmsOf({ messageId }: Made, copy = 0): Promise<SmsEntry> {
    for (const entry of await takeSms(pool)) entries.set(`${entry.messageId} ${entry.copy}`, entry)
    const entry = entries.get(`${messageId} ${copy}`)
    if (entry === undefined) throw new Error(`the SMS of ${messageId} was not due`)
    return entry
  }

  async function endSms(made: Made, verdict: SmsEntryResult): Promise<void> {
    const { messageId, copy, lease } = await takeSmsOf(made)
    await recordSmsResults(pool, SMS_CARRIER, [{ messageId, copy, lease, parts: [], ...verdict }])
  }

  /** Returns the network's id of it. */
  async function sendSms(made: Made, copy?: number): Promise<string> {
    const id = `sms-${nextName()}`
    await recordSent(pool, await takeSmsOf(made, copy), [id])
    return id
  }

  async function reportSms(
    { phone }: Pick<Made, 'phone'>,
    id: string,
    kind: 'sms-delivered' | 'sms-failed' = 'sms-delivered',
  ): Promise<void> {
    await take([smsReceipt({ kind, phone, ids: [id] })])
  }

  /** Its recipient did something by RCS, at `at`. */
  async function act({ sender, phone }: Made, what: Record<string, unknown>, at = new Date()): Promise<void> {
    const event = { carrier: CARRIER, eventId: randomUUID(), phone, agentId: sender.agentId, occurredAt: at, ...what }
    await take([event as never])
    await processReplies(pool, logger)
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

  /** A campaign that is cancelled before any of it is sent. */
  async function withdraw({ campaignId }: Made): Promise<void> {
    await moveCampaign(pool, campaignId, 'CANCELLED')
    await withdrawCancelled(pool)
  }

  /** Of all hours together, by campaign; but for `unsent`, which no report shows, and which the recount at the end checks. */
  async function counted(sender: Sender): Promise<Record<string, Record<string, number>>> {
    const byCampaign = Map.groupBy(await readCounted(pool, sender), ({ campaignId }) => campaignId)
    return Object.fromEntries(
      [...byCampaign].map(([campaignId, hours]) => {
        const sums: Record<string, number> = {}
        for (const { counts } of hours) for (const [kind, count] of Object.entries(counts)) sums[kind] = (sums[kind] ?? 0) + count
        const { unsent, ...shown } = sums
        return [campaignId, shown]
      }),
    )
  }

  const steps = {
    make,
    makeAllOf,
    leaseOf,
    handOver,
    refuse,
    report,
    runOut,
    expire,
    takeSmsOf,
    endSms,
    sendSms,
    reportSms,
    act,
    tap,
    link,
    withdraw,
  }
  return { ...steps, counted }
}
