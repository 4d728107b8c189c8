import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { findAccount, listAccounts } from '../accounts/accounts.ts'
import type { Pool } from '../db/pool.ts'
import { wrongUsage } from '../errors.ts'
import { EVENT_KINDS, type EventKind } from '../events/kinds.ts'
import { eventBody, eventsOf, type PlacedEvent, readHead, readPages } from '../events/pages.ts'
import { findStart } from '../events/start.ts'
import { headersOf } from '../webhooks/attempt.ts'
import { type Attempted, createDestination, type Destination } from '../webhooks/destination.ts'
import { isSuccess } from '../webhooks/schedule.ts'
import { newSecret } from '../webhooks/sign.ts'
import { checkEndpointUrl } from '../webhooks/url.ts'
import { accountIdArgument, listArgument, readingCommand, textArgument, timeArgument, withDatabase } from './command.ts'
import { print, printError, quantity } from './terminal.ts'

const MAX_URL_CHARACTERS = 4_000
const BATCH_EVENTS = 500
const POLL_MS = 250

type Options = { account?: number; types?: EventKind[]; since?: Date; json?: boolean }
type Listening = Options & { accountId: number; secret: string; destination: Destination; stopping: AbortSignal }

export const listenCommand: Command = readingCommand(
  'listen',
  "forward an account's events to a URL of your own, for development, until Ctrl-C",
)
  .argument('<url>', 'the URL, such as http://localhost:3000/hook', textArgument(MAX_URL_CHARACTERS))
  .option('--account <account-id>', 'the account; needed if there are several', accountIdArgument)
  .option('--types <types>', 'only these types of events, separated by commas', listArgument(EVENT_KINDS, 1))
  .option('--since <time>', 'also the events that were recorded since this time', timeArgument)
  .action(async (given: string, options: Options) => {
    // As in a browser, http:// may be left out.
    const url = checkEndpointUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`, 'any')
    const stopping = new AbortController()
    await withDatabase((pool) => listen(pool, url, { ...options, stopping: stopping.signal }), { onSignal: () => stopping.abort() })
  })

async function listen(pool: Pool, url: string, options: Options & { stopping: AbortSignal }): Promise<void> {
  const accountId = await chooseAccount(pool, options.account)
  const secret = newSecret()
  const destination = createDestination(url, { connections: 1, hosts: 'any' })
  const start = options.since === undefined ? await readHead(pool, accountId) : (await findStart(pool, accountId, options.since)).position
  print(options.json ? JSON.stringify({ accountId, url, secret }) : startedInWords(accountId, url, secret))
  try {
    const { accepted, failed } = await forwardAfter(pool, start, { ...options, accountId, secret, destination })
    printError(`Stopped: ${quantity(accepted, 'event was', 'events were')} accepted, ${failed.toLocaleString('en')} failed.`)
  } finally {
    await destination.close()
  }
}

async function chooseAccount(pool: Pool, accountId: number | undefined): Promise<number> {
  if (accountId !== undefined) return (await findAccount(pool, accountId)).accountId
  const accounts = await listAccounts(pool)
  if (accounts.length === 1) return (accounts[0] as { accountId: number }).accountId
  throw wrongUsage(
    accounts.length === 0
      ? 'There is no account yet; see "herald account create --help".'
      : `There are ${accounts.length} accounts: name one with --account, as "herald account list" shows it.`,
  )
}

function startedInWords(accountId: number, url: string, secret: string): string[] {
  return [`The events of account ${accountId} go to ${url} until Ctrl-C.`, `Secret: ${secret}`]
}

/** Posts each event once, one after the other, in the order of the log. A failed post is shown, and the next event follows. */
async function forwardAfter(pool: Pool, start: number, listening: Listening): Promise<{ accepted: number; failed: number }> {
  const { accountId, types, stopping } = listening
  const totals = { accepted: 0, failed: 0 }
  for (let after = start; !stopping.aborted; ) {
    const pages = await readPages(pool, accountId, { after, last: Number.MAX_SAFE_INTEGER, limit: BATCH_EVENTS })
    for (const event of pages.flatMap((page) => eventsOf(page, types))) {
      const attempted = await forward(event, listening)
      if (attempted === undefined) return totals
      totals[isSuccess(attempted.status) ? 'accepted' : 'failed'] += 1
      show(event, attempted, listening)
    }
    after = pages.at(-1)?.lastPosition ?? after
    if (pages.length === 0) await sleep(POLL_MS, undefined, { signal: stopping }).catch(() => {})
  }
  return totals
}

/** Undefined if Ctrl-C aborted the post. */
async function forward(event: PlacedEvent, { secret, destination, stopping }: Listening): Promise<Attempted | undefined> {
  if (stopping.aborted) return undefined
  const body = eventBody(event)
  const headers = headersOf(event.eventId, new Date(), body, [secret])
  const attempted = await destination.post({ headers, body, signal: stopping })
  return stopping.aborted && attempted.status === undefined ? undefined : attempted
}

function show({ eventId, kind, occurredAt }: PlacedEvent, { status, error, durationMs }: Attempted, { json }: Listening): void {
  if (json) print(JSON.stringify({ eventId, type: kind, occurredAt, status: status ?? null, error: error ?? null, durationMs }))
  else print(`${occurredAt.toISOString()}  ${kind.padEnd(20)} ${eventId}  ${status ?? error}, ${durationMs} ms`)
}
