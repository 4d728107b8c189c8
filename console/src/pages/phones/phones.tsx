import { useRef, useState } from 'preact/hooks'
import { useFresh } from '../../app/fresh.ts'
import { linkHere, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Empty, Loading, PageHead } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-phones.ts'
import { Faults } from './faults.tsx'
import { NewPhone } from './new-phone.tsx'
import { OnePhone } from './one-phone.tsx'
import type { PhoneSummary } from './phone.ts'
import { PhoneList } from './phone-list.tsx'
import './phones.css'

const LIST_POLL_MS = 2_000

/** The phones of the simulated network. `?phone=` is the one that is drawn; without it, the one that was used last when the page was opened. */
export function PhonesPage({ place }: { place: Place }) {
  const { account } = useFrame()
  const { accountId } = account
  const list = useResource<{ items: PhoneSummary[] }>(`/accounts/${accountId}/phones`)
  const chosen = useChosen(place, list.value?.items)
  const phone = useResource<PhoneSummary>(chosen === undefined ? undefined : `/accounts/${accountId}/phones/${encodeURIComponent(chosen)}`)
  const reload = () => {
    list.reload()
    if (phone.problem !== undefined) phone.reload()
  }
  useFresh(reload, { restMs: LIST_POLL_MS })
  const [isAdding, setAdding] = useState(false)
  // A lost connection is a problem of each request. The page says it once, and not in the grid, where it would move the phone.
  const problem = list.problem ?? phone.problem
  const retry = () => {
    list.reload()
    phone.reload()
  }
  const isSimulated = list.problem?.code !== 'RCS_NOT_SIMULATED'
  return (
    <>
      <PageHead title={pages.phones} note={isSimulated && say.note}>
        {isSimulated && <Head phone={phone.value} onAdd={() => setAdding(true)} />}
      </PageHead>
      {isAdding && <NewPhone onClose={() => setAdding(false)} />}
      {!isSimulated && <NoPhones />}
      {isSimulated && problem && <Problem problem={problem} onRetry={retry} />}
      {list.value === undefined && list.isLoading && <Loading />}
      {list.value && (
        <div class="phones">
          <PhoneList phones={list.value.items} current={phone.value} onAdd={() => setAdding(true)} />
          {phone.value && <OnePhone key={phone.value.phoneId} phone={phone.value} place={place} alert={problem} onChange={phone.reload} />}
        </div>
      )}
    </>
  )
}

/** The phone stays the same while others get messages: a person may be writing on it. */
function useChosen(place: Place, phones: PhoneSummary[] | undefined): string | undefined {
  const first = useRef<string>(undefined)
  const named = place.query.get('phone') ?? undefined
  first.current = named === undefined ? (first.current ?? phones?.[0]?.phoneId) : undefined
  return named ?? first.current
}

function Head({ phone, onAdd }: { phone: PhoneSummary | undefined; onAdd: () => void }) {
  const { account, session } = useFrame()
  const canSend = whyNotSend(account) === undefined
  const recipient = canSend ? phone?.phone : undefined
  return (
    <>
      {session.isOperator && <Faults />}
      <Button icon="plus" onClick={onAdd}>
        {say.add}
      </Button>
      {canSend && (
        <ButtonLink kind="primary" icon="send" href={linkHere(['send'], { recipient })}>
          {say.send}
        </ButtonLink>
      )}
    </>
  )
}

function NoPhones() {
  return (
    <Empty icon="smartphone" title={say.notSimulated}>
      <p>{say.notSimulatedHint}</p>
    </Empty>
  )
}
