import { useState } from 'preact/hooks'
import { urlOf } from '../../app/api.ts'
import type { Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import { Ago, Empty, PageHead, Pill } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { isOfAccount, WhichAccounts } from '../../kit/which-accounts.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-audit.ts'
import { nameOfAccount } from '../people/person.ts'
import { type Entry, filtersOf, queryOf } from './entry.ts'
import { EntryDialog } from './entry-dialog.tsx'
import { AuditFilters } from './filters.tsx'
import './audit.css'

/** Who changed what. Operators see the whole log, or that of the account if the address says so; admins that of the account. */
export function AuditPage({ place }: { place: Place }) {
  const { account } = useFrame()
  const [shown, setShown] = useState<Entry>()
  const filters = filtersOf(place.query)
  const base = isOfAccount(account, place) ? `/accounts/${account.accountId}/audit` : '/audit'
  return (
    <>
      <PageHead title={pages.audit}>
        <ButtonLink icon="file-text" href={urlOf(`${base}/export${queryOf(filters)}`)} download>
          {say.download}
        </ButtonLink>
      </PageHead>
      <WhichAccounts place={place} label={say.which} all={say.all} />
      <AuditFilters place={place} filters={filters} />
      <LongTable<Entry>
        label={pages.audit}
        path={`${base}${queryOf(filters)}`}
        columns={[
          { title: say.facts.action },
          { title: say.facts.subject, isWide: true },
          { title: say.facts.actor, isWide: true },
          { title: say.facts.at },
        ]}
        keyOf={({ entryId }) => String(entryId)}
        cells={(entry) => <Cells entry={entry} onOpen={() => setShown(entry)} />}
        empty={
          <Empty icon="history" title={say.nothingFound}>
            <p>{say.nothingFoundHint}</p>
          </Empty>
        }
      />
      {shown && <EntryDialog entry={shown} place={place} onClose={() => setShown(undefined)} />}
    </>
  )
}

function Cells({ entry, onOpen }: { entry: Entry; onOpen: () => void }) {
  const { accounts } = useFrame()
  const { action, subject, actor, accountId, at } = entry
  const where = accountId === null ? undefined : nameOfAccount(accounts, accountId)
  return (
    <>
      <td>
        <button type="button" class="row-link" onClick={onOpen}>
          {say.action(action)}
        </button>
        {where && <small>{where}</small>}
        {/* Narrow pages have no columns for these. */}
        <small class="is-narrow">
          {subject === null || subject === '' ? '' : `${subject} · `}
          {actor.name}
        </small>
      </td>
      <td class="is-wide audit-text">{subject}</td>
      <td class="is-wide audit-text">
        {actor.name} {actor.kind !== 'person' && <Pill tone="plain">{say.kinds[actor.kind]}</Pill>}
      </td>
      <td class="when">
        <Ago at={at} />
      </td>
    </>
  )
}
