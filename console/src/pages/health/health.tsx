import type { Place } from '../../app/place.ts'
import { Loading, PageHead } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as healthWords from '../../words/en-health.ts'
import { Carriers } from './carriers.tsx'
import { DatabaseFacts } from './database.tsx'
import { Nodes } from './nodes.tsx'
import { Queues } from './queues.tsx'
import { useHealth } from './use-health.ts'
import { Verdict } from './verdict.tsx'
import './health.css'

/** Whether everything works, in a sentence, and the figures behind it. */
export function HealthPage(_: { place: Place }) {
  const { health, troubles, problem, isStale, reload } = useHealth()
  return (
    <>
      <PageHead title={pages.health} />
      {problem && <Problem problem={problem} onRetry={reload} />}
      {troubles && <Verdict troubles={troubles} />}
      {health === undefined && troubles === undefined && problem === undefined && <Loading />}
      {health && isStale && <p class="note health-stale">{healthWords.stale}</p>}
      {health && (
        <>
          <Queues health={health} />
          <Carriers carriers={health.carriers} />
          <Nodes health={health} />
          <DatabaseFacts database={health.database} />
        </>
      )}
    </>
  )
}
