import { useFresh } from '../../app/fresh.ts'
import { go, linkTo } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago, Empty, Loading, PageHead, Pill } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { type Endpoint, healthOf, type Page } from './endpoints.ts'
import { NewEndpoint } from './new-endpoint.tsx'
import { SuccessBar } from './success-bar.tsx'

const LIST = 'webhook-endpoints?limit=200'

/** All endpoints of the account, with what is wrong with them. */
export function EndpointList({ isAdding }: { isAdding: boolean }) {
  const { account } = useFrame()
  const endpoints = useResource<Page<Endpoint>>(`/accounts/${account.accountId}/${LIST}`)
  useFresh(endpoints.reload)
  const canChange = account.role !== 'viewer'
  const close = () => {
    endpoints.reload()
    location.replace(linkTo({ accountId: account.accountId, path: ['webhooks'] }))
  }
  return (
    <>
      <PageHead title={words.pages.webhooks} note={words.webhooks.note}>
        <AsCurl path={LIST} />
        {canChange && (
          <Button kind="primary" icon="plus" onClick={() => go({ accountId: account.accountId, path: ['webhooks', 'new'] })}>
            {words.webhooks.add}
          </Button>
        )}
      </PageHead>
      {endpoints.problem && <Problem problem={endpoints.problem} onRetry={endpoints.reload} />}
      {endpoints.value === undefined && endpoints.isLoading && <Loading />}
      {endpoints.value?.items.length === 0 && (
        <div class="card">
          <Empty icon="webhook" title={words.webhooks.none}>
            <p>{words.webhooks.noneHint}</p>
          </Empty>
        </div>
      )}
      <ul class="endpoints">
        {endpoints.value?.items.map((endpoint) => (
          <EndpointRow key={endpoint.endpointId} endpoint={endpoint} accountId={account.accountId} />
        ))}
      </ul>
      {isAdding && canChange && <NewEndpoint onClose={close} />}
    </>
  )
}

function EndpointRow({ endpoint, accountId }: { endpoint: Endpoint; accountId: number }) {
  const { endpointId, url, types, pending, oldestPendingAt, failed, failingSince } = endpoint
  const health = healthOf(endpoint)
  return (
    <li class="card endpoint-row">
      <div>
        <a href={linkTo({ accountId, path: ['webhooks', String(endpointId)] })}>{url}</a>
        <small>{types === null ? words.webhooks.allTypes : types.join(', ')}</small>
      </div>
      <SuccessBar accountId={accountId} endpointId={endpointId} oldestPendingAt={oldestPendingAt} />
      <dl class="numbers">
        <div>
          <dt>{words.webhooks.pending}</dt>
          <dd>{words.upTo(pending)}</dd>
        </div>
        <div class={failed > 0 ? 'is-bad' : ''}>
          <dt>{words.webhooks.failed}</dt>
          <dd>{words.upTo(failed)}</dd>
        </div>
      </dl>
      <p class="endpoint-health">
        <Pill tone={health.tone}>{health.text}</Pill>
        {failingSince && (
          <small>
            {words.webhooks.since} <Ago at={failingSince} />
          </small>
        )}
      </p>
    </li>
  )
}
