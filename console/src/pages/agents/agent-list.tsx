import { type Agent, nameOf } from '../../app/agents.ts'
import { useCarriers } from '../../app/carriers.ts'
import { filter, go, linkTo, linkWith, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, ButtonLink, Choice, Select } from '../../kit/controls.tsx'
import { Empty, PageHead } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-agents.ts'
import { type AgentRecord, activeIn, carrierOf, Health, pathOf } from './agent.tsx'
import { AgentForm } from './agent-form.tsx'

/** The agents of the account. Operators can also see those of all accounts. */
export function AgentList({ place }: { place: Place }) {
  const { account } = useFrame()
  const isOperator = account.role === 'operator'
  const isAll = isOperator && place.query.has('all')
  const created = (agentId: string) => go({ accountId: account.accountId, path: ['agents', agentId] })
  return (
    <>
      <PageHead title={pages.agents} note={say.note}>
        <AsCurl path="agents" isAdmin={isAll} />
        {isOperator && (
          <ButtonLink kind="primary" icon="plus" href={linkWith(place, { new: 'true' })}>
            {say.add}
          </ButtonLink>
        )}
      </PageHead>
      <search class="filters card agent-filters">
        {isOperator && (
          <Choice
            label={say.which}
            value={isAll ? 'all' : 'account'}
            options={[
              { value: 'account', text: say.ofAccount },
              { value: 'all', text: say.all },
            ]}
            onChange={(value) => filter(place, { all: value === 'all' ? 'true' : undefined, active: undefined })}
          />
        )}
        {!isAll && <ActiveFilter place={place} />}
      </search>
      <Agents place={place} isAll={isAll} />
      {isOperator && place.query.has('new') && <AgentForm onDone={created} onClose={() => filter(place, { new: undefined })} />}
    </>
  )
}

function ActiveFilter({ place }: { place: Place }) {
  return (
    <>
      <Select
        label={say.status}
        value={place.query.get('active') ?? ''}
        options={[
          { value: '', text: say.any },
          { value: 'true', text: say.active },
          { value: 'false', text: say.inactive },
        ]}
        onChange={(active) => filter(place, { active })}
      />
      {place.query.has('active') && <Clear place={place} />}
    </>
  )
}

const Clear = ({ place }: { place: Place }) => (
  <Button icon="x" kind="quiet" onClick={() => filter(place, { active: undefined })}>
    {say.clear}
  </Button>
)

/** `isAll`: of the installation, with the number of accounts that have each. */
function Agents({ place, isAll }: { place: Place; isAll: boolean }) {
  const { accountId } = useFrame().account
  const { carriers, problem, reload } = useCarriers()
  const active = place.query.get('active')
  const own = pathOf(accountId, undefined, active === null ? '' : `?active=${encodeURIComponent(active)}`)
  return (
    <>
      {problem && !isAll && <Problem problem={problem} onRetry={reload} />}
      <LongTable<Agent | AgentRecord>
        label={pages.agents}
        path={isAll ? '/agents' : own}
        columns={[
          { title: say.agent },
          { title: say.here },
          { title: say.billingType, isWide: true },
          { title: say.carrier, isWide: true },
          ...(isAll ? [{ title: pages.accounts, isNumber: true }] : []),
        ]}
        keyOf={({ agentId }) => agentId}
        cells={(agent) => (
          <>
            <td>
              <a class="row-link" href={linkTo({ accountId, path: ['agents', agent.agentId] })}>
                {nameOf(agent)}
              </a>
              <small>
                <code>{agent.agentId}</code>
              </small>
            </td>
            <td>
              <Health active={'active' in agent ? agent.active : activeIn(accountId, agent)} />
            </td>
            <td class="is-wide">{say.billing[agent.billingType]}</td>
            <td class="is-wide">{'carrier' in agent ? agent.carrier : carrierOf(carriers, agent.agentId)}</td>
            {'accounts' in agent && <td class="num">{agent.accounts.length}</td>}
          </>
        )}
        empty={<NoAgent place={place} isAll={isAll} />}
      />
    </>
  )
}

function NoAgent({ place, isAll }: { place: Place; isAll: boolean }) {
  if (place.query.has('active'))
    return (
      <Empty icon="search" title={say.noneFound}>
        <Clear place={place} />
      </Empty>
    )
  return (
    <Empty icon="bot" title={say.empty}>
      {!isAll && <p>{say.emptyHint}</p>}
    </Empty>
  )
}
