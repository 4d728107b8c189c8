import { useEffect, useRef, useState } from 'preact/hooks'
import { useFresh } from '../../app/fresh.ts'
import { linkTo, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Copy } from '../../kit/controls.tsx'
import { Ago, Fact, Loading, Pill } from '../../kit/display.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { EndpointActions } from './actions.tsx'
import { Attempts } from './attempts.tsx'
import { type Endpoint, healthOf, pathOf } from './endpoints.ts'
import { SuccessBar } from './success-bar.tsx'

/** Events that are posted again arrive a little later. */
const LOOK_AGAIN_MS = 1_000

/** One endpoint: how it is, what was posted to it, and what can be done about it. */
export function EndpointPage({ endpointId, place }: { endpointId: number; place: Place }) {
  const { account } = useFrame()
  const { accountId } = account
  const endpoint = useResource<Endpoint>(pathOf(accountId, endpointId))
  useFresh(endpoint.reload)
  const [turn, setTurn] = useState(0)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  const look = () => {
    endpoint.reload()
    setTurn((last) => last + 1)
  }
  const changed = () => {
    look()
    clearTimeout(timer.current)
    timer.current = setTimeout(look, LOOK_AGAIN_MS)
  }
  return (
    <>
      <nav class="crumbs" aria-label={words.frame.crumbs}>
        <a href={linkTo({ accountId, path: ['webhooks'] })}>{words.pages.webhooks}</a> <Icon name="chevron-right" size={13} />{' '}
        <Copy text={String(endpointId)} />
      </nav>
      {endpoint.problem && <Problem problem={endpoint.problem} onRetry={endpoint.reload} />}
      {endpoint.value === undefined && endpoint.isLoading && <Loading />}
      {endpoint.value && (
        <>
          <EndpointHead endpoint={endpoint.value} />
          {account.role !== 'viewer' && <EndpointActions endpoint={endpoint.value} onChanged={changed} />}
          <Attempts endpointId={endpointId} place={place} turn={turn} />
        </>
      )}
    </>
  )
}

function EndpointHead({ endpoint }: { endpoint: Endpoint }) {
  const { account } = useFrame()
  const { endpointId, url, pending, oldestPendingAt, failed, failingSince, disabledBecause } = endpoint
  const health = healthOf(endpoint)
  return (
    <>
      <div class="title-row">
        <h1 class="endpoint-url">{url}</h1>
        <Pill tone={health.tone}>{health.text}</Pill>
      </div>
      <p class="endpoint-outcome">
        {disabledBecause && <b>{words.webhooks.because[disabledBecause]} </b>}
        {failingSince && !disabledBecause && (
          <b>
            {words.webhooks.failingSince} <Ago at={failingSince} />.{' '}
          </b>
        )}
        {words.webhooks.waiting(pending, failed)}
      </p>
      <section class="card endpoint-bar" aria-label={words.webhooks.lastAttempts}>
        <SuccessBar accountId={account.accountId} endpointId={endpointId} oldestPendingAt={oldestPendingAt} />
        <EndpointFacts endpoint={endpoint} />
      </section>
    </>
  )
}

/** What is posted, and how it is signed. */
function EndpointFacts({ endpoint: { types, createdAt, disabledAt, secrets } }: { endpoint: Endpoint }) {
  return (
    <dl class="facts">
      <Fact name={words.webhooks.types}>{types === null ? words.webhooks.allTypes : types.join(', ')}</Fact>
      <Fact name={words.webhooks.createdAt}>
        <Ago at={createdAt} />
      </Fact>
      {disabledAt && (
        <Fact name={words.webhooks.disabledAt}>
          <Ago at={disabledAt} />
        </Fact>
      )}
      <Fact name={words.webhooks.signedWith}>
        <ul>
          {secrets.map((secret) => (
            <li>
              {words.webhooks.secretMade} <Ago at={secret.createdAt} />
              {secret.endsAt && (
                <>
                  , {words.webhooks.secretExpires} <Ago at={secret.endsAt} />
                </>
              )}
            </li>
          ))}
        </ul>
      </Fact>
    </dl>
  )
}
