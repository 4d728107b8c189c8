import { useRef } from 'preact/hooks'
import type { Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Loading, PageHead } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as overviewWords from '../../words/en-overview.ts'
import { Campaigns } from './campaigns.tsx'
import { FirstSteps } from './first-steps.tsx'
import { History } from './history.tsx'
import { Today } from './today.tsx'
import { Endpoints, Failures } from './troubles.tsx'
import './overview.css'

/** How the account is today; while it has sent nothing, what to do first. */
export function OverviewPage({ place }: { place: Place }) {
  const { account } = useFrame()
  // Read once, to know whether the account is new. The list has the messages of campaigns, too.
  const any = useResource<{ items: object[] }>(`/accounts/${account.accountId}/messages?limit=1`)
  // The first steps stay until the person leaves the page: the first message is only the first of them.
  const wasNew = useRef<boolean>(undefined)
  if (any.value !== undefined) wasNew.current ??= any.value.items.length === 0
  const isNew = wasNew.current === true && account.role !== 'viewer'
  return (
    <>
      <PageHead title={pages.overview} {...(isNew && { note: overviewWords.newNote })} />
      {any.problem && <Problem problem={any.problem} onRetry={any.reload} />}
      {any.value === undefined && any.isLoading && <Loading />}
      {isNew && <FirstSteps place={place} />}
      {any.value && !isNew && (
        <>
          <Today />
          <div class="overview-grid">
            <History />
            <Failures />
            <Endpoints />
            <Campaigns />
          </div>
        </>
      )}
    </>
  )
}
