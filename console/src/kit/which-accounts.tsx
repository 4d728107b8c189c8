import { filter, type Place } from '../app/place.ts'
import { type Account, useFrame } from '../app/session.tsx'
import * as say from '../words/en-kit.ts'
import { Choice } from './controls.tsx'

/** Whether a list of the installation has only what belongs to the account: always, except for operators, whose address says it. */
export const isOfAccount = ({ role }: Account, { query }: Place) => role !== 'operator' || query.get('of') === 'account'

/** Lets operators choose between a list of the whole installation and that of the account. */
export function WhichAccounts({ place, label, all }: { place: Place; label: string; all: string }) {
  const { account } = useFrame()
  if (account.role !== 'operator') return null
  return (
    <div class="which-accounts">
      <Choice
        label={label}
        value={isOfAccount(account, place) ? 'account' : 'all'}
        onChange={(of) => filter(place, { of: of === 'account' ? of : undefined })}
        options={[
          { value: 'all', text: all },
          { value: 'account', text: say.ofAccount },
        ]}
      />
    </div>
  )
}
