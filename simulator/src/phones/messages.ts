import type { Store } from '../state/store.ts'

/** A row of what phones received. */
export type Message = {
  id: number
  channel: 'rcs' | 'rcs-event' | 'sms'
  phone: string
  message_id: string
  origin: string
  body: string
  part: string | null
  smpp: string | null
  attempts: number
  accepted_at: number
  expires_at: number | null
  delivered_at: number | null
  read_at: number | null
  revoked_at: number | null
  expired_at: number | null
  failed_at: number | null
}

/** Of an SMS in several parts: which of them it is. */
export type Part = { reference: number; total: number; number: number }

export function messageById(store: Store, id: number): Message | undefined {
  return store.get<Message>('select * from messages where id = ?', id)
}

export function rcsMessage(store: Store, agentId: string, messageId: string): Message | undefined {
  return store.get<Message>(`select * from messages where message_id = ? and origin = ? and channel <> 'sms'`, messageId, agentId)
}

export function countAttempt(store: Store, agentId: string, messageId: string): void {
  store.run(`update messages set attempts = attempts + 1 where message_id = ? and origin = ? and channel <> 'sms'`, messageId, agentId)
}

type NewMessage = Pick<Message, 'channel' | 'phone' | 'message_id' | 'origin' | 'body' | 'expires_at'> &
  Partial<Pick<Message, 'part' | 'smpp'>>

/** Its row, or undefined where an agent has used its id already: an insert that does nothing then spares a look for each message. */
export function addMessage(store: Store, message: NewMessage): number | undefined {
  const { changes, id } = store.run(
    `insert into messages (channel, phone, message_id, origin, body, expires_at, part, smpp, accepted_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
    message.channel,
    message.phone,
    message.message_id,
    message.origin,
    message.body,
    message.expires_at,
    message.part ?? null,
    message.smpp ?? null,
    Date.now(),
  )
  return changes === 0 ? undefined : id
}

const MARKS = {
  delivered_at: 'update messages set delivered_at = ? where id = ? and delivered_at is null',
  read_at: 'update messages set read_at = ? where id = ? and read_at is null',
  revoked_at: 'update messages set revoked_at = ? where id = ? and revoked_at is null',
  expired_at: 'update messages set expired_at = ? where id = ? and expired_at is null',
  failed_at: 'update messages set failed_at = ? where id = ? and failed_at is null',
} as const

/** Notes when something happened to a message, the first time only. */
export function mark(store: Store, id: number, what: keyof typeof MARKS): void {
  store.run(MARKS[what], Date.now(), id)
}

/** Nothing more happens to it by itself. */
export function isSettled(message: Message): boolean {
  return message.delivered_at !== null || message.revoked_at !== null || message.expired_at !== null || message.failed_at !== null
}
