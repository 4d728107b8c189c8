import { usePolled } from '../../app/fresh.ts'
import type { Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Ago, Facts, Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-keys.ts'
import { KeyActions } from './actions.tsx'
import { Health, type Key, pathOf, statusOf } from './key.tsx'
import { Recipe } from './recipe.tsx'

/** The use of a key emits no event. Herald stores it within a second. */
const POLL = { restMs: 2_000 }

/** One key: how it is, what can be done about it, and how to rotate it without a gap. */
export function KeyPage({ integrationKey, place }: { integrationKey: string; place: Place }) {
  const { account } = useFrame()
  const { accountId, role } = account
  const { value: key, problem, isLoading, reload } = useResource<Key>(pathOf(accountId, integrationKey))
  usePolled(reload, POLL)
  const canChange = role !== 'viewer'
  const canRotate = key && canChange && (statusOf(key) === 'ACTIVE' || place.query.has('next'))
  return (
    <>
      <Crumbs page="keys" id={integrationKey} />
      <div class="title-row">
        <h1 class="key-title">
          <code>{integrationKey}</code>
        </h1>
        {key && <Health item={key} />}
      </div>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {key === undefined && isLoading && <Loading />}
      {key && statusOf(key) !== 'ACTIVE' && <p class="key-outcome">{say.refused}</p>}
      {key && canChange && <KeyActions item={key} onChanged={reload} />}
      {key && (
        <div class="key-grid">
          {canRotate && <Recipe old={key} place={place} onChanged={reload} />}
          <KeyFacts item={key} />
        </div>
      )}
    </>
  )
}

function KeyFacts({ item: key }: { item: Key }) {
  const { scopes, addresses, expiresAt, createdAt, lastUsedAt, rotatedAt, revokedAt } = key
  const at = (time: string | undefined, otherwise?: string) => (time ? <Ago at={time} /> : otherwise)
  return (
    <section class="card key-facts" aria-labelledby="key-facts">
      <h2 id="key-facts">{say.label}</h2>
      <Facts
        facts={[
          [say.may, say.mayDo(scopes)],
          [say.from, addresses?.map((each) => <code>{each}</code>) ?? say.anywhere],
          [say.created, at(createdAt)],
          [say.lastUsed, at(lastUsedAt, say.never)],
          [say.rotated, at(rotatedAt)],
          [say.expires, at(expiresAt, say.never)],
          [say.statuses.REVOKED, at(revokedAt)],
        ]}
      />
    </section>
  )
}
