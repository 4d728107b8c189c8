import type { ComponentChildren } from 'preact'
import { useCallback } from 'preact/hooks'
import { usePolled } from '../../app/fresh.ts'
import { linkTo } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Ago, Empty, Facts, Loading, Pill } from '../../kit/display.tsx'
import { Meter } from '../../kit/meter.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-accounts.ts'
import { AccountActions } from './account-actions.tsx'
import { type Account, type Figures, QUOTA_NAMES, type Quotas } from './accounts-types.ts'
import { TroubleList } from './trouble-list.tsx'
import { troublesOf } from './troubles.ts'

/** One account: what needs a look, its quotas, and what an operator can do. `shownId`: it need not be the account of the frame. */
export function AccountPage({ shownId }: { shownId: string }) {
  const here = useFrame().account.accountId
  const path = `/accounts/${encodeURIComponent(shownId)}`
  const account = useResource<Account>(path)
  const quotas = useResource<Quotas>(`${path}/quotas`)
  const figures = useResource<{ items: Figures[] }>('/account-troubles')
  const reload = useCallback(() => {
    for (const each of [account, quotas, figures]) each.reload()
  }, [account.reload, quotas.reload, figures.reload])
  // No event of another account reaches this page.
  usePolled(reload)
  const problem = account.problem ?? quotas.problem ?? figures.problem
  const all = linkTo({ accountId: here, path: ['accounts'] })
  const { value } = account
  if (account.problem?.status === 404) {
    return (
      <Empty icon="building-2" title={say.noSuch(shownId)} isPage>
        <a href={all}>{say.showAll}</a>
      </Empty>
    )
  }
  return (
    <>
      <Crumbs page="accounts" id={shownId} />
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value === undefined && problem === undefined && <Loading />}
      {value && (
        <>
          <div class="title-row">
            <h1 class="account-name">{value.name}</h1>
            {value.suspendedAt && <Pill tone="bad">{say.suspended}</Pill>}
          </div>
          <AccountActions account={value} quotas={quotas.value} onChanged={reload} />
          <Cards account={value} quotas={quotas.value} figures={figures.value?.items} />
        </>
      )}
    </>
  )
}

type CardsProps = { account: Account; quotas: Quotas | undefined; figures: Figures[] | undefined }

function Cards({ account: { accountId, modules, quarantineHours, suspendedAt }, quotas, figures }: CardsProps) {
  return (
    <div class="account-grid">
      <Card title={say.needsLook}>
        {figures && <TroubleList troubles={troublesOf(figures.find((each) => each.accountId === accountId))} of={accountId} />}
      </Card>
      <Card title={say.account}>
        <Facts
          facts={[
            [say.modules, modules.join(', ').toUpperCase() || say.fine],
            [say.quarantine, say.hours(quarantineHours)],
            [say.filters.suspended, suspendedAt && <Ago at={suspendedAt} />],
          ]}
        />
      </Card>
      <Card title={say.quotas}>{quotas && <QuotaMeters quotas={quotas} />}</Card>
    </div>
  )
}

function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card account-card">
      <h2>{title}</h2>
      {children ?? <Loading />}
    </section>
  )
}

/** What is used of the quotas. Each node counts its exports for itself. */
function QuotaMeters({ quotas }: { quotas: Quotas }) {
  return QUOTA_NAMES.map((name) => {
    const { quota, isDefault, used } = quotas[name]
    return (
      used !== undefined && <Meter key={name} label={say.quotaNames[name] + (isDefault ? say.byDefault : '')} value={used} max={quota} />
    )
  })
}
