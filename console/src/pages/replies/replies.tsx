import type { Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Empty } from '../../kit/display.tsx'
import * as storedWords from '../../words/en-stored.ts'
import { AutomaticReplies } from './automatic.tsx'
import { Head } from './changes.tsx'
import { OptOuts } from './opt-outs.tsx'
import { PersonPage } from './person.tsx'
import './replies.css'

/** Opt-outs; automatic replies; or everything about a number, as the address says. */
export function RepliesPage({ place }: { place: Place }) {
  const { account } = useFrame()
  const part = place.path[1]
  if (part === 'automatic') return <AutomaticReplies />
  if (part !== 'number') return <OptOuts place={place} />
  if (account.role !== 'viewer') return <PersonPage place={place} />
  return (
    <>
      <Head current="number" />
      <Empty icon="user-round" title={storedWords.onlyAdmins} />
    </>
  )
}
