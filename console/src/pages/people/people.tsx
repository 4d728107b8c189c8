import type { Place } from '../../app/place.ts'
import { PeopleList } from './list.tsx'
import { PersonPage } from './person.tsx'
import './people.css'

/** The list of people, with the form of a new one at `people/new`; or one person, if the address has their id. */
export function PeoplePage({ place }: { place: Place }) {
  const [, shown] = place.path
  if (shown === undefined || shown === 'new') return <PeopleList place={place} isAdding={shown === 'new'} />
  return <PersonPage key={shown} personId={shown} />
}
