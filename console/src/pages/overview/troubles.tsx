import type { LiveEvent } from '../../app/live.ts'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Ago, Pill } from '../../kit/display.tsx'
import { sentence, shortOf } from '../../timeline/outcome.ts'
import { words } from '../../words/words.ts'
import { type Endpoint, healthOf, type Page } from '../webhooks/endpoints.ts'
import { Part } from './part.tsx'
import { useRefreshed } from './refreshed.ts'

type Failed = { campaignId?: string; failure?: { reason: string } }

const LOOKED_AT = 200

/** What needs a look: why messages failed, and endpoints that fail. */
export function Troubles() {
  return (
    <>
      <Failures />
      <Endpoints />
    </>
  )
}

/** The list is long, so it is read only after a message has failed. */
const AFTER_FAILURES = {
  everyMs: 5_000,
  isAbout: (event: LiveEvent) => event.name === 'busy' || (event.name === 'event' && event.data.type === 'message.failed'),
}

function Failures() {
  const { account } = useFrame()
  const { accountId } = account
  const failed = useRefreshed<Page<Failed>>(`/accounts/${accountId}/messages?status=FAILED&limit=${LOOKED_AT}`, AFTER_FAILURES)
  return (
    <Part title={words.overview.failures} resource={failed}>
      {({ items }) => (
        <>
          {items.length === 0 && <p class="soft">{words.overview.noFailures}</p>}
          <Reasons title={words.overview.singleFailures} failed={items.filter(({ campaignId }) => campaignId === undefined)} />
          <Reasons title={words.overview.campaignFailures} failed={items.filter(({ campaignId }) => campaignId !== undefined)} />
          {items.length > 0 && <p class="hint">{words.overview.ofLast(items.length)}</p>}
        </>
      )}
    </Part>
  )
}

/** The other numbers of the page are those of single messages, so the messages of campaigns are apart. */
function Reasons({ title, failed }: { title: string; failed: Failed[] }) {
  const { accountId } = useFrame().account
  if (failed.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <ul class="lines">
        {reasonsOf(failed).map(([reason, count]) => (
          <li>
            <a href={linkTo({ accountId, path: ['messages'], query: { status: 'FAILED' } })}>
              {sentence(shortOf(words.timeline.failures, reason))}
            </a>
            <b>{words.number(count)}</b>
          </li>
        ))}
      </ul>
    </>
  )
}

/** How many messages failed for each reason, the most frequent first. */
function reasonsOf(failed: Failed[]): [string, number][] {
  const byReason = Map.groupBy(failed, ({ failure }) => failure?.reason ?? '')
  return [...byReason].map(([reason, { length }]): [string, number] => [reason, length]).sort(([, a], [, b]) => b - a)
}

/** No event says that an endpoint fails. */
const POLLED = { everyMs: 5_000, pollMs: 10_000, isAbout: () => false }

function Endpoints() {
  const { account } = useFrame()
  const { accountId } = account
  const endpoints = useRefreshed<Page<Endpoint>>(`/accounts/${accountId}/webhook-endpoints?limit=200`, POLLED)
  return (
    <Part title={words.pages.webhooks} resource={endpoints}>
      {({ items }) => (
        <>
          {items.length === 0 && (
            <p class="soft">
              {words.webhooks.none}.{' '}
              {account.role !== 'viewer' && <a href={linkTo({ accountId, path: ['webhooks', 'new'] })}>{words.webhooks.add}</a>}
            </p>
          )}
          <ul class="lines">
            {items.map((endpoint) => (
              <li>
                <a href={linkTo({ accountId, path: ['webhooks', String(endpoint.endpointId)] })}>{endpoint.url}</a>
                <span>
                  <Pill tone={healthOf(endpoint).tone}>{healthOf(endpoint).text}</Pill>{' '}
                  {endpoint.failingSince && <Ago at={endpoint.failingSince} />}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Part>
  )
}
