import { usePolled } from '../../app/fresh.ts'
import { useResource } from '../../app/resource.ts'
import { Problem } from '../../kit/problem.tsx'
import { isAccepted } from '../../timeline/webhooks.ts'
import { words } from '../../words/words.ts'
import { type Attempt, type Page, pathOf } from './endpoints.ts'

const SHOWN = 40

type Props = { accountId: number; endpointId: number; oldestPendingAt: string | undefined }

/**
 * One bar for each of the last attempts, oldest first, and how long the oldest pending event has waited. A list has many endpoints, so each bar
 * polls every five seconds instead of reading after every event.
 */
export function SuccessBar({ accountId, endpointId, oldestPendingAt }: Props) {
  const { value, problem, reload } = useResource<Page<Attempt>>(pathOf(accountId, endpointId, `/attempts?limit=${SHOWN}`))
  usePolled(reload)
  return (
    <div class="success">
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value && <Bars items={value.items.toReversed()} />}
      {oldestPendingAt && <Lag since={oldestPendingAt} />}
    </div>
  )
}

/** Every event waits for a moment. */
const LAG_FROM_MS = 1_000

/** The page reads the endpoint again every few seconds, and draws this again. */
function Lag({ since }: { since: string }) {
  const ms = Date.now() - Date.parse(since)
  return ms < LAG_FROM_MS ? null : <small class="lag">{words.webhooks.lag(ms)}</small>
}

function Bars({ items }: { items: Attempt[] }) {
  const accepted = items.filter(isAccepted).length
  const label = items.length === 0 ? words.webhooks.noAttempts : words.webhooks.acceptedOf(accepted, items.length)
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
      <small>{label}</small>
    </>
  )
}
