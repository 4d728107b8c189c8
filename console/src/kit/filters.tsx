import type { ComponentChildren } from 'preact'
import { filter, linkTo, type Place } from '../app/place.ts'
import { filters as say } from '../words/en-messages.ts'
import { ButtonLink, Select } from './controls.tsx'

/** `texts`: the values that the filter can have, in words. */
type ListFilter = { name: string; label: string; any: string; texts: Record<string, string> }

/** The filters of a list, which are in the address. `children`: others than those with a few values. */
export function Filters({ place, filters, children }: { place: Place; filters: ListFilter[]; children?: ComponentChildren }) {
  const { accountId, path, query } = place
  // What is shown beside the list is no filter.
  const isFiltered = [...query.keys()].some((name) => name !== 'show')
  return (
    <search class="filters card" aria-label={say.label}>
      {filters.map(({ name, label, any, texts }) => (
        <Select
          label={label}
          value={query.get(name) ?? ''}
          options={Object.entries({ '': any, ...texts }).map(([value, text]) => ({ value, text }))}
          onChange={(value) => filter(place, { [name]: value })}
        />
      ))}
      {children}
      {isFiltered && (
        <ButtonLink icon="x" kind="quiet" href={linkTo({ accountId, path })}>
          {say.clear}
        </ButtonLink>
      )}
    </search>
  )
}
