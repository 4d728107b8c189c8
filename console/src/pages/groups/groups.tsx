import type { Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { GroupPage } from './group.tsx'
import { GroupList } from './group-list.tsx'
import { ImportPage } from './import/import.tsx'
import './groups.css'

/** The list of groups, the import of a file at `groups/new`, or one group, if the address has its number. */
export function GroupsPage({ place }: { place: Place }) {
  const { role } = useFrame().account
  const [, shown] = place.path
  if (shown === 'new' && role !== 'viewer') return <ImportPage place={place} />
  if (shown === undefined || shown === 'new') return <GroupList place={place} />
  return <GroupPage key={shown} segmentId={Number(shown)} place={place} />
}
