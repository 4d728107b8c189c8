import { useFresh } from '../../app/fresh.ts'
import type { Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Empty, PageHead } from '../../kit/display.tsx'
import { Reading } from '../../kit/reading.tsx'
import * as say from '../../words/en-groups.ts'
import { GroupActions } from './group-actions.tsx'
import { Members } from './members.tsx'
import { pathOf, type Segment } from './segments.ts'

/** One group and its members. */
export function GroupPage({ segmentId, place }: { segmentId: number; place: Place }) {
  const { accountId } = useFrame().account
  const { value: group, problem, reload } = useResource<Segment>(pathOf(accountId, segmentId))
  // A change by somebody else emits no event.
  useFresh(reload, { isAbout: () => false })
  const isGone = problem?.status === 404
  return (
    <>
      <Crumbs page="groups" id={String(segmentId)} />
      {isGone && <Empty icon="users" title={say.noGroup(segmentId)} isPage />}
      {!isGone && <Reading value={group} problem={problem} reload={reload} />}
      {group && !isGone && (
        <>
          <PageHead title={say.nameOf(group)} note={say.facts(segmentId, group.members)}>
            <GroupActions group={group} onChanged={reload} />
          </PageHead>
          <Members group={group} place={place} onChanged={reload} />
        </>
      )}
    </>
  )
}
