import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { go, linkTo, type Place } from '../../app/place.ts'
import { type Role, useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago, Empty, PageHead, Pill } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { Sure } from '../../kit/sure.tsx'
import { pages } from '../../words/en.ts'
import * as peopleWords from '../../words/en-people.ts'
import * as sessionWords from '../../words/en-sessions.ts'
import * as say from '../../words/en-tokens.ts'
import { listed } from '../../words/numbers.ts'
import { nameOfAccount } from '../people/person.ts'
import { NewToken } from './new-token.tsx'
import '../people/people.css'

/** A credential with which a program uses the admin API. */
type Token = {
  tokenId: number
  name: string
  role: Role
  /** Empty for an operator, who has all. */
  accountIds: number[]
  expiresAt: string
  createdAt: string
  lastUsedAt?: string
  revokedAt?: string
}

/** The tokens of all programs, the newest first, with the form of a new one at `tokens/new`. */
export function TokensPage({ place }: { place: Place }) {
  const { account, withPassword } = useFrame()
  const [version, setVersion] = useState(0)
  const [revoking, setRevoking] = useState<Token>()
  const look = () => setVersion((last) => last + 1)
  const open = () => go({ accountId: account.accountId, path: ['tokens', 'new'] })
  const close = () => {
    look()
    location.replace(linkTo({ accountId: account.accountId, path: ['tokens'] }))
  }
  const revoked = () => {
    setRevoking(undefined)
    look()
  }
  return (
    <>
      <PageHead title={pages.tokens}>
        <Button kind="primary" icon="plus" onClick={open}>
          {say.add}
        </Button>
      </PageHead>
      <TokenTable version={version} onRevoke={setRevoking} />
      {place.path[1] === 'new' && <NewToken onClose={close} />}
      {revoking && (
        <Sure
          title={say.revokeOf(revoking.name)}
          action={say.revoke}
          run={() => withPassword(() => post(`/tokens/${revoking.tokenId}/revoke`))}
          onDone={revoked}
          onClose={() => setRevoking(undefined)}
        >
          <p>{say.sure}</p>
        </Sure>
      )}
    </>
  )
}

type TableProps = { version: number; onRevoke: (token: Token) => void }

function TokenTable({ version, onRevoke }: TableProps) {
  return (
    <LongTable<Token>
      label={pages.tokens}
      path="/tokens?sort=-tokenId"
      columns={[
        { title: say.token },
        { title: sessionWords.used, isWide: true },
        { title: say.expires },
        { title: sessionWords.action, isNumber: true },
      ]}
      keyOf={({ tokenId }) => String(tokenId)}
      cells={(token) => <Cells token={token} onRevoke={() => onRevoke(token)} />}
      version={version}
      empty={
        <Empty icon="shield-check" title={say.empty}>
          <p>{say.emptyHint}</p>
        </Empty>
      }
    />
  )
}

function Cells({ token, onRevoke }: { token: Token; onRevoke: () => void }) {
  const { accounts } = useFrame()
  const { name, role, accountIds, expiresAt, lastUsedAt, revokedAt } = token
  const isOver = revokedAt !== undefined || Date.parse(expiresAt) <= Date.now()
  const where = role === 'operator' ? say.allAccounts : listed(accountIds.map((id) => nameOfAccount(accounts, id)))
  const used = lastUsedAt === undefined ? say.never : <Ago at={lastUsedAt} />
  return (
    <>
      <td>
        <span class="token-name">{name}</span> {isOver && <Pill tone="plain">{revokedAt === undefined ? say.expired : say.revoked}</Pill>}
        <small>
          {peopleWords.roles[role]}, {where}
        </small>
        {/* Narrow pages have no column for it. */}
        <small class="is-narrow">
          {sessionWords.used}: {used}
        </small>
      </td>
      <td class="is-wide when">{used}</td>
      <td class="when">
        <Ago at={expiresAt} />
      </td>
      <td class="num">
        {!isOver && (
          <Button kind="danger" aria-label={say.revokeOf(name)} onClick={onRevoke}>
            {say.revoke}
          </Button>
        )}
      </td>
    </>
  )
}
