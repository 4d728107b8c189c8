import { randomUUID } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../phones/ledger.ts'
import type { Identity } from '../state/identity.ts'
import { createOwed, type Owed } from '../state/owed.ts'
import { readSetting, type Store, writeSetting } from '../state/store.ts'
import { waitMsAfter } from '../timing.ts'
import type { WebhookRow } from './envelope.ts'
import type { RbmEvent } from './events.ts'
import type { Answer, Signed } from './poster.ts'
import { type PosterThread, startPosterThread } from './poster-thread.ts'

// Enough that the thread never waits for more while results are on their way to us; it has 64 of them under way.
const MOST_HANDED_OVER = 256
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
  owed: Owed<WebhookRow>
  thread: PosterThread
  /** What the thread has, by id. */
  handedOver: Map<number, WebhookRow>
  url: string | undefined
  stopped: boolean
}

/** Posts what is owed, oldest first, until it is answered with 200. Everything owed is a row, so that a restart goes on with it. */
export function createWebhooks(store: Store, ledger: Ledger, identity: Identity, faults: Faults): Webhooks {
  const owed = createOwed<WebhookRow>(store, 'webhooks', () => pump(sender))
  const url = readSetting(store, 'webhook')
  const thread = startPosterThread((rows) => {
    for (const { id, status } of rows) hear(sender, id, status)
    pump(sender)
  })
  if (url !== undefined) thread.aim(url)
  const sender: Sender = { store, ledger, identity, faults, owed, thread, handedOver: new Map(), url, stopped: true }
  return {
    owe: (event) => owe(sender, event),
    url: () => sender.url,
    register: (to) => register(sender, to),
    start: () => {
      sender.stopped = false
      owed.start()
    },
    stop: async () => {
      sender.stopped = true
      owed.stop()
      await thread.stop()
    },
  }
}

function owe(sender: Sender, event: RbmEvent): void {
  const { ledger, faults } = sender
  const { agentId, phone, messageId, name } = event
  if (faults.strikes('webhooks.lost')) {
    ledger.write({ kind: 'webhook-lost', channel: 'rcs', phone, messageId, origin: agentId, detail: { event: name } })
    return
  }
  const lateMs = faults.strikes('webhooks.late')?.ms ?? 0
  const reordered = faults.strikes('webhooks.reordered')
  const reorderedMs = reordered === undefined ? 0 : Math.round(faults.random() * reordered.withinMs)
  for (let copies = faults.strikes('webhooks.duplicated') ? 2 : 1; copies > 0; copies--) add(sender, event, lateMs + reorderedMs)
}

function add(sender: Sender, { agentId, phone, messageId, name, data }: RbmEvent, waitMs: number): void {
  const now = Date.now()
  const row = { tries: 0, created_at: now, origin: agentId, phone, message_id: messageId, event: name, data: JSON.stringify(data) }
  const { id } = sender.store.run(
    'insert into webhooks (due_at, created_at, origin, phone, message_id, event, data) values (?, ?, ?, ?, ?, ?, ?)',
    now + waitMs,
    now,
    agentId,
    phone,
    messageId,
    name,
    row.data,
  )
  sender.owed.add({ id, ...row }, now + waitMs)
}

function pump({ stopped, url, owed, handedOver, faults, identity, thread }: Sender): void {
  if (stopped || url === undefined) return
  const rows: Signed[] = []
  while (handedOver.size < MOST_HANDED_OVER) {
    const row = owed.next()
    if (row === undefined) break
    handedOver.set(row.id, row)
    const { id, created_at, origin, event, data } = row
    const key = faults.strikes('webhooks.wrongSignature') ? randomUUID() : identity.webhookToken
    rows.push({ row: { id, created_at, origin, event, data }, key })
  }
  if (rows.length > 0) thread.post(rows)
}

function hear(sender: Sender, id: number, status: number): void {
  const { owed, handedOver } = sender
  const row = handedOver.get(id)
  if (row === undefined) return
  handedOver.delete(id)
  if (status === 200) settle(sender, row, 'webhook-accepted')
  else if (Date.now() - row.created_at > GIVE_UP_AFTER_MS) settle(sender, row, 'webhook-dropped')
  else {
    const waitMs = waitMsAfter(row.tries, LONGEST_WAIT_MS) * (0.75 + Math.random() / 2)
    owed.again(id, Math.round(Date.now() + waitMs))
  }
}

function settle({ ledger, owed }: Sender, row: WebhookRow, kind: 'webhook-accepted' | 'webhook-dropped'): void {
  owed.paid(row.id)
  const { phone, message_id: messageId, origin, event, tries } = row
  ledger.write({ kind, channel: 'rcs', phone, messageId, origin, detail: { event, tries: tries + 1 } })
}

async function register(sender: Sender, to: string): Promise<string | undefined> {
  const { store, identity, owed, thread } = sender
  const secret = randomUUID()
  const answer = await thread.challenge(to, JSON.stringify({ clientToken: identity.webhookToken, secret }))
  const problem = challengeProblem(answer, secret)
  if (problem !== undefined || sender.stopped) return problem
  thread.aim(to)
  sender.url = to
  writeSetting(store, 'webhook', to)
  owed.hurry()
  await store.committed()
  return undefined
}

function challengeProblem({ status, text }: Answer, secret: string): string | undefined {
  if (status === 0) return `The webhook could not be reached: ${text}.`
  if (status !== 200) return `The webhook answered the challenge with ${status}, not with 200.`
  return text === secret ? undefined : 'The webhook answered the challenge with something else than the bare secret.'
}
