import { filter, linkTo, linkWith, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, ButtonLink, Select } from '../../kit/controls.tsx'
import { Ago, Empty, PageHead } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-keys.ts'
import { Health, type Key, pathOf, STATUSES } from './key.tsx'
import { NewKey } from './new-key.tsx'

/** So that a person sees soon that a system uses a new key. */
const FRESH = { restMs: 5_000 }

/** The keys of the account, also those that no longer work. */
export function KeyList({ place, isAdding }: { place: Place; isAdding: boolean }) {
  const { account } = useFrame()
  const { accountId, role } = account
  const canChange = role !== 'viewer'
  const status = place.query.get('status') ?? ''
  const path = pathOf(accountId, undefined, `?${new URLSearchParams({ sort: '-createdAt', ...(status && { status }) })}`)
  const toNew = canChange && (
    <ButtonLink kind="primary" icon="plus" href={linkWith({ ...place, path: ['keys', 'new'] })}>
      {say.add}
    </ButtonLink>
  )
  const clear = (
    <Button icon="x" kind="quiet" onClick={() => filter(place, { status: undefined })}>
      {say.clear}
    </Button>
  )
  const statuses = STATUSES.map((value) => ({ value: value as string, text: say.statuses[value] }))
  return (
    <>
      <PageHead title={pages.keys} note={say.note}>
        <AsCurl path={path.slice(1)} isAdmin />
        {toNew}
      </PageHead>
      <search class="filters card">
        <Select
          label={say.status}
          value={status}
          options={[{ value: '', text: say.any }, ...statuses]}
          onChange={(chosen) => filter(place, { status: chosen })}
        />
        {status && clear}
      </search>
      <LongTable<Key>
        label={pages.keys}
        path={path}
        columns={[
          { title: say.key },
          { title: say.status },
          { title: say.lastUsed },
          { title: say.may, isWide: true },
          { title: say.created, isWide: true },
          { title: say.expires, isWide: true },
        ]}
        cells={(key) => <Cells item={key} accountId={accountId} />}
        keyOf={(key) => key.integrationKey}
        fresh={FRESH}
        version={Number(isAdding)}
        empty={
          status ? (
            <Empty icon="search" title={say.noneFound}>
              {clear}
            </Empty>
          ) : (
            <Empty icon="key-round" title={say.empty}>
              <p>{say.emptyHint}</p>
              {toNew}
            </Empty>
          )
        }
      />
      {isAdding && canChange && <NewKey onClose={() => filter({ ...place, path: ['keys'] }, {})} />}
    </>
  )
}

function Cells({ item: key, accountId }: { item: Key; accountId: number }) {
  const { integrationKey, scopes, addresses, lastUsedAt, createdAt, expiresAt } = key
  const created = <Ago at={createdAt} />
  return (
    <>
      <td>
        <a class="row-link" href={linkTo({ accountId, path: ['keys', integrationKey] })}>
          <code>{integrationKey}</code>
        </a>
        <small class="is-narrow">
          {say.mayDo(scopes)} · {say.created} {created}
        </small>
      </td>
      <td>
        <Health item={key} />
      </td>
      <td>{lastUsedAt ? <Ago at={lastUsedAt} /> : <span class="soft">{say.never}</span>}</td>
      <td class="is-wide">
        {say.mayDo(scopes)}
        {addresses && <small>{say.fromAddresses(addresses)}</small>}
      </td>
      <td class="is-wide when">{created}</td>
      <td class="is-wide when">{expiresAt ? <Ago at={expiresAt} /> : say.never}</td>
    </>
  )
}
