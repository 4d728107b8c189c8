import { useFresh } from '../../app/fresh.ts'
import { go, linkTo } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago, Empty, Loading, PageHead, Pill } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-webhooks.ts'
import { upTo } from '../../words/numbers.ts'
import { type Endpoint, healthOf, type Page, typesOf } from './endpoints.ts'
import { NewEndpoint } from './new-endpoint.tsx'
import { SuccessBar } from './success-bar.tsx'

const LIST = 'webhook-endpoints?limit=200'

/** All endpoints of the account, with what is wrong with them. */
export function EndpointList({ isAdding }: { isAdding: boolean }) {
  const { accountId, role } = useFrame().account
  const { value, problem, isLoading, reload } = useResource<Page<Endpoint>>(`/accounts/${accountId}/${LIST}`)
  useFresh(reload)
  const canChange = role !== 'viewer'
  const close = () => {
    reload()
    location.replace(linkTo({ accountId, path: ['webhooks'] }))
  }
  return (
    <>
      <PageHead title={pages.webhooks} note={say.note}>
        <AsCurl path={LIST} />
        {canChange && (
          <Button kind="primary" icon="plus" onClick={() => go({ accountId, path: ['webhooks', 'new'] })}>
            {say.add}
          </Button>
        )}
      </PageHead>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value === undefined && isLoading && <Loading />}
      {value?.items.length === 0 && (
        <div class="card">
          <Empty icon="webhook" title={say.none}>
            <p>{say.noneHint}</p>
          </Empty>
        </div>
      )}
      <ul class="endpoints">
        {value?.items.map((endpoint) => (
          <EndpointRow key={endpoint.endpointId} endpoint={endpoint} accountId={accountId} />
        ))}
      </ul>
      {isAdding && canChange && <NewEndpoint onClose={close} />}
    </>
  )
}

function EndpointRow({ endpoint, accountId }: { endpoint: Endpoint; accountId: number }) {
  const { endpointId, url, pending, failed, failingSince } = endpoint
  const { text, tone } = healthOf(endpoint)
  return (
    <li class="card endpoint-row">
      <div>
        <a href={linkTo({ accountId, path: ['webhooks', `${endpointId}`] })}>{url}</a>
        <small>{typesOf(endpoint)}</small>
      </div>
      <SuccessBar endpoint={endpoint} />
      <dl class="numbers">
        <div>
          <dt>{say.pending}</dt>
          <dd>{upTo(pending)}</dd>
        </div>
        <div class={failed > 0 ? 'is-bad' : ''}>
          <dt>{say.failed}</dt>
          <dd>{upTo(failed)}</dd>
        </div>
      </dl>
      <p class="endpoint-health">
        <Pill tone={tone}>{text}</Pill>
        {failingSince && (
          <small>
            {say.since} <Ago at={failingSince} />
          </small>
        )}
      </p>
    </li>
  )
}
