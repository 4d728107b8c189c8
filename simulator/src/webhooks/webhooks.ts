import { randomUUID } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../phones/ledger.ts'
import type { Identity } from '../state/identity.ts'
import { type Claimed, createOwed, type Owed } from '../state/owed.ts'
import type { Store } from '../state/store.ts'
import { waitMsAfter } from '../timing.ts'
import { envelope, sign, type WebhookRow } from './envelope.ts'
import type { RbmEvent } from './events.ts'
import { createPoster, type Poster, type PostResult } from './poster.ts'

const CONCURRENCY = 64
const LONGEST_WAIT_MS = 600_000
const DROP_AFTER_MS = 7 * 86_400_000

export type Webhooks = {
  /** Adds an event to post. The log has it together with the rest of the turn. */
  owe: (event: RbmEvent) => void
  url: () => string | undefined
  /** Sends the set-up challenge. Returns the problem, or undefined if the address is registered. */
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
  /** Posts to the registered address. */
  poster: Poster | undefined
  /** The poster of the registered address, and all posters with posts in progress. */
  open: Set<Poster>
  posting: number
  stopped: boolean
}

/** Posts owed events, oldest first, and repeats each until the response is 200. All are in the log, so a restart continues with them. */
export function createWebhooks(store: Store, ledger: Ledger, identity: Identity, faults: Faults): Webhooks {
  const owed = createOwed<WebhookRow>(store, 'webhooks', () => pump(sender))
  const url = () => store.state.settings.get('webhook')
  const sender: Sender = { store, ledger, identity, faults, owed, poster: undefined, open: new Set(), posting: 0, stopped: true }
  const address = url()
  if (address !== undefined) useAddress(sender, address)
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

/** Waiting events stay in the list, so that the deadline of a post starts with the post, and a new address applies to all of them. */
function pump(sender: Sender): void {
  const { poster, owed, faults, identity } = sender
  while (poster !== undefined && !sender.stopped && sender.posting < CONCURRENCY) {
    const claimed = owed.next()
    if (claimed === undefined) return
    sender.posting++
    const key = faults.strikes('webhooks.wrongSignature') ? randomUUID() : identity.webhookToken
    poster.post(envelope(claimed.id, claimed.row), sign(claimed.row.data, key), ({ status }) => {
      sender.posting--
      if (sender.stopped) return
      handleStatus(sender, claimed, status)
      pump(sender)
    })
  }
}

function handleStatus(sender: Sender, claimed: Claimed<WebhookRow>, status: number): void {
  if (status === 200) settle(sender, claimed, 'webhook-accepted')
  else if (Date.now() - claimed.row.createdAt > DROP_AFTER_MS) settle(sender, claimed, 'webhook-dropped')
  else {
    const waitMs = waitMsAfter(claimed.tries, LONGEST_WAIT_MS) * (0.75 + Math.random() / 2)
    sender.owed.again(claimed.id, Math.round(Date.now() + waitMs))
  }
}

type End = 'webhook-accepted' | 'webhook-dropped'

function settle({ ledger, owed }: Sender, { id, tries, row }: Claimed<WebhookRow>, kind: End): void {
  owed.paid(id)
  const { phone, messageId, origin, event } = row
  ledger.write({ kind, channel: 'rcs', phone, messageId, origin, detail: { event, tries: tries + 1 } })
}

async function register(sender: Sender, to: string): Promise<string | undefined> {
  const { store, identity, owed } = sender
  const secret = randomUUID()
  const result = await challenge(sender, to, JSON.stringify({ clientToken: identity.webhookToken, secret }))
  const problem = challengeProblem(result, secret)
  if (problem !== undefined || sender.stopped) return problem
  useAddress(sender, to)
  store.append({ is: 'setting', name: 'webhook', value: to })
  owed.hurry()
  await store.committed()
  return undefined
}

/** Sends further posts to this address. */
function useAddress(sender: Sender, url: string): void {
  if (sender.poster !== undefined) close(sender, sender.poster)
  sender.poster = createPoster(url)
  sender.open.add(sender.poster)
}

function close({ open }: Sender, poster: Poster): void {
  void poster.close().then(() => open.delete(poster))
}

/** Uses its own connection, so it does not wait for posts without a response. */
function challenge(sender: Sender, url: string, body: string): Promise<PostResult> {
  const poster = createPoster(url)
  sender.open.add(poster)
  return new Promise((resolve) => {
    poster.post(body, undefined, (result) => {
      close(sender, poster)
      resolve(result)
    })
  })
}

function challengeProblem({ status, text }: PostResult, secret: string): string | undefined {
  if (status === 0) return `The webhook could not be reached: ${text}.`
  if (status !== 200) return `The webhook responded to the challenge with ${status} instead of 200.`
  return text === secret ? undefined : 'The webhook did not respond to the challenge with the bare secret.'
}
