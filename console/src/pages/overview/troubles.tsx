import type { LiveEvent } from '../../app/live.ts'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Ago, Pill } from '../../kit/display.tsx'
import { sentence, shortOf } from '../../timeline/outcome.ts'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-overview.ts'
import * as timelineWords from '../../words/en-timeline.ts'
import * as webhookWords from '../../words/en-webhooks.ts'
import { number } from '../../words/numbers.ts'
import { type Endpoint, healthOf, type Page } from '../webhooks/endpoints.ts'
import { Links } from './links.tsx'
import { Part } from './part.tsx'
import { useRefreshed } from './refreshed.ts'

type Failed = { failure?: { reason: string } }

/** The list is long, so it is read only after a message has failed. */
const AFTER_FAILURES = {
  everyMs: 5_000,
  isAbout: (event: LiveEvent) => event.name === 'busy' || (event.name === 'event' && event.data.type === 'message.failed'),
}

/** How many messages failed for each reason, the most frequent first. Unlike the other numbers of the page, these have the messages of campaigns. */
export function Failures() {
  const { accountId } = useFrame().account
  const failed = useRefreshed<Page<Failed>>(`/accounts/${accountId}/messages?status=FAILED&limit=200`, AFTER_FAILURES)
  const href = linkTo({ accountId, path: ['messages'], query: { status: 'FAILED' } })
  return (
    <Part title={say.failures} resource={failed}>
      {({ items }) => {
        const byReason = [...Map.groupBy(items, ({ failure }) => failure?.reason ?? '')].sort(([, a], [, b]) => b.length - a.length)
        return (
          <>
            <Links
              none={say.noFailures}
              links={byReason.map(([reason, { length }]) => ({
                href,
                text: sentence(shortOf(timelineWords.failures, reason)),
                beside: <b>{number.format(length)}</b>,
              }))}
            />
            {items.length > 0 && <p class="hint">{say.ofLast(items.length)}</p>}
          </>
        )
      }}
    </Part>
  )
}

/** No event says that an endpoint fails. */
const POLLED = { everyMs: 5_000, pollMs: 10_000, isAbout: () => false }

export function Endpoints() {
  const { accountId, role } = useFrame().account
  const endpoints = useRefreshed<Page<Endpoint>>(`/accounts/${accountId}/webhook-endpoints?limit=200`, POLLED)
  const none = role === 'viewer' ? webhookWords.none : <a href={linkTo({ accountId, path: ['webhooks', 'new'] })}>{webhookWords.add}</a>
  return (
    <Part title={pages.webhooks} resource={endpoints}>
      {({ items }) => (
        <Links
          none={none}
          links={items.map((endpoint) => ({
            href: linkTo({ accountId, path: ['webhooks', String(endpoint.endpointId)] }),
            text: endpoint.url,
            beside: (
              <>
                <Pill tone={healthOf(endpoint).tone}>{healthOf(endpoint).text}</Pill>{' '}
                {endpoint.failingSince && <Ago at={endpoint.failingSince} />}
              </>
            ),
          }))}
        />
      )}
    </Part>
  )
}
