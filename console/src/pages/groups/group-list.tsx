import { useEffect, useRef, useState } from 'preact/hooks'
import { useAll } from '../../app/all.ts'
import { useFresh } from '../../app/fresh.ts'
import { filter, linkTo, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, TextField } from '../../kit/controls.tsx'
import { Ago, Empty, PageHead } from '../../kit/display.tsx'
import { TableCard, useNear } from '../../kit/long-table.tsx'
import { Reading } from '../../kit/reading.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-groups.ts'
import { nothingFound } from '../../words/en-kit.ts'
import * as messageWords from '../../words/en-messages.ts'
import { number } from '../../words/numbers.ts'
import { ImportLink } from './links.tsx'
import { NameGroup } from './name-group.tsx'
import type { Segment } from './segments.ts'

const REST_MS = 15_000

/** All groups of the account, with their sizes. */
export function GroupList({ place }: { place: Place }) {
  const { role } = useFrame().account
  const { value: groups, ...read } = useAll<Segment>('segments')
  useFresh(read.reload, { restMs: REST_MS, isAbout: () => false })
  const [isAdding, setAdding] = useState(false)
  const search = place.query.get('search') ?? ''
  return (
    <>
      <PageHead title={pages.groups} note={groups && say.total(groups)}>
        <AsCurl path="segments?limit=200" />
        {role !== 'viewer' && (
          <>
            <Button icon="plus" onClick={() => setAdding(true)}>
              {say.add}
            </Button>
            <ImportLink />
          </>
        )}
      </PageHead>
      <Reading value={groups} {...read} />
      {groups?.length === 0 && (
        <div class="card groups-none">
          <Empty icon="users" title={say.none}>
            <p>{say.noneHint}</p>
          </Empty>
        </div>
      )}
      {groups !== undefined && groups.length > 0 && (
        <>
          <Search place={place} search={search} />
          <Table groups={matching(groups, search)} place={place} />
        </>
      )}
      {isAdding && <NameGroup title={say.add} onClose={() => setAdding(false)} />}
    </>
  )
}

function Search({ place, search }: { place: Place; search: string }) {
  return (
    <search class="filters card" aria-label={messageWords.filters.label}>
      <div class="filters-search">
        <TextField label={messageWords.filters.search} value={search} onInput={(search) => filter(place, { search })} autocomplete="off" />
      </div>
    </search>
  )
}

/** A search finds a part of a name, or a whole number. */
function matching(groups: Segment[], search: string): Segment[] {
  const wanted = search.trim().toLowerCase()
  return groups.filter(({ segmentId, name = '' }) => name.toLowerCase().includes(wanted) || String(segmentId) === wanted)
}

/** How many rows are drawn at first, and more each time their end comes near. */
const STEP = 100

const COLUMNS = [{ title: say.group }, { title: say.members, isNumber: true }, { title: say.changed, isWide: true }]

function Table({ groups, place: { accountId } }: { groups: Segment[]; place: Place }) {
  const [rows, setRows] = useState(0)
  const end = useRef<HTMLTableSectionElement>(null)
  const isNear = useNear(end)
  useEffect(() => {
    // In a tall window, the end stays near. Some steps may follow before the browser says that it no longer is.
    if (isNear && rows < groups.length) setRows(rows + STEP)
  }, [isNear, rows, groups.length])
  if (groups.length === 0) {
    return (
      <div class="card">
        <Empty icon="search" title={nothingFound} />
      </div>
    )
  }
  return (
    <TableCard label={pages.groups} columns={COLUMNS}>
      <tbody>
        {groups.slice(0, rows).map((group) => (
          <Row key={group.segmentId} group={group} accountId={accountId} />
        ))}
      </tbody>
      <tbody ref={end} />
    </TableCard>
  )
}

function Row({ group, accountId }: { group: Segment; accountId: number | undefined }) {
  const { segmentId, members, updatedAt } = group
  return (
    <tr>
      <td>
        <a class="row-link" href={linkTo({ accountId, path: ['groups', String(segmentId)] })}>
          {say.nameOf(group)}
        </a>
        <small>{say.nameOf({ segmentId })}</small>
      </td>
      <td class="num">{number.format(members)}</td>
      <td class="when is-wide">
        <Ago at={updatedAt} />
      </td>
    </tr>
  )
}
