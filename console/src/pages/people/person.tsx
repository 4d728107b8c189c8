import { useState } from 'preact/hooks'
import { usePolled } from '../../app/fresh.ts'
import { linkTo } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Copy } from '../../kit/controls.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Loading, Pill } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-people.ts'
import { PersonActions } from './actions.tsx'
import { asPerson, isSelf, type Member, type Person, stateOf, usePaths } from './person.ts'
import { Roles } from './roles.tsx'
import { Sessions } from './sessions.tsx'

/** One person: how they sign in, what they may do, and where they are signed in. */
export function PersonPage({ personId }: { personId: string }) {
  const { account, session } = useFrame()
  const { accountId } = account
  const paths = usePaths()
  const path = paths.person(personId)
  const { value, problem, isLoading, reload } = useResource<Person | Member>(path)
  usePolled(reload, { restMs: 15_000 })
  const [turn, setTurn] = useState(0)
  const changed = () => {
    setTurn((last) => last + 1)
    reload()
  }
  const person = value && asPerson(value, accountId)
  return (
    <>
      <Crumbs page="people" id={personId} />
      {/* The heading of a person whom the page does not have. */}
      {person === undefined && <h1 class={problem === undefined ? 'sr' : ''}>{say.person}</h1>}
      {problem && <Problem problem={problem} onRetry={reload} />}
      {person === undefined && isLoading && <Loading />}
      {person && (
        <>
          <PersonHead person={person} />
          <PersonActions person={person} onChanged={changed} />
          <Roles person={person} onChanged={changed} />
          {paths.isOperator && <Sessions path={`${path}/sessions`} isOwn={isSelf(person, session)} turn={turn} />}
        </>
      )}
    </>
  )
}

function PersonHead({ person }: { person: Person }) {
  const { account, session } = useFrame()
  const state = stateOf(person)
  return (
    <>
      <div class="title-row">
        <h1 class="person-name">{person.name}</h1>
        {person.isOperator && <Pill tone="info">{say.roles.operator}</Pill>}
        {/* A change of the person shows here. */}
        <span role="status">
          <Pill tone={state.tone}>{state.text}</Pill>
        </span>
      </div>
      <p class="note">
        <Copy text={person.email} />
      </p>
      {isSelf(person, session) && (
        <p class="note person-self">
          {say.aboutYou} <a href={linkTo({ accountId: account.accountId, path: ['me'] })}>{pages.me}</a>.
        </p>
      )}
    </>
  )
}
