import { type Agent, nameOf } from '../../app/agents.ts'
import { useCarriers } from '../../app/carriers.ts'
import { useFresh } from '../../app/fresh.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Facts, Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-agents.ts'
import { AgentActions } from './actions.tsx'
import { type AgentRecord, activeIn, carrierOf, Health, type Own, pathOf, recordPathOf } from './agent.tsx'

/** What Herald reads for the agent counts the queue, so it is not read every second. */
const PACE = { everyMs: 5_000, restMs: 15_000 }

/** One agent: what it is, and what can be done about it. */
export function AgentPage({ agentId }: { agentId: string }) {
  const { accountId, role } = useFrame().account
  const record = useResource<AgentRecord>(role === 'operator' ? recordPathOf(agentId) : undefined)
  // Only operators see an agent that the account does not have.
  const activeHere = record.value && activeIn(accountId, record.value)
  const isAssigned = role !== 'operator' || activeHere !== undefined
  const own = useResource<Own>(isAssigned ? pathOf(accountId, agentId) : undefined)
  useFresh(own.reload, PACE)
  const changed = (isUnassigned: boolean) => {
    // The account no longer has it.
    if (!isUnassigned) own.reload()
    record.reload()
  }
  const agent = own.value?.agent ?? record.value
  const active = own.value?.agent.active ?? activeHere
  return (
    <>
      <Crumbs page="agents" id={agentId} />
      <div class="title-row">
        <h1 class="agent-title">{agent ? nameOf(agent) : agentId}</h1>
        {agent && <Health active={active} />}
      </div>
      {[own, record].map(({ problem, reload }) => problem && <Problem problem={problem} onRetry={reload} />)}
      {agent === undefined && (own.isLoading || record.isLoading) && <Loading />}
      {agent && (
        <>
          {active === false && (
            <p class="agent-outcome">
              {say.isInactive} {role !== 'operator' && say.onlyOperator}
            </p>
          )}
          <AgentActions agentId={agentId} own={own.value} isAssigned={isAssigned} onChanged={changed} />
          <AgentFacts agent={agent} record={record.value} />
        </>
      )}
    </>
  )
}

function AgentFacts({ agent, record }: { agent: Agent | AgentRecord; record: AgentRecord | undefined }) {
  const { carriers, problem, reload } = useCarriers()
  const carrier = record?.carrier ?? carrierOf(carriers, agent.agentId)
  return (
    <section class="card agent-part" aria-labelledby="agent-facts">
      <h2 id="agent-facts">{say.label}</h2>
      <Facts
        facts={[
          [say.name, agent.name],
          [say.displayName, 'displayName' in agent ? agent.displayName : undefined],
          [say.billingType, [say.billing[agent.billingType], agent.billingType === 'basic' && <small>{say.basicHint}</small>]],
          [say.carrier, problem && !record ? <Problem problem={problem} onRetry={reload} /> : carrier],
        ]}
      />
    </section>
  )
}
