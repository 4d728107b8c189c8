import type { Place } from '../../app/place.ts'
import { AccountPage } from './account.tsx'
import { AccountList } from './account-list.tsx'
import './accounts.css'

/** All accounts, with the form of a new one at `accounts/new`; or one account, if the address has its id. */
export function AccountsPage({ place }: { place: Place }) {
  const [, shown] = place.path
  if (shown === undefined || shown === 'new') return <AccountList place={place} isAdding={shown === 'new'} />
  return <AccountPage key={shown} shownId={shown} />
}
