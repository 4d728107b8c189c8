import { useEffect } from 'preact/hooks'
import { useFresh } from '../../app/fresh.ts'
import { filter, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl, ownCursor } from '../../kit/as-curl.tsx'
import { Button, Choice, Copy } from '../../kit/controls.tsx'
import { Empty, Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { AttemptRow } from './attempt.tsx'
import { type Attempt, type Page, pathOf } from './endpoints.ts'

const PAGE_LENGTH = 50

/** What was posted, newest first. `turn` changes after an action that may post more events. */
export function Attempts({ endpointId, place, turn }: { endpointId: number; place: Place; turn: number }) {
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
  const attempts = useResource<Page<Attempt>>(pathOf(accountId, endpointId, pathWith(cursor)))
  useFresh(attempts.reload)
  useEffect(() => {
    if (turn > 0) attempts.reload()
  }, [turn, attempts.reload])
  const items = attempts.value?.items ?? []
  const next = attempts.value?.nextCursor
  return (
    <section class="card attempts" aria-label={words.webhooks.attempts}>
      <header>
        <h2>{words.webhooks.attempts}</h2>
        <Choice
          label={words.webhooks.which}
          value={failed ? 'failed' : 'all'}
          onChange={(value) => filter(place, { failed: value === 'failed' ? 'true' : undefined, cursor: undefined })}
          options={[
            { value: 'all', text: words.webhooks.all },
            { value: 'failed', text: words.webhooks.onlyFailed },
          ]}
        />
        <AsCurl path={`webhook-endpoints/${endpointId}${pathWith(ownCursor(account, cursor))}`} />
      </header>
      {eventId && (
        <p class="only-event">
          {words.webhooks.onlyEvent} <Copy text={eventId} />
          <Button icon="x" kind="quiet" onClick={() => filter(place, { eventId: undefined, cursor: undefined })}>
            {words.webhooks.allAttempts}
          </Button>
        </p>
      )}
      {attempts.problem && <Problem problem={attempts.problem} onRetry={attempts.reload} />}
      {attempts.value === undefined && attempts.isLoading && <Loading />}
      {attempts.value && items.length === 0 && !next && <Empty icon="send" title={emptyTitle({ failed, cursor, eventId })} />}
      <ul>
        {items.map((attempt) => (
          <AttemptRow key={attempt.attemptId} endpointId={endpointId} attempt={attempt} onChanged={attempts.reload} />
        ))}
      </ul>
      {(next || cursor) && (
        <footer>
          {next && items.length < PAGE_LENGTH && <span class="note">{words.webhooks.partly}</span>}
          {cursor && <Button onClick={() => filter(place, { cursor: undefined })}>{words.kit.newest}</Button>}
          {next && <Button onClick={() => filter(place, { cursor: next })}>{words.kit.older}</Button>}
        </footer>
      )}
    </section>
  )
}

type Shown = { failed: boolean; cursor: string | null; eventId: string | null }

/** Why the list is empty. */
function emptyTitle({ failed, cursor, eventId }: Shown): string {
  if (cursor !== null) return words.webhooks.noOlder
  if (eventId !== null && !failed) return words.webhooks.noneOfEvent
  return failed ? words.webhooks.noFailed : words.webhooks.noAttempts
}
