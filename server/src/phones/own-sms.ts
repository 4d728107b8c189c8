import type { Executor } from '../db/pool.ts'
import { SHORT_PATH } from '../links/codes.ts'
import type { SmsPlan } from '../messages/sms-fallback.ts'
import { composeText } from '../sms/compose.ts'
import type { Simulator } from './simulator.ts'

// An SMS on a phone does not say which account sent it, and Herald forgets the ids of the SMSC once an SMS is delivered. So an account sees an
// SMS if it sent exactly this text under this sender, or if the SMS has one of its short links. Each SMS of the account accounts for one SMS
// on the phone: an account never learns that another one sent the same.

/** An SMS as the simulator has it. */
type ReceivedSms = { sender: string; text: string; acceptedAt: string; deliveredAt: string | null }

export type OwnSms = { messageId: string; sender: string; text: string; at: string }

type SentSms = { messageId: string; plan: SmsPlan; sentAt: Date }

/** How many SMS on a phone are read. */
export const MAX_RECEIVED = 50
const LAST_MESSAGES = 3
/** How many SMS of the account to a phone are read. */
const MAX_SENT = 100
const CODES = new RegExp(`${SHORT_PATH}([A-Za-z0-9]{11})(?![A-Za-z0-9])`, 'g')

/** The SMS on a phone that this account sent, in their order. */
export async function readOwnSms(db: Executor, { listSms }: Simulator, accountId: number, phone: string): Promise<OwnSms[]> {
  const { messages } = (await listSms(phone, MAX_RECEIVED)) as { messages: ReceivedSms[] }
  // An SMS that is not delivered is not on the phone.
  const delivered = messages.filter(({ deliveredAt }) => deliveredAt !== null)
  if (delivered.length === 0) return []
  const sent = await readSent(db, accountId, phone)
  const messageOfCode = await readCodes(db, accountId, delivered)
  return delivered.flatMap((sms) => {
    const index = closest(sent, sms, (each) => isSame(each, sms, messageOfCode))
    if (index === -1) return []
    const [{ messageId }] = sent.splice(index, 1) as [SentSms]
    return [{ messageId, sender: sms.sender, text: sms.text, at: sms.deliveredAt as string }]
  })
}

type Contact = { phone: string; last: { at: string } | null }

/** The last SMS of the account on each of these phones, where it came after the last RCS text. */
export async function readLastSms(
  db: Executor,
  simulator: Simulator,
  accountId: number,
  contacts: Contact[],
): Promise<Map<string, OwnSms>> {
  const { rows } = await db.query<{ phone: string }>(
    `select p.phone from unnest($2::text[], $3::timestamptz[]) as p (phone, at), lateral (
       select 1 from messages m join sms_fallbacks f on f.message_id = m.id
       where m.recipient = p.phone and m.account_id = $1 and ${MAY_BE_ON_PHONE} and ${SENT_AT} > p.at limit 1
     ) as sent`,
    [accountId, contacts.map(({ phone }) => phone), contacts.map(({ last }) => last?.at ?? '-infinity')],
  )
  const lastText = new Map(contacts.map(({ phone, last }) => [phone, last?.at ?? '']))
  const found = rows.map(async ({ phone }) => [phone, (await readOwnSms(db, simulator, accountId, phone)).at(-1)] as const)
  // The one that was sent after the text may not have arrived.
  const isLast = (each: readonly [string, OwnSms | undefined]): each is [string, OwnSms] =>
    each[1] !== undefined && each[1].at > (lastText.get(each[0]) as string)
  return new Map((await Promise.all(found)).filter(isLast))
}

/** An SMS of unknown outcome has no time of its sending, but may be on the phone. */
const MAY_BE_ON_PHONE = `(f.sent_at is not null or f.reason = 'OUTCOME_UNKNOWN')`
const SENT_AT = 'coalesce(f.sent_at, f.failed_at)'

async function readSent(db: Executor, accountId: number, phone: string): Promise<SentSms[]> {
  const { rows } = await db.query<SentSms>(
    `select m.id as "messageId", f.plan, ${SENT_AT} as "sentAt"
     from messages m join sms_fallbacks f on f.message_id = m.id
     where m.recipient = $2 and m.account_id = $1 and ${MAY_BE_ON_PHONE}
     order by m.id desc limit ${MAX_SENT}`,
    [accountId, phone],
  )
  return rows
}

/** The ids of the last messages of the account to a phone, the newest first. */
export async function listLastMessages(db: Executor, accountId: number, phone: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from messages where recipient = $2 and account_id = $1 order by id desc limit ${LAST_MESSAGES}`,
    [accountId, phone],
  )
  return rows.map(({ id }) => id)
}

const codesIn = (text: string) => Array.from(text.matchAll(CODES), ([, code]) => code as string)

/** The messages of the account whose short links are in these texts. */
async function readCodes(db: Executor, accountId: number, received: ReceivedSms[]): Promise<Map<string, string>> {
  const codes = received.flatMap(({ text }) => codesIn(text))
  if (codes.length === 0) return new Map()
  const { rows } = await db.query<{ code: string; messageId: string }>(
    'select code, message_id as "messageId" from short_links where code = any ($1::text[]) and account_id = $2 and copy = 0',
    [codes, accountId],
  )
  return new Map(rows.map(({ code, messageId }) => [code, messageId]))
}

function isSame({ messageId, plan }: SentSms, { sender, text }: ReceivedSms, messageOfCode: Map<string, string>): boolean {
  if (plan.sender.replace('+', '') !== sender) return false
  // The codes of short links are unique: they name the message.
  if (plan.urlShortening && codesIn(text).length > 0) return codesIn(text).every((code) => messageOfCode.get(code) === messageId)
  return composeText(plan, () => '') === text
}

/** The index of the matching SMS that was sent at the nearest time; -1 if none matches. */
function closest(sent: SentSms[], { acceptedAt }: ReceivedSms, matches: (sms: SentSms) => boolean): number {
  const distance = ({ sentAt }: SentSms) => Math.abs(sentAt.getTime() - Date.parse(acceptedAt))
  let best = -1
  for (const [index, each] of sent.entries()) {
    if (matches(each) && (best === -1 || distance(each) < distance(sent[best] as SentSms))) best = index
  }
  return best
}
