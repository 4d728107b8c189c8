import { useState } from 'preact/hooks'
import { ApiProblem } from '../../app/api.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { quoted } from '../../kit/as-curl.tsx'
import { CodeBlock } from '../../kit/code-block.tsx'
import { Button, Copy } from '../../kit/controls.tsx'
import { Ago, Fact, Loading, Pill } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { useReplay } from '../../timeline/use-replay.ts'
import { isAccepted } from '../../timeline/webhooks.ts'
import * as say from '../../words/en-webhooks.ts'
import { type Attempt, pathOf } from './endpoints.ts'

type Props = { endpointId: number; attempt: Attempt; onChanged: () => void }

/** One attempt to post an event. It opens to show what was posted, and what the endpoint responded. */
export function AttemptRow({ endpointId, attempt, onChanged }: Props) {
  const { account } = useFrame()
  const [isOpen, setOpen] = useState(false)
  const { eventId, type, attempt: number, attemptedAt, status, error, durationMs, response, nextAttemptAt } = attempt
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Pill tone={isAccepted(attempt) ? 'good' : 'bad'}>{status ?? say.noStatus}</Pill>
          <code>{type ?? say.goneEvent}</code>
          <span class="soft">{say.attemptNumber(number, durationMs)}</span>
          {nextAttemptAt && (
            <span class="soft">
              {say.next} <Ago at={nextAttemptAt} />
            </span>
          )}
          <Ago at={attemptedAt} />
        </summary>
        <dl class="facts">
          {eventId && (
            <Fact name={say.event}>
              <Copy text={eventId} />
            </Fact>
          )}
          <Fact name={say.response}>{error ?? <pre>{response ?? say.emptyResponse}</pre>}</Fact>
        </dl>
        {isOpen && <Posted endpointId={endpointId} attemptId={attempt.attemptId} />}
        {eventId && account.role !== 'viewer' && <Resend endpointId={endpointId} eventId={eventId} onChanged={onChanged} />}
      </details>
    </li>
  )
}

type SentRequest = { url: string; headers: Record<string, string>; body: string }

/** What was posted, and how to check its signature. */
function Posted({ endpointId, attemptId }: { endpointId: number; attemptId: string }) {
  const { account } = useFrame()
  const path = pathOf(account.accountId, endpointId, `/attempts/${encodeURIComponent(attemptId)}`)
  const { value, problem, reload } = useResource<{ request?: SentRequest }>(path)
  if (problem) return <Problem problem={problem} onRetry={reload} />
  if (value === undefined) return <Loading />
  const { request } = value
  if (request === undefined) return <p class="posted soft">{say.goneRequest}</p>
  return (
    <div class="posted">
      <h3>{say.request}</h3>
      <CodeBlock text={headOf(request)} label={say.headers} />
      <CodeBlock text={pretty(request.body)} label={say.body} />
      {/* A viewer gets the body with masked numbers, which has another signature. */}
      {account.role !== 'viewer' && (
        <details>
          <summary>{say.checkSignature}</summary>
          <p class="hint">{say.signatureHint}</p>
          <CodeBlock text={signatureCommand(request)} label={say.checkSignature} />
        </details>
      )}
    </div>
  )
}

const headOf = ({ url, headers }: SentRequest) =>
  [`POST ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join('\n')

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}

/** Prints the signature of a request: what docs/webhooks-and-events.md computes, for the bytes that were posted. */
export function signatureCommand({ headers, body }: SentRequest): string {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const script = [
    'const { createHmac } = require("node:crypto")',
    'const key = Buffer.from(process.env.SECRET.replace(/^whsec_/, ""), "base64")',
    `console.log("v1," + createHmac("sha256", key).update(${JSON.stringify(signed)}).digest("base64"))`,
  ].join('\n')
  return `SECRET='whsec_…' node -e ${quoted(script)}`
}

function Resend({ endpointId, eventId, onChanged }: { endpointId: number; eventId: string; onChanged: () => void }) {
  const { state, replay } = useReplay(endpointId, eventId, onChanged)
  return (
    <div class="resend">
      <Button icon="rotate-ccw" isBusy={state === 'busy'} onClick={replay}>
        {say.resend}
      </Button>
      <span role="status">{state === 'done' && say.resent}</span>
      {state instanceof ApiProblem && <Problem problem={state} />}
    </div>
  )
}
