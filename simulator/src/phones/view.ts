import type { Store } from '../state/store.ts'
import type { Message, Part } from './messages.ts'

const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

type Sms = { key: string; rows: (Message | undefined)[] }

/** The numbers that have received anything, in order, after the given one. One look into the index for each, however much it received. */
export function listPhones(store: Store, after: string, limit: number): string[] {
  const phones: string[] = []
  let last = after
  while (phones.length < limit) {
    const phone = store.get<{ phone: string | null }>('select min(phone) as phone from messages where phone > ?', last)?.phone
    if (!phone) break
    phones.push(phone)
    last = phone
  }
  return phones
}

/** What a phone received, in order; the parts of an SMS put together as the phone shows them. */
export function viewPhone(store: Store, phone: string, after: number, limit: number) {
  const rows = store.all<Message>('select * from messages where phone = ? and id > ? order by id limit ?', phone, after, limit)
  const shown: (ReturnType<typeof viewRcs> | Sms)[] = []
  for (const row of rows) {
    if (row.channel !== 'sms') shown.push(viewRcs(row))
    else addPart(shown, row)
  }
  const messages = shown.map((entry) => ('rows' in entry ? viewSms(entry) : entry))
  return { phone, messages, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
}

function viewRcs(row: Message) {
  const body = JSON.parse(row.body)
  return {
    seq: row.id,
    channel: row.channel,
    messageId: row.message_id,
    agentId: row.origin,
    ...(row.channel === 'rcs' ? { agentMessage: body } : { agentEvent: body }),
    ...timesOf(row),
    attempts: row.attempts,
  }
}

function timesOf(row: Message) {
  return {
    acceptedAt: time(row.accepted_at),
    deliveredAt: time(row.delivered_at),
    readAt: time(row.read_at),
    revokedAt: time(row.revoked_at),
    expiredAt: time(row.expired_at),
    failedAt: time(row.failed_at),
    expiresAt: time(row.expires_at),
  }
}

/** References repeat after 256 messages: a part belongs to the newest one of its reference that lacks it. */
function addPart(shown: (object | Sms)[], row: Message): void {
  const part: Part = row.part === null ? { reference: 0, total: 1, number: 1 } : JSON.parse(row.part)
  const key = row.part === null ? '' : `${row.origin}\n${part.reference}\n${part.total}`
  const open = shown.findLast((entry): entry is Sms => 'rows' in entry && key !== '' && entry.key === key)
  if (open !== undefined && open.rows[part.number - 1] === undefined) {
    open.rows[part.number - 1] = row
    return
  }
  const rows: (Message | undefined)[] = new Array(part.total).fill(undefined)
  rows[part.number - 1] = row
  shown.push({ key, rows })
}

function viewSms({ rows }: Sms) {
  const there = rows.filter((row) => row !== undefined)
  const [first] = there
  const complete = there.length === rows.length
  return {
    seq: Math.min(...there.map(({ id }) => id)),
    channel: 'sms',
    messageIds: there.map((row) => row.message_id),
    sender: first?.origin ?? '',
    text: there.map(({ body }) => body).join(''),
    parts: there.length,
    totalParts: rows.length,
    ...timesOf(first as Message),
    // It is there when the last of its parts is.
    deliveredAt:
      complete && there.every((row) => row.delivered_at !== null) ? time(Math.max(...there.map((row) => row.delivered_at ?? 0))) : null,
    attempts: 1,
  }
}
