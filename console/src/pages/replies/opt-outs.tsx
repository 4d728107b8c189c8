import { ask } from '../../app/api.ts'
import type { LiveEvent } from '../../app/live.ts'
import { filter, linkTo, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, Select } from '../../kit/controls.tsx'
import { Ago, Empty, Pill } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-opt-outs.ts'
import * as replyWords from '../../words/en-replies.ts'
import * as filterWords from '../../words/en-report-filters.ts'
import { useAgentNames } from './agent-names.ts'
import { Head, useChanges } from './changes.tsx'
import { NewOptOut } from './new-opt-out.tsx'
import { NumberSearch } from './number-search.tsx'

type OptOut = { phone: string; agentId: string; block: boolean; source: keyof typeof say.sources; changedAt: string }

type Change = 'block' | 'unblock' | 'remove'
type OnOpen = (open: { change: Change; optOut: OptOut }) => void

/** An event reports an opt-out, but not its end, so the list is also polled. */
const FRESH = {
  isAbout: (event: LiveEvent) => event.name === 'busy' || (event.name === 'event' && event.data.type === 'recipient.opted_out'),
}

/** Who gets no campaigns, or nothing at all. */
export function OptOuts({ place }: { place: Place }) {
  const { account } = useFrame()
  const { open, setOpen, version, status, ...changes } = useChanges<{ change: Change; optOut: OptOut } | 'new'>()
  const { options, nameFor, isActive, problem, reload } = useAgentNames()
  const { phone = '', agentId = '' } = Object.fromEntries(place.query)
  const filters = new URLSearchParams({ ...(phone && { phone }), ...(agentId && { agentId }) })
  const list = ['opt-outs', filters].filter(String).join('?')
  const isFiltered = filters.size > 0
  // The address may name an agent that is unknown.
  const isKnown = agentId === '' || nameFor(agentId) !== agentId
  return (
    <>
      <Head current="">
        <AsCurl path={list} />
        {account.role !== 'viewer' && (
          <Button icon="plus" kind="primary" onClick={() => setOpen('new')}>
            {say.add}
          </Button>
        )}
      </Head>
      <NumberSearch place={place}>
        <Select
          label={replyWords.agent}
          value={agentId}
          options={[{ value: '', text: say.anyAgent }, ...options, ...(isKnown ? [] : [{ value: agentId, text: agentId }])]}
          onChange={(chosen) => filter(place, { agentId: chosen })}
        />
        {problem && <Problem problem={problem} onRetry={reload} />}
        {isFiltered && (
          <Button icon="x" kind="quiet" onClick={() => filter(place, { phone: undefined, agentId: undefined })}>
            {filterWords.clear}
          </Button>
        )}
      </NumberSearch>
      {status}
      <OptOutTable list={list} isFiltered={isFiltered} version={version} nameFor={nameFor} isActive={isActive} onOpen={setOpen} />
      {open === 'new' && <NewOptOut phone={phone} agents={options} {...changes} />}
      {open !== undefined && open !== 'new' && <ChangeDialog {...open} agent={nameFor(open.optOut.agentId)} {...changes} />}
    </>
  )
}

type TableProps = Pick<ReturnType<typeof useAgentNames>, 'nameFor' | 'isActive'> & {
  list: string
  isFiltered: boolean
  version: number
  onOpen: OnOpen
}

function OptOutTable({ list, isFiltered, version, nameFor, isActive, onOpen }: TableProps) {
  const { accountId, role } = useFrame().account
  const isAdmin = role !== 'viewer'
  return (
    <LongTable<OptOut>
      label={replyWords.tabs.optOuts}
      path={`/accounts/${accountId}/${list}`}
      version={version}
      fresh={FRESH}
      columns={[{ title: replyWords.number }, ...(isAdmin ? [{ title: replyWords.change }] : [])]}
      // A viewer sees masked numbers, of which several may look the same.
      keyOf={({ phone, agentId, changedAt }) => [phone, agentId, changedAt].join()}
      empty={
        <Empty icon="search" title={isFiltered ? say.nothingFound : say.empty}>
          <p>{isFiltered ? say.nothingFoundHint : say.emptyHint}</p>
        </Empty>
      }
      cells={(optOut) => (
        <>
          <td>
            {isAdmin ? (
              <a class="row-number" href={linkTo({ accountId, path: ['replies', 'number'], query: { phone: optOut.phone } })}>
                {grouped(optOut.phone)}
              </a>
            ) : (
              <b class="row-number">{grouped(optOut.phone)}</b>
            )}{' '}
            <Pill tone={optOut.block ? 'bad' : 'warn'}>{say.stopped[optOut.block ? 'all' : 'campaigns']}</Pill>
            <small>
              {nameFor(optOut.agentId)} · {say.sources[optOut.source]} · <Ago at={optOut.changedAt} />
            </small>
          </td>
          {isAdmin && (
            <td>
              <span class="row-actions">
                {!isActive(optOut.agentId) && <small>{say.isInactive}</small>}
                {isActive(optOut.agentId) &&
                  ([optOut.block ? 'unblock' : 'block', 'remove'] as const).map((change) => (
                    <Button kind="quiet" icon={change === 'remove' ? 'trash-2' : 'ban'} onClick={() => onOpen({ change, optOut })}>
                      {say.changes[change]}
                    </Button>
                  ))}
              </span>
            </td>
          )}
        </>
      )}
    />
  )
}

type ChangeProps = { change: Change; optOut: OptOut; agent: string; onDone: (said: string) => void; onClose: () => void }

/** Asks before a change, and says what it does to whom. */
function ChangeDialog({ change, optOut: { phone, agentId }, agent, onDone, onClose }: ChangeProps) {
  const { account } = useFrame()
  const path = `/accounts/${account.accountId}/opt-outs/${encodeURIComponent(phone)}`
  const run = async () =>
    change === 'remove'
      ? await ask(`${path}?${new URLSearchParams({ agentId })}`, { method: 'DELETE' })
      : await ask(path, { method: 'PUT', body: { agentId, block: change === 'block' } })
  return (
    <Sure
      title={`${say.changes[change]}: ${grouped(phone)}`}
      action={say.changes[change]}
      run={run}
      onDone={() => onDone(say.done[change])}
      onClose={onClose}
    >
      <p>{say.sure[change](grouped(phone), agent)}</p>
    </Sure>
  )
}
