import { type Pace, useFresh } from '../../app/fresh.ts'
import { filter, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl, ownCursor } from '../../kit/as-curl.tsx'
import { Button, Choice, Copy } from '../../kit/controls.tsx'
import { Empty, Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as kitWords from '../../words/en-kit.ts'
import * as say from '../../words/en-webhooks.ts'
import { AttemptRow } from './attempt.tsx'
import { type Attempt, type Page, pathOf } from './endpoints.ts'

const PAGE_LENGTH = 50

/** What was posted, newest first. */
export function Attempts({ endpointId, place, pace }: { endpointId: number; place: Place; pace: Pace }) {
  const { account } = useFrame()
  const { accountId } = account
  const failed = place.query.get('failed') === 'true'
  const cursor = place.query.get('cursor')
  const eventId = place.query.get('eventId')
  const pathWith = (cursor: string | null) =>
    `/attempts?${new URLSearchParams({
      limit: `${PAGE_LENGTH}`,
      ...(failed && { failed: 'true' }),
      ...(eventId && { eventId }),
      ...(cursor && { cursor }),
    })}`
  const { value, problem, isLoading, reload } = useResource<Page<Attempt>>(pathOf(accountId, endpointId, pathWith(cursor)))
  useFresh(reload, pace)
  const items = value?.items ?? []
  const next = value?.nextCursor
  return (
    <section class="card attempts" aria-label={say.attempts}>
      <header>
        <h2>{say.attempts}</h2>
        <Choice
          label={say.which}
          value={failed ? 'failed' : 'all'}
          onChange={(value) => filter(place, { failed: value === 'failed' ? 'true' : undefined, cursor: undefined })}
          options={[
            { value: 'all', text: say.all },
            { value: 'failed', text: say.onlyFailed },
          ]}
        />
        <AsCurl path={`webhook-endpoints/${endpointId}${pathWith(ownCursor(account, cursor))}`} />
      </header>
      {eventId && (
        <p class="only-event">
          {say.onlyEvent} <Copy text={eventId} />
          <Button icon="x" kind="quiet" onClick={() => filter(place, { eventId: undefined, cursor: undefined })}>
            {say.allAttempts}
          </Button>
        </p>
      )}
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value === undefined && isLoading && <Loading />}
      {value && items.length === 0 && !next && <Empty icon="send" title={cursor ? say.noOlder : emptyTitle(failed, eventId)} />}
      <ul>
        {items.map((attempt) => (
          <AttemptRow key={attempt.attemptId} endpointId={endpointId} attempt={attempt} onChanged={reload} />
        ))}
      </ul>
      {(next || cursor) && (
        <footer>
          {next && items.length < PAGE_LENGTH && <span class="note">{say.partly}</span>}
          {cursor && <Button onClick={() => filter(place, { cursor: undefined })}>{kitWords.newest}</Button>}
          {next && <Button onClick={() => filter(place, { cursor: next })}>{kitWords.older}</Button>}
        </footer>
      )}
    </section>
  )
}

/** Why the list is empty. */
function emptyTitle(failed: boolean, eventId: string | null): string {
  if (failed) return say.noFailed
  return eventId === null ? say.noAttempts : say.noneOfEvent
}
