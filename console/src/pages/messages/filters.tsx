import { useEffect, useState } from 'preact/hooks'
import { nameOf, useAgents } from '../../app/agents.ts'
import { filter, go, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, Field, Select, TextField } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { FILTERS, type Filters, fromField, meaningsOf, toField } from './query.ts'

const say = words.messages.filters
const { statuses } = words.messages

type Props = { place: Place; filters: Filters }

/** The filters of the list. Each change is in the address at once, and starts again with the newest messages. */
export function FilterBar({ place, filters }: Props) {
  const set = (changes: Record<string, string | undefined>) => filter(place, { ...changes, cursor: undefined })
  const clear = () => filter(place, Object.fromEntries([...FILTERS, 'cursor'].map((name) => [name, undefined])))
  const isFiltered = Object.keys(filters).length > 0
  return (
    <search class="filters card" aria-label={say.label}>
      <SearchField place={place} filters={filters} />
      <StatusFilter status={filters.status ?? ''} onChange={(status) => set({ status })} />
      <AgentFilter agentId={filters.agentId ?? ''} onChange={(agentId) => set({ agentId })} />
      <CampaignFilter campaignId={filters.campaignId ?? ''} onChange={(campaignId) => set({ campaignId })} />
      <Select
        label={say.kind}
        value={filters.test ?? ''}
        options={[
          { value: '', text: say.real },
          { value: 'true', text: say.tests },
        ]}
        onChange={(test) => set({ test })}
      />
      <TimeField label={say.from} value={filters.acceptedFrom} onChange={(acceptedFrom) => set({ acceptedFrom })} />
      <TimeField label={say.to} value={filters.acceptedTo} onChange={(acceptedTo) => set({ acceptedTo })} />
      {isFiltered && (
        <Button icon="x" kind="quiet" onClick={clear}>
          {say.clear}
        </Button>
      )}
    </search>
  )
}

function SearchField({ place, filters }: Props) {
  const shown = filters.recipient ?? filters.clientReferenceId ?? ''
  const [text, setText] = useState(shown)
  // The address may change by a link, or by the browser's back button.
  useEffect(() => setText(shown), [shown])
  const find = (event: Event) => {
    event.preventDefault()
    // The likeliest meaning. If it finds nothing, the page offers the others.
    const { messageId, recipient, clientReferenceId } = meaningsOf(text)
    if (messageId !== undefined) go({ accountId: place.accountId, path: ['messages', messageId] })
    else filter(place, { recipient, clientReferenceId: recipient === undefined ? clientReferenceId : undefined, cursor: undefined })
  }
  return (
    <form class="filters-search" onSubmit={find}>
      <TextField label={say.search} value={text} onInput={setText} placeholder={say.searchHint} autocomplete="off" />
      <Button icon="search" type="submit">
        {say.find}
      </Button>
    </form>
  )
}

const COMBINED = [
  { value: 'FAILED,EXPIRED', text: say.unsuccessful },
  { value: 'ACCEPTED,SENDING', text: say.waiting },
]

function StatusFilter({ status, onChange }: { status: string; onChange: (status: string) => void }) {
  const options = [{ value: '', text: say.anyStatus }, ...Object.entries(statuses).map(([value, text]) => ({ value, text })), ...COMBINED]
  // A link may combine other statuses.
  const names = status.split(',').map((each) => statuses[each as keyof typeof statuses] ?? each)
  const own = options.some(({ value }) => value === status) ? [] : [{ value: status, text: say.several(names) }]
  return <Select label={say.status} value={status} options={[...options, ...own]} onChange={onChange} />
}

function AgentFilter({ agentId, onChange }: { agentId: string; onChange: (agentId: string) => void }) {
  const { agents: all, problem, reload } = useAgents()
  const agents = (all ?? []).map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))
  // An agent that is no longer assigned has messages, too.
  const own = agentId === '' || agents.some((agent) => agent.value === agentId) ? [] : [{ value: agentId, text: agentId }]
  const options = [{ value: '', text: say.anyAgent }, ...agents, ...own]
  return (
    <>
      <Select label={say.agent} value={agentId} options={options} onChange={onChange} />
      {problem && <Problem problem={problem} onRetry={reload} />}
    </>
  )
}

type Campaign = { campaignId: string; name: string }

function CampaignFilter({ campaignId, onChange }: { campaignId: string; onChange: (campaignId: string) => void }) {
  const { account } = useFrame()
  const { value, problem, reload } = useResource<{ items: Campaign[] }>(`/accounts/${account.accountId}/campaigns?limit=200`)
  const campaigns = (value?.items ?? []).map((campaign) => ({ value: campaign.campaignId, text: campaign.name }))
  const isKnown = campaignId === '' || campaigns.some((campaign) => campaign.value === campaignId)
  const own = isKnown ? [] : [{ value: campaignId, text: say.unknownCampaign(campaignId) }]
  const options = [{ value: '', text: say.anyCampaign }, ...campaigns, ...own]
  return (
    <>
      <Select label={say.campaign} value={campaignId} options={options} onChange={onChange} />
      {problem && <Problem problem={problem} onRetry={reload} />}
    </>
  )
}

type TimeProps = { label: string; value: string | undefined; onChange: (time: string | undefined) => void }

function TimeField({ label, value, onChange }: TimeProps) {
  return (
    <Field label={label}>
      {({ id, describedBy }) => (
        <input
          class="input"
          id={id}
          type="datetime-local"
          aria-describedby={describedBy}
          value={toField(value)}
          onChange={(event) => onChange(fromField(event.currentTarget.value))}
        />
      )}
    </Field>
  )
}
