import { useState } from 'preact/hooks'
import { go, linkTo, linkWith, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Empty, PageHead, Pill } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { useSearch } from '../../kit/search.ts'
import { isOfAccount, WhichAccounts } from '../../kit/which-accounts.tsx'
import { pages } from '../../words/en.ts'
import * as paletteWords from '../../words/en-palette.ts'
import * as say from '../../words/en-people.ts'
import { NewPerson } from './new-person.tsx'
import { asPerson, isSelf, type Member, type Person, rolesInWords, stateOf, usePaths } from './person.ts'

/** The people of the account. Operators see everybody, and the people of the account if the address says so. */
export function PeopleList({ place, isAdding }: { place: Place; isAdding: boolean }) {
  const { account } = useFrame()
  const { members } = usePaths()
  const [version, setVersion] = useState(0)
  const search = place.query.get('search') ?? ''
  const path = isOfAccount(account, place) ? members(account.accountId) : '/people'
  const open = () => go({ accountId: account.accountId, path: ['people', 'new'], query: Object.fromEntries(place.query) })
  const close = () => {
    setVersion((last) => last + 1)
    location.replace(linkWith({ ...place, path: ['people'] }))
  }
  return (
    <>
      <PageHead title={pages.people}>
        <Button kind="primary" icon="plus" onClick={open}>
          {say.add}
        </Button>
      </PageHead>
      <div class="people-filters">
        <WhichAccounts place={place} label={say.which} all={say.everybody} />
        <Search place={place} />
      </div>
      <LongTable<Person | Member>
        label={pages.people}
        path={search === '' ? path : `${path}?${new URLSearchParams({ search })}`}
        columns={[{ title: say.person }, { title: say.rolesTitle }, { title: say.state, isWide: true }]}
        keyOf={({ personId }) => String(personId)}
        cells={(person) => <Cells person={asPerson(person, account.accountId)} />}
        version={version}
        empty={
          <Empty icon="user-round" title={search === '' ? say.empty : say.nothingFound}>
            {search === '' && <p>{say.emptyHint}</p>}
          </Empty>
        }
      />
      {isAdding && <NewPerson onClose={close} />}
    </>
  )
}

function Search({ place }: { place: Place }) {
  const { text, setText, find } = useSearch(place, 'search')
  return (
    <search>
      <form class="people-search" onSubmit={find}>
        <input
          class="input"
          aria-label={say.search}
          placeholder={say.search}
          autocomplete="off"
          maxLength={254}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button icon="search" type="submit">
          {paletteWords.label}
        </Button>
      </form>
    </search>
  )
}

function Cells({ person }: { person: Person }) {
  const { account, accounts, session } = useFrame()
  const { personId, name, email } = person
  const state = stateOf(person)
  return (
    <>
      <td>
        <a class="row-link" href={linkTo({ accountId: account.accountId, path: ['people', String(personId)] })}>
          {name}
        </a>{' '}
        {isSelf(person, session) && <Pill tone="info">{say.you}</Pill>}
        <small>{email}</small>
        {/* Narrow pages have no column for it. */}
        <small class="is-narrow">{state.text}</small>
      </td>
      <td>{person.isOperator ? <Pill tone="info">{say.roles.operator}</Pill> : rolesInWords(accounts, person.roles, SHOWN)}</td>
      <td class="is-wide">
        <Pill tone={state.tone}>{state.text}</Pill>
      </td>
    </>
  )
}

const SHOWN = 3
