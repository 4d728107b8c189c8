import type { Place } from '../../app/place.ts'
import { KeyList } from './key-list.tsx'
import { KeyPage } from './key-page.tsx'
import './keys.css'

/** The list of keys, with the form of a new one at `keys/new`; or one key, if the address has it. */
export function KeysPage({ place }: { place: Place }) {
  const [, shown] = place.path
  if (shown === undefined || shown === 'new') return <KeyList place={place} isAdding={shown === 'new'} />
  return <KeyPage key={shown} integrationKey={shown} place={place} />
}
