import { useState } from 'preact/hooks'
import { useFresh } from '../../app/fresh.ts'
import type { Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Ago, Facts, Loading, Pill } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-webhooks.ts'
import { EndpointActions } from './actions.tsx'
import { Attempts } from './attempts.tsx'
import { type Endpoint, healthOf, pathOf, typesOf } from './endpoints.ts'
import { SuccessBar } from './success-bar.tsx'

/** Events that are posted again arrive a little after a change. */
const FIRST_MS = 1_000

/** One endpoint: how it is, what was posted to it, and what can be done about it. */
export function EndpointPage({ endpointId, place }: { endpointId: number; place: Place }) {
  const { accountId, role } = useFrame().account
  const { value: endpoint, problem, isLoading, reload } = useResource<Endpoint>(pathOf(accountId, endpointId))
  const [changes, setChanges] = useState(0)
  const pace = { firstMs: FIRST_MS, state: `${changes}` }
  useFresh(reload, pace)
  const changed = () => {
    reload()
    setChanges((before) => before + 1)
  }
  const health = endpoint && healthOf(endpoint)
  return (
    <>
      <Crumbs page="webhooks" id={`${endpointId}`} />
      <div class="title-row">
        <h1 class="endpoint-url">{endpoint?.url ?? say.endpoint(endpointId)}</h1>
        {health && <Pill tone={health.tone}>{health.text}</Pill>}
      </div>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {endpoint === undefined && isLoading && <Loading />}
      {endpoint && (
        <>
          <EndpointFacts endpoint={endpoint} />
          {role !== 'viewer' && <EndpointActions endpoint={endpoint} onChanged={changed} />}
          <Attempts endpointId={endpointId} place={place} pace={pace} />
        </>
      )}
    </>
  )
}

/** How the endpoint is, what is posted to it, and how that is signed. */
function EndpointFacts({ endpoint }: { endpoint: Endpoint }) {
  const { disabledAt, disabledBecause, failingSince, pending, failed, secrets } = endpoint
  return (
    <>
      <p class="endpoint-outcome">
        {disabledBecause && <b>{say.because[disabledBecause]} </b>}
        {failingSince && !disabledBecause && (
          <b>
            {say.failingSince} <Ago at={failingSince} />.{' '}
          </b>
        )}
        {say.waiting(pending, failed)}
      </p>
      <section class="card endpoint-bar" aria-label={say.lastAttempts}>
        <SuccessBar endpoint={endpoint} />
        <Facts
          facts={[
            [say.types, typesOf(endpoint)],
            [say.disabledAt, disabledAt && <Ago at={disabledAt} />],
            [say.signedWith, <Secrets secrets={secrets} />],
          ]}
        />
      </section>
    </>
  )
}

const Secrets = ({ secrets }: Pick<Endpoint, 'secrets'>) => (
  <ul>
    {secrets.map(({ createdAt, endsAt }) => (
      <li>
        {say.secretMade} <Ago at={createdAt} />
        {endsAt && [`, ${say.secretExpires} `, <Ago at={endsAt} />]}
      </li>
    ))}
  </ul>
)
