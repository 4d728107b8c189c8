import { useState } from 'preact/hooks'
import { go, linkTo, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { PageHead } from '../../kit/display.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-people.ts'
import { rolesInWords } from '../people/person.ts'
import { Sessions } from '../people/sessions.tsx'
import { ChangePassword } from './change-password.tsx'
import '../people/people.css'

/** The person who is signed in: their roles, their password, with the form at `me/password`, and their sessions. */
export function MePage({ place }: { place: Place }) {
  const { account, accounts, session } = useFrame()
  const { name, email, isOperator, roles, hasPassword } = session
  const [said, setSaid] = useState('')
  const [turn, setTurn] = useState(0)
  const target = { accountId: account.accountId, path: ['me'] }
  const close = () => location.replace(linkTo(target))
  const changed = () => {
    setSaid(say.passwordChanged)
    setTurn((last) => last + 1)
    close()
  }
  return (
    <>
      <PageHead title={pages.me}>
        {hasPassword && (
          <Button icon="key-round" onClick={() => go({ ...target, path: ['me', 'password'] })}>
            {say.changePassword}
          </Button>
        )}
      </PageHead>
      <p class="said" role="status">
        {said}
      </p>
      <p class="note">{[name, email, isOperator ? say.roles.operator : rolesInWords(accounts, roles)].join(' · ')}</p>
      {!hasPassword && <p class="note">{say.noPassword}</p>}
      <Sessions path="/sessions" isOwn turn={turn} />
      {place.path[1] === 'password' && hasPassword && <ChangePassword onDone={changed} onClose={close} />}
    </>
  )
}
