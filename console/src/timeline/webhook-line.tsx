import { useContext } from 'preact/hooks'
import { ApiProblem } from '../app/api.ts'
import { linkHere } from '../app/place.ts'
import { useFrame } from '../app/session.tsx'
import { Button, Copy } from '../kit/controls.tsx'
import { Icon } from '../kit/icon.tsx'
import { Problem } from '../kit/problem.tsx'
import * as timelineWords from '../words/en-timeline.ts'
import { exactTimeOf, shortDuration } from '../words/numbers.ts'
import { EndpointsContext } from './endpoints.ts'
import { useReplay } from './use-replay.ts'
import { type Attempt, isAccepted, type WebhookCall } from './webhooks.ts'

const say = timelineWords.webhook

/** The attempts to post one event to one endpoint. */
export function WebhookLine({ call, onReplay }: { call: WebhookCall; onReplay: () => void }) {
  const { type = say.unknownType, endpointId, eventId, attempts } = call
  const { account } = useFrame()
  const endpoint = useContext(EndpointsContext).get(endpointId) ?? say.endpoint(endpointId)
  const last = attempts.at(-1)
  return (
    <div class="tl-webhook">
      <div>
        <Icon name="webhook" size={14} class="tl-webhook-icon" />
        <code>{type}</code>
        {eventId !== undefined && <Copy text={eventId} isIcon />}
        <span class="tl-attempts">
          {attempts.map((attempt) => (
            <AttemptMark attempt={attempt} />
          ))}
        </span>
        <a href={linkHere(['webhooks', String(endpointId)])}>{endpoint}</a>
        {last && <span class="soft">{shortDuration(last.durationMs)}</span>}
        {eventId !== undefined && account.role !== 'viewer' && (
          <Replay eventId={eventId} endpointId={endpointId} label={say.replayOf(type, endpoint)} onReplay={onReplay} />
        )}
      </div>
      {last?.error !== undefined && <p class="soft">{last.error}</p>}
    </div>
  )
}

function AttemptMark({ attempt }: { attempt: Attempt }) {
  const { atMs, status, error } = attempt
  const when = say.attempt(attempt.attempt, exactTimeOf(atMs))
  return (
    <span class={`tl-attempt tone-${isAccepted(attempt) ? 'good' : 'bad'}`} title={error === undefined ? when : `${when}: ${error}`}>
      {status ?? say.noResponse}
    </span>
  )
}

function Replay({ eventId, endpointId, label, onReplay }: { eventId: string; endpointId: number; label: string; onReplay: () => void }) {
  const { state, replay } = useReplay(endpointId, eventId, onReplay)
  return (
    <>
      <span role="status" class="tl-replayed">
        {state === 'done' ? say.replayed : ''}
      </span>
      <Button icon="rotate-ccw" kind="quiet" isBusy={state === 'busy'} aria-label={label} onClick={replay}>
        {say.replay}
      </Button>
      {state instanceof ApiProblem && <Problem problem={state} onRetry={replay} />}
    </>
  )
}
