import { randomUUID } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../phones/ledger.ts'
import type { Identity } from '../state/identity.ts'
import { readSetting, type Store, writeSetting } from '../state/store.ts'
import { type Alarm, createAlarm } from '../timing.ts'
import { envelope, sign, type WebhookRow } from './envelope.ts'
import type { RbmEvent } from './events.ts'
import { createPoster, type Poster } from './poster.ts'

const CONCURRENCY = 64
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 600_000
const GIVE_UP_AFTER_MS = 7 * 86_400_000

export type Webhooks = {
  /** Owes an event to whoever listens. It is on disk with the rest of the turn. */
  owe: (event: RbmEvent) => void
  url: () => string | undefined
  /** Does the set-up challenge; says what was wrong, or undefined where the address is taken. */
  register: (url: string) => Promise<string | undefined>
  start: () => void
  stop: () => Promise<void>
}

type Sender = {
  store: Store
  ledger: Ledger
  identity: Identity
  faults: Faults
  poster: Poster
  alarm: Alarm
  url: string | undefined
  stopped: boolean
  /** Rows that are in memory, waiting or being posted. */
  taken: Set<number>
  ready: WebhookRow[]
  posting: number
  /** False once all that is due has been seen; the alarm tells when there is more. */
  more: boolean
}

/** Posts what is owed, oldest first, until it is answered with 200. Everything owed is a row, so that a restart goes on with it. */
export function createWebhooks(store: Store, ledger: Ledger, identity: Identity, faults: Faults): Webhooks {
  const alarm = createAlarm(() => {
    sender.more = true
    pump(sender)
  })
  const poster = createPoster(CONCURRENCY)
  const url = readSetting(store, 'webhook')
  const memory = { stopped: true, taken: new Set<number>(), ready: [], posting: 0, more: true }
  const sender: Sender = { store, ledger, identity, faults, poster, alarm, url, ...memory }
  return {
    owe: (event) => owe(sender, event),
    url: () => sender.url,
    register: (to) => register(sender, to),
    start: () => {
      sender.stopped = false
      alarm.at(Date.now())
    },
    stop: async () => {
      sender.stopped = true
      alarm.stop()
      await poster.close()
    },
  }
}

function owe({ store, ledger, faults, alarm }: Sender, event: RbmEvent): void {
  const { agentId, phone, messageId, name } = event
  if (faults.strikes('webhooks.lost')) {
    ledger.write({ kind: 'webhook-lost', channel: 'rcs', phone, messageId, origin: agentId, detail: { event: name } })
    return
  }
  const now = Date.now()
  const lateMs = faults.strikes('webhooks.late')?.ms ?? 0
  const reordered = faults.strikes('webhooks.reordered')
  const reorderedMs = reordered === undefined ? 0 : Math.round(faults.random() * reordered.withinMs)
  const dueAt = now + lateMs + reorderedMs
  const data = JSON.stringify(event.data)
  for (let copies = faults.strikes('webhooks.duplicated') ? 2 : 1; copies > 0; copies--) {
    store.run(
      'insert into webhooks (due_at, created_at, origin, phone, message_id, event, data) values (?, ?, ?, ?, ?, ?, ?)',
      dueAt,
      now,
      agentId,
      phone,
      messageId,
      name,
      data,
    )
  }
  alarm.at(dueAt)
}

function pump(sender: Sender): void {
  if (sender.stopped || sender.url === undefined) return
  while (sender.posting < CONCURRENCY) {
    const row = nextRow(sender)
    if (row === undefined) break
    sender.posting++
    void post(sender, row, sender.url).finally(() => {
      sender.posting--
      sender.taken.delete(row.id)
      pump(sender)
    })
  }
  if (sender.posting < CONCURRENCY) wakeForNext(sender)
}

/** Looks only at what is due, and no further than there is room for. */
function nextRow(sender: Sender): WebhookRow | undefined {
  const { store, taken, ready } = sender
  if (ready.length > 0 || !sender.more) return ready.shift()
  const limit = 4 * CONCURRENCY + taken.size
  const rows = store.all<WebhookRow>('select * from webhooks where due_at <= ? order by due_at, id limit ?', Date.now(), limit)
  sender.more = rows.length === limit
  sender.ready = rows.filter(({ id }) => !taken.has(id))
  for (const { id } of sender.ready) taken.add(id)
  return sender.ready.shift()
}

function wakeForNext({ store, alarm }: Sender): void {
  const next = store.get<{ due_at: number }>('select due_at from webhooks where due_at > ? order by due_at, id limit 1', Date.now())
  if (next !== undefined) alarm.at(next.due_at)
}

async function post(sender: Sender, row: WebhookRow, to: string): Promise<void> {
  const { store, faults, identity, poster } = sender
  // Only what is on disk is told: after a crash nobody may know of an event that never was.
  await store.committed()
  const key = faults.strikes('webhooks.wrongSignature') ? randomUUID() : identity.webhookToken
  const { status } = await poster.post(to, envelope(row), { 'x-goog-signature': sign(row.data, key) })
  if (sender.stopped) return
  if (status === 200) settle(sender, row, 'webhook-accepted')
  else if (Date.now() - row.created_at > GIVE_UP_AFTER_MS) settle(sender, row, 'webhook-dropped')
  else {
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(row.tries, 20), LONGEST_WAIT_MS) * (0.75 + Math.random() / 2)
    store.run('update webhooks set tries = tries + 1, due_at = ? where id = ?', Math.round(Date.now() + waitMs), row.id)
  }
}

function settle({ store, ledger }: Sender, row: WebhookRow, kind: 'webhook-accepted' | 'webhook-dropped'): void {
  store.run('delete from webhooks where id = ?', row.id)
  const { phone, message_id: messageId, origin, event, tries } = row
  ledger.write({ kind, channel: 'rcs', phone, messageId, origin, detail: { event, tries: tries + 1 } })
}

async function register(sender: Sender, to: string): Promise<string | undefined> {
  const { store, identity, poster, alarm } = sender
  const secret = randomUUID()
  const { status, text } = await poster.post(to, JSON.stringify({ clientToken: identity.webhookToken, secret }))
  if (status === 0) return `The webhook could not be reached: ${text}.`
  if (status !== 200) return `The webhook answered the challenge with ${status}, not with 200.`
  if (text !== secret) return 'The webhook answered the challenge with something else than the bare secret.'
  sender.url = to
  writeSetting(store, 'webhook', to)
  store.run('update webhooks set due_at = ? where tries > 0 and due_at > ?', Date.now(), Date.now())
  await store.committed()
  alarm.at(Date.now())
  return undefined
}
