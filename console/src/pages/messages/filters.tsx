import { useLayoutEffect, useState } from 'preact/hooks'
import { nameOf, useAgents } from '../../app/agents.ts'
import { filter, go, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, Select, TextField } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { TimeField } from '../../kit/time-field.tsx'
import type { Status } from '../../timeline/types.ts'
import * as say from '../../words/en-messages.ts'
import { FILTERS, type Filters, meaningsOf } from './query.ts'

/** The name of a status, or of several with commas between them. */
const statusText = (status: string) =>
  status
    .split(',')
    .map((each) => say.statuses[each as Status] ?? each)
    .join(say.or)
const STATUSES = [...Object.keys(say.statuses), 'FAILED,EXPIRED', 'ACCEPTED,SENDING'].map((value) => ({ value, text: statusText(value) }))

type Props = { place: Place; filters: Filters }
type Campaign = { campaignId: string; name: string }

/** The filters of the list. Each change is in the address at once, and starts again with the newest messages. */
export function FilterBar({ place, filters }: Props) {
  const { account } = useFrame()
  const agents = useAgents()
  const campaigns = useResource<{ items: Campaign[] }>(`/accounts/${account.accountId}/campaigns?limit=200`)
  const set = (changes: Record<string, string | undefined>) => filter(place, { ...changes, cursor: undefined })
  const { status = '', agentId = '', campaignId = '', test = '', acceptedFrom, acceptedTo } = filters
  return (
    <search class="filters card" aria-label={say.filters.label}>
      <SearchField place={place} filters={filters} />
      <ListFilter label={say.status} any={say.filters.anyStatus} value={status} known={STATUSES} onChange={(status) => set({ status })} />
      <ListFilter
        label={say.agent}
        any={say.anyAgent}
        value={agentId}
        known={(agents.agents ?? []).map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))}
        onChange={(agentId) => set({ agentId })}
      />
      <ListFilter
        label={say.campaign}
        any={say.anyCampaign}
        value={campaignId}
        known={(campaigns.value?.items ?? []).map((campaign) => ({ value: campaign.campaignId, text: campaign.name }))}
        onChange={(campaignId) => set({ campaignId })}
      />
      <Select
        label={say.kind}
        value={test}
        options={[
          { value: '', text: say.real },
          { value: 'true', text: say.tests },
        ]}
        onChange={(test) => set({ test })}
      />
      {[agents, campaigns].map(({ problem, reload }) => problem && <Problem problem={problem} onRetry={reload} />)}
      <TimeField label={say.from} value={acceptedFrom} onChange={(acceptedFrom) => set({ acceptedFrom })} />
      <TimeField label={say.to} value={acceptedTo} onChange={(acceptedTo) => set({ acceptedTo })} />
      {Object.keys(filters).length > 0 && (
        <Button icon="x" kind="quiet" onClick={() => set(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}>
          {say.filters.clear}
        </Button>
      )}
    </search>
  )
}

function SearchField({ place, filters }: Props) {
  const shown = filters.recipient ?? filters.clientReferenceId ?? ''
  const [text, setText] = useState(shown)
  // The address may change by a link, or by the browser's back button.
  useLayoutEffect(() => setText(shown), [shown])
  const find = (event: Event) => {
    event.preventDefault()
    // The likeliest meaning. If it finds nothing, the page offers the others.
    const { messageId, recipient, clientReferenceId } = meaningsOf(text)
    if (messageId !== undefined) go({ accountId: place.accountId, path: ['messages', messageId] })
    else filter(place, { recipient, clientReferenceId: recipient === undefined ? clientReferenceId : undefined, cursor: undefined })
  }
  return (
    <form class="filters-search" onSubmit={find}>
      <TextField label={say.filters.search} value={text} onInput={setText} placeholder={say.searchHint} autocomplete="off" />
      <Button icon="search" type="submit">
        {say.filters.find}
      </Button>
    </form>
  )
}

type ListProps = {
  label: string
  /** The text of the option for all. */
  any: string
  value: string
  known: { value: string; text: string }[]
  onChange: (value: string) => void
}

/** A filter by a value of a list. A link may have a value that is not in the list, such as an agent that is no longer assigned. */
function ListFilter({ label, any, value, known, onChange }: ListProps) {
  const isKnown = value === '' || known.some((each) => each.value === value)
  const own = isKnown ? [] : [{ value, text: statusText(value) }]
  return <Select label={label} value={value} options={[{ value: '', text: any }, ...known, ...own]} onChange={onChange} />
}
