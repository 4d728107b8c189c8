import { useEffect, useState } from 'preact/hooks'
import { type ApiProblem, ask, urlOf } from '../../app/api.ts'
import { filter, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, ButtonLink, Select } from '../../kit/controls.tsx'
import { Ago, Empty, Loading } from '../../kit/display.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-stored.ts'
import { Head, useChanges } from './changes.tsx'
import { NumberSearch } from './number-search.tsx'

/** What Herald stores about a person: show, export or erase it. */
export function PersonPage({ place }: { place: Place }) {
  const { account, session } = useFrame()
  const phone = place.query.get('phone') ?? ''
  // The role of an operator is the same in each account.
  const where = session.isOperator && place.query.get('in') === 'all' ? 'all' : 'here'
  const path = `${where === 'all' ? '' : `/accounts/${account.accountId}`}/recipients/${encodeURIComponent(phone)}`
  return (
    <>
      <Head current="number" />
      <NumberSearch place={place}>
        {session.isOperator && (
          <Select
            label={say.where}
            value={where}
            options={(['here', 'all'] as const).map((value) => ({ value, text: say.places[value] }))}
            onChange={(chosen) => filter(place, { in: chosen === 'all' ? chosen : undefined })}
          />
        )}
      </NumberSearch>
      {phone === '' ? (
        <div class="card">
          <Empty icon="user-round" title={say.start}>
            <p>{say.startHint}</p>
          </Empty>
        </div>
      ) : (
        <Person key={path} path={path} where={where} />
      )}
    </>
  )
}

type Stored = {
  phone: string
  total: number
  erased: { accountId: number | null; erasedAt: string }[]
}
type Where = keyof typeof say.places

/** Herald reads all pages of the event log, which takes long in a large account. */
const timeoutMs = 180_000

function Person({ path, where }: { path: string; where: Where }) {
  const { account } = useFrame()
  const [stored, setStored] = useState<Stored>()
  const [problem, setProblem] = useState<ApiProblem>()
  const { open, setOpen, version, status, ...changes } = useChanges<'erase' | 'allow'>()
  const [turn, setTurn] = useState(0)
  // It is read only when somebody asks, since it costs much.
  useEffect(() => {
    const reading = new AbortController()
    setProblem(undefined)
    const { signal } = reading
    ask<Stored>(path, { signal, timeoutMs }).then(setStored, (error) => signal.aborted || setProblem(error))
    return () => reading.abort()
  }, [path, version, turn])
  if (problem) return <Problem problem={problem} onRetry={() => setTurn(turn + 1)} />
  if (stored === undefined)
    return (
      <div class="card">
        <Loading />
        <p class="hint person-wait">{say.searching}</p>
      </div>
    )
  const { phone, total } = stored
  return (
    <>
      <section class="card person">
        <div class="title-row">
          <h2>{grouped(phone)}</h2>
          <span class="note">{where === 'all' ? say.places.all : account.name}</span>
          <span class="spring" />
          <ButtonLink icon="download" href={urlOf(`${path}/export`)} download>
            {say.exportJson}
          </ButtonLink>
          <Button icon="trash-2" kind="danger" onClick={() => setOpen('erase')}>
            {say.changes.erase}
          </Button>
        </div>
        <p class="person-total">{say.total(total)}</p>
        {status}
        <Erasures {...stored} onAllow={() => setOpen('allow')} />
      </section>
      {open && <Change {...{ open, path, stored, where, ...changes }} />}
    </>
  )
}

function Erasures({ erased, onAllow }: Stored & { onAllow: () => void }) {
  const { session } = useFrame()
  // An erasure in all accounts is ended in all of them.
  const needsOperator = erased.some(({ accountId }) => accountId === null) && !session.isOperator
  if (erased.length === 0) return null
  return (
    <div class="erasures">
      <div>
        {erased.map(({ accountId, erasedAt }) => (
          <p>
            {say.erasedIn(say.places[accountId === null ? 'all' : 'here'])} <Ago at={erasedAt} />.
          </p>
        ))}
        <p>{needsOperator ? say.onlyOperator : say.erasedHint}</p>
      </div>
      {!needsOperator && <Button onClick={onAllow}>{say.changes.allow}</Button>}
    </div>
  )
}

type ChangeProps = {
  open: 'erase' | 'allow'
  path: string
  stored: Stored
  where: Where
  onDone: (said: string) => void
  onClose: () => void
}

/** Erases a person, after the number was typed, or allows messages to a person who was erased. Both need the password again. */
function Change({ open, path, stored: { phone, total }, where, onDone, onClose }: ChangeProps) {
  const { withPassword } = useFrame()
  const run = () => withPassword(() => ask(`${path}/${open}`, { method: 'POST', body: {}, timeoutMs }))
  return (
    <Sure
      title={`${say.changes[open]}: ${grouped(phone)}`}
      action={say.changes[open]}
      run={run}
      onDone={() => onDone(say.done[open])}
      onClose={onClose}
      {...(open === 'erase' && { typed: phone })}
    >
      <p>{say.sure[open](say.places[where], total)}</p>
    </Sure>
  )
}
