import { randomUUID } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../phones/ledger.ts'
import type { Identity } from '../state/identity.ts'
import { createOwed, type Handed, type Owed } from '../state/owed.ts'
import type { Store } from '../state/store.ts'
import { waitMsAfter } from '../timing.ts'
import { envelope, sign, type WebhookRow } from './envelope.ts'
import type { RbmEvent } from './events.ts'
import { type Answer, createPoster, type Poster } from './poster.ts'

const CONCURRENCY = 64
const LONGEST_WAIT_MS = 600_000
const GIVE_UP_AFTER_MS = 7 * 86_400_000

export type Webhooks = {
  /** Owes an event to the webhook. It is in the log with the rest of the turn. */
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
  /** Where posts go. */
  poster: Poster | undefined
  /** That one, and those that still have something under way. */
  open: Set<Poster>
  posting: number
  stopped: boolean
}

/** Posts what is owed, oldest first, until it is answered with 200. Everything owed is in the log, so that a restart goes on with it. */
export function createWebhooks(store: Store, ledger: Ledger, identity: Identity, faults: Faults): Webhooks {
  const owed = createOwed<WebhookRow>(store, 'webhooks', () => pump(sender))
  const url = () => store.state.settings.get('webhook')
  const sender: Sender = { store, ledger, identity, faults, owed, poster: undefined, open: new Set(), posting: 0, stopped: true }
  const address = url()
  if (address !== undefined) aim(sender, address)
  return {
    owe: (event) => owe(sender, event),
    url,
    register: (to) => register(sender, to),
    start: () => {
      sender.stopped = false
      owed.start()
    },
    stop: async () => {
      sender.stopped = true
      owed.stop()
      await Promise.all([...sender.open].map((poster) => poster.destroy()))
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

function add({ owed }: Sender, { agentId: origin, phone, messageId, name, data }: RbmEvent, waitMs: number): void {
  const createdAt = Date.now()
  owed.add({ createdAt, origin, phone, messageId, event: name, data: JSON.stringify(data) }, createdAt + waitMs)
}

/** What waits stays in the list, so that the deadline of each post begins when it is posted, and a new address is for all that wait. */
function pump(sender: Sender): void {
  const { poster, owed, faults, identity } = sender
  while (poster !== undefined && !sender.stopped && sender.posting < CONCURRENCY) {
    const handed = owed.next()
    if (handed === undefined) return
    sender.posting++
    const key = faults.strikes('webhooks.wrongSignature') ? randomUUID() : identity.webhookToken
    poster.post(envelope(handed.id, handed.row), sign(handed.row.data, key), ({ status }) => {
      sender.posting--
      if (sender.stopped) return
      hear(sender, handed, status)
      pump(sender)
    })
  }
}

function hear(sender: Sender, handed: Handed<WebhookRow>, status: number): void {
  if (status === 200) settle(sender, handed, 'webhook-accepted')
  else if (Date.now() - handed.row.createdAt > GIVE_UP_AFTER_MS) settle(sender, handed, 'webhook-dropped')
  else {
    const waitMs = waitMsAfter(handed.tries, LONGEST_WAIT_MS) * (0.75 + Math.random() / 2)
    sender.owed.again(handed.id, Math.round(Date.now() + waitMs))
  }
}

type End = 'webhook-accepted' | 'webhook-dropped'

function settle({ ledger, owed }: Sender, { id, tries, row }: Handed<WebhookRow>, kind: End): void {
  owed.paid(id)
  const { phone, messageId, origin, event } = row
  ledger.write({ kind, channel: 'rcs', phone, messageId, origin, detail: { event, tries: tries + 1 } })
}

async function register(sender: Sender, to: string): Promise<string | undefined> {
  const { store, identity, owed } = sender
  const secret = randomUUID()
  const answer = await challenge(sender, to, JSON.stringify({ clientToken: identity.webhookToken, secret }))
  const problem = challengeProblem(answer, secret)
  if (problem !== undefined || sender.stopped) return problem
  aim(sender, to)
  store.append({ is: 'setting', name: 'webhook', value: to })
  owed.hurry()
  await store.committed()
  return undefined
}

/** Posts go to this address from now on. */
function aim(sender: Sender, url: string): void {
  if (sender.poster !== undefined) close(sender, sender.poster)
  sender.poster = createPoster(url)
  sender.open.add(sender.poster)
}

function close({ open }: Sender, poster: Poster): void {
  void poster.close().then(() => open.delete(poster))
}

/** It does not wait behind posts that the same address leaves without a response. */
function challenge(sender: Sender, url: string, body: string): Promise<Answer> {
  const poster = createPoster(url)
  sender.open.add(poster)
  return new Promise((resolve) => {
    poster.post(body, undefined, (answer) => {
      close(sender, poster)
      resolve(answer)
    })
  })
}

function challengeProblem({ status, text }: Answer, secret: string): string | undefined {
  if (status === 0) return `The webhook could not be reached: ${text}.`
  if (status !== 200) return `The webhook answered the challenge with ${status}, not with 200.`
  return text === secret ? undefined : 'The webhook answered the challenge with something else than the bare secret.'
}
