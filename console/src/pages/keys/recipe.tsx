import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { usePolled } from '../../app/fresh.ts'
import { filter, linkTo, linkWith, type Place } from '../../app/place.ts'
import { type Resource, useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Ago } from '../../kit/display.tsx'
import { Icon } from '../../kit/icon.tsx'
import { useKeptFocus } from '../../kit/kept-focus.ts'
import { Problem } from '../../kit/problem.tsx'
import * as keyWords from '../../words/en-keys.ts'
import * as say from '../../words/en-recipe.ts'
import { RevokeKey } from './actions.tsx'
import { isInUse, type Key, pathOf, type Restrictions, statusOf, unusedMs } from './key.tsx'
import { NewKey } from './new-key.tsx'

const POLL = { restMs: 2_000 }

type Props = { old: Key; place: Place; onChanged: () => void }

/**
 * The steps that rotate a key without a failed request. They follow the use of both keys. The address has the second one, so the steps survive a
 * reload, and can be shared.
 */
export function Recipe({ old, place, onChanged }: Props) {
  const { account } = useFrame()
  const [open, setOpen] = useState<'make' | 'revoke'>()
  const part = useKeptFocus<HTMLElement>()
  const next = place.query.get('next') ?? undefined
  const second = useResource<Key>(next === undefined ? undefined : pathOf(account.accountId, next))
  usePolled(second.reload, POLL)
  const isMade = second.value !== undefined && statusOf(second.value) === 'ACTIVE'
  const isDeployed = isMade && second.value?.lastUsedAt !== undefined
  const isQuiet = isDeployed && !isInUse(old)
  const isRevoked = statusOf(old) === 'REVOKED'
  const close = () => setOpen(undefined)
  const ended = () => {
    close()
    onChanged()
  }
  const [made, deployed, quiet, revoked] = statesOf([isMade, isDeployed, isQuiet, isRevoked], isRevoked)
  return (
    <section ref={part} tabIndex={-1} class="card recipe" aria-labelledby="recipe">
      <h2 id="recipe">{say.title}</h2>
      <ol>
        <Step title={say.make} state={made}>
          {next === undefined ? (
            <Button icon="plus" kind="primary" onClick={() => setOpen('make')}>
              {say.make}
            </Button>
          ) : (
            <Second second={second} integrationKey={next} />
          )}
          {next !== undefined && !isRevoked && (
            <ButtonLink kind="quiet" icon="undo-2" href={linkWith(place, { next: undefined })}>
              {say.other}
            </ButtonLink>
          )}
        </Step>
        <Step title={say.deploy} state={deployed}>
          {second.value && isMade && <Used item={second.value} />}
        </Step>
        <Step title={say.wait} state={quiet}>
          {isMade && !isRevoked && <Used item={old} isOld />}
          <p class="hint">{say.waitHint}</p>
        </Step>
        <Step title={say.revoke} state={revoked}>
          {revoked === 'now' && (
            <Button icon="ban" kind="danger" onClick={() => setOpen('revoke')}>
              {say.revoke}
            </Button>
          )}
        </Step>
      </ol>
      {open === 'make' && (
        <NewKey title={say.make} restrictions={sameAs(old)} onCreated={(key) => filter(place, { next: key })} onClose={close} />
      )}
      {open === 'revoke' && <RevokeKey item={old} onClose={close} onDone={ended} />}
    </section>
  )
}

type State = keyof typeof say.status

/** The first step that is not done is the one to do now. */
function statesOf(done: boolean[], isOver: boolean): State[] {
  const now = isOver ? done.length : done.indexOf(false)
  return done.map((_, index) => (index < now ? 'done' : index === now ? 'now' : 'later'))
}

/** The second key may do the same as the first one, from the same addresses, and lives as long. */
function sameAs({ scopes, addresses, expiresAt, createdAt }: Key): Restrictions {
  const lifeMs = expiresAt === undefined ? undefined : Date.parse(expiresAt) - Date.parse(createdAt)
  return {
    ...(scopes && { scopes }),
    ...(addresses && { addresses }),
    ...(lifeMs && { expiresAt: new Date(Date.now() + lifeMs).toISOString() }),
  }
}

function Step({ title, state = 'later', children }: { title: string; state: State | undefined; children: ComponentChildren }) {
  return (
    <li class={`is-${state}`} {...(state === 'now' && { 'aria-current': 'step' as const })}>
      <span class="recipe-mark" aria-hidden="true">
        {state === 'done' && <Icon name="check" size={14} />}
      </span>
      <h3>
        {title} <span class="sr">({say.status[state]})</span>
      </h3>
      {children}
    </li>
  )
}

function Second({ second: { value, problem, reload }, integrationKey }: { second: Resource<Key>; integrationKey: string }) {
  const { account } = useFrame()
  return (
    <>
      <a href={linkTo({ accountId: account.accountId, path: ['keys', integrationKey] })}>
        <code>{integrationKey}</code>
      </a>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value && statusOf(value) !== 'ACTIVE' && <p class="hint is-wrong">{say.ended}</p>}
    </>
  )
}

/** Whether a system uses the key: it should use the second one, and no longer the old one. */
function Used({ item: key, isOld = false }: { item: Key; isOld?: boolean }) {
  const { lastUsedAt } = key
  if (lastUsedAt === undefined) return <p>{keyWords.neverUsed}</p>
  return (
    <p>
      {isOld && (isInUse(key) ? say.stillUsed : say.quiet(unusedMs(key)))} {keyWords.lastUsed} <Ago at={lastUsedAt} />.
    </p>
  )
}
