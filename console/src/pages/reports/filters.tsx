import type { Page } from '../../app/pages-of.ts'
import { filter, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, Select, TextField } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-report-filters.ts'
import { INTERVALS, isBackwards, PRESET_NAMES, type Wanted } from './range.ts'

export type Campaign = { campaignId: string; name: string }

/** `name`: that of the campaign. */
type Props = { place: Place; wanted: Wanted; name: string | undefined }

/** What to report. Each change is in the address at once. */
export function ReportFilters({ place, wanted, name }: Props) {
  const { campaignId = '', range, days, interval } = wanted
  const set = (changes: Record<string, string | undefined>) => filter(place, changes)
  const ranges = [...PRESET_NAMES, ...(range === 'own' ? [range] : [])]
  const dayField = (end: 'from' | 'to', problem?: string) => (
    <TextField
      label={say.ends[end]}
      type="date"
      value={days[end] ?? ''}
      problem={problem}
      // While a person types a year, the field has those of antiquity.
      onInput={(day) => (day === '' || day >= '2000') && set({ range: undefined, ...days, [end]: day })}
    />
  )
  return (
    <search class="filters card report-filters" aria-label={pages.reports}>
      <CampaignField campaignId={campaignId} name={name} onChange={(chosen) => set({ campaignId: chosen, list: undefined })} />
      <Select
        label={say.range}
        value={range}
        options={ranges.map((value) => ({ value, text: say.ranges[value] }))}
        onChange={(chosen) => chosen !== 'own' && set({ range: chosen, from: undefined, to: undefined })}
      />
      {dayField('from')}
      {dayField('to', isBackwards(days) ? say.toTooEarly : undefined)}
      {campaignId !== '' && (
        <Select
          label={say.interval}
          value={interval}
          options={INTERVALS.map((value) => ({ value, text: say.intervals[value] }))}
          onChange={(chosen) => set({ interval: chosen })}
        />
      )}
      {place.query.size > 0 && (
        <Button icon="x" kind="quiet" onClick={() => set(Object.fromEntries([...place.query.keys()].map((name) => [name, undefined])))}>
          {say.clear}
        </Button>
      )}
    </search>
  )
}

type FieldProps = { campaignId: string; name: string | undefined; onChange: (campaignId: string) => void }

function CampaignField({ campaignId, name, onChange }: FieldProps) {
  const { accountId } = useFrame().account
  const { value, problem, reload } = useResource<Page<Campaign>>(`/accounts/${accountId}/campaigns?limit=200`)
  const { items = [], nextCursor } = value ?? {}
  const options = [{ value: '', text: say.single }, ...items.map((each) => ({ value: each.campaignId, text: each.name }))]
  // An older campaign is not among the latest.
  if (options.every(({ value }) => value !== campaignId)) options.push({ value: campaignId, text: name ?? campaignId })
  return (
    <>
      <Select label={say.of} value={campaignId} hint={nextCursor && say.ofLatest} options={options} onChange={onChange} />
      {problem && <Problem problem={problem} onRetry={reload} />}
    </>
  )
}
