import { usePolled } from '../../app/fresh.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Problem } from '../../kit/problem.tsx'
import { isAccepted } from '../../timeline/webhooks.ts'
import * as webhookWords from '../../words/en-webhooks.ts'
import { type Attempt, type Endpoint, type Page, pathOf } from './endpoints.ts'

const SHOWN = 40
/** Every event waits for a moment. */
const LAG_FROM_MS = 1_000

/**
 * One bar for each of the last attempts, oldest first, and how long the oldest pending event has waited. A list has many endpoints, so each bar
 * polls every five seconds instead of reading after every event. The page reads the endpoint as often, and draws the wait again.
 */
export function SuccessBar({ endpoint: { endpointId, oldestPendingAt } }: { endpoint: Endpoint }) {
  const { account } = useFrame()
  const { value, problem, reload } = useResource<Page<Attempt>>(pathOf(account.accountId, endpointId, `/attempts?limit=${SHOWN}`))
  usePolled(reload)
  const lagMs = oldestPendingAt === undefined ? 0 : Date.now() - Date.parse(oldestPendingAt)
  return (
    <div class="success">
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value && <Bars items={value.items.toReversed()} />}
      {lagMs >= LAG_FROM_MS && <small class="lag">{webhookWords.lag(lagMs)}</small>}
    </div>
  )
}

function Bars({ items }: { items: Attempt[] }) {
  const accepted = items.filter(isAccepted).length
  return (
    <>
      <div class="success-bars" aria-hidden="true">
        {Array.from({ length: SHOWN - items.length }, () => (
          <i />
        ))}
        {items.map((attempt) => (
          <i class={isAccepted(attempt) ? 'is-good' : 'is-bad'} />
        ))}
      </div>
      <small>{items.length === 0 ? webhookWords.noAttempts : webhookWords.acceptedOf(accepted, items.length)}</small>
    </>
  )
}
