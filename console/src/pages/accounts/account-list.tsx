import { useEffect } from 'preact/hooks'
import { usePolled } from '../../app/fresh.ts'
import { filter, go, linkTo, linkWith, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { ButtonLink, Select, TextField } from '../../kit/controls.tsx'
import { Empty, Loading, PageHead, Pill } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import '../../kit/table.css'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-accounts.ts'
import { AccountDialog } from './account-dialog.tsx'
import type { Figures } from './accounts-types.ts'
import { TroubleList } from './trouble-list.tsx'
import { byTrouble, type Row } from './troubles.ts'

/** More rows than a person reads. The worst are among them. */
const MOST_SHOWN = 200

type Shown = keyof typeof say.filters
const SHOWN: Record<Shown, (row: Row) => boolean> = {
  all: () => true,
  trouble: ({ troubles }) => troubles.length > 0,
  suspended: ({ account }) => account.suspendedAt !== undefined,
}
const isShown = (name: string | null): name is Shown => name !== null && Object.hasOwn(SHOWN, name)

/** All accounts, the one with the most trouble first. An operator's frame knows all of them. */
export function AccountList({ place, isAdding }: { place: Place; isAdding: boolean }) {
  const { account, accounts, accountsChanged } = useFrame()
  useEffect(() => void accountsChanged(), [])
  const { value, problem, reload } = useResource<{ items: Figures[] }>('/account-troubles')
  usePolled(reload)
  const rows = value && byTrouble(accounts, value.items)
  const search = (place.query.get('q') ?? '').trim().toLowerCase()
  const wanted = place.query.get('show')
  const shown = isShown(wanted) ? wanted : 'all'
  const matching = rows?.filter((row) => SHOWN[shown](row) && matches(row, search)) ?? []
  const linkAt = (...path: string[]) => linkWith({ ...place, path })
  const added = async ({ accountId }: { accountId: number }) => {
    await accountsChanged()
    go({ accountId: account.accountId, path: ['accounts', String(accountId)] })
  }
  return (
    <>
      <PageHead title={pages.accounts}>
        <ButtonLink kind="primary" icon="plus" href={linkAt('accounts', 'new')}>
          {say.add}
        </ButtonLink>
      </PageHead>
      {problem && <Problem problem={problem} onRetry={reload} />}
      <p class="accounts-summary" role="status">
        {rows && say.summary(rows.filter(SHOWN.trouble).length, rows.length)}
      </p>
      <search class="card filters">
        <TextField label={say.search} value={place.query.get('q') ?? ''} onInput={(q) => filter(place, { q })} />
        <Select
          label={say.shown}
          value={shown}
          options={Object.entries(say.filters).map(([value, text]) => ({ value, text }))}
          onChange={(show) => filter(place, { show: show === 'all' ? undefined : show })}
        />
      </search>
      {rows === undefined && problem === undefined && <Loading />}
      {rows && matching.length === 0 && (
        <div class="card">
          <Empty icon="building-2" title={say.none}>
            <ButtonLink href={linkWith(place, { q: undefined, show: undefined })}>{say.showAll}</ButtonLink>
          </Empty>
        </div>
      )}
      {matching.length > 0 && <AccountTable rows={matching.slice(0, MOST_SHOWN)} />}
      {matching.length > MOST_SHOWN && <p class="list-end note">{say.most(MOST_SHOWN, matching.length)}</p>}
      {isAdding && <AccountDialog onDone={added} onClose={() => location.replace(linkAt('accounts'))} />}
    </>
  )
}

const matches = ({ account: { name, accountId } }: Row, search: string) =>
  name.toLowerCase().includes(search) || String(accountId) === search

function AccountTable({ rows }: { rows: Row[] }) {
  const { accountId: here } = useFrame().account
  return (
    <section class="card table-card">
      <table class="long-table" aria-label={pages.accounts}>
        <thead>
          <tr>
            <th scope="col">{say.account}</th>
            <th scope="col">{say.needsLook}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ account: { accountId, name, modules, suspendedAt }, troubles }) => (
            <tr key={accountId}>
              <td>
                <a class="row-link" href={linkTo({ accountId: here, path: ['accounts', String(accountId)] })}>
                  {name}
                </a>
                {suspendedAt && <Pill tone="plain">{say.suspended}</Pill>}
                <small>{[accountId, ...modules].join(' · ').toUpperCase()}</small>
              </td>
              <td>
                <TroubleList troubles={troubles} of={accountId} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
