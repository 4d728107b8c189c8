import { type Agent, nameOf } from '../../app/agents.ts'
import { ask } from '../../app/api.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-agents.ts'
import { ownPathOf, pathOf, type Use } from './agent.tsx'

/** `known`: what the page has read, perhaps some seconds ago. */
type Props = { how: 'deactivate' | 'unassign'; agent: Agent; known: Use; onDone: () => void; onClose: () => void }

/** Ends the use of an agent in the account. It first reads how much fails, and asks; if something fails, the person has to type the agent's id. */
export function EndAgent({ how, agent, known, onDone, onClose }: Props) {
  const { agentId } = agent
  const { accountId, role } = useFrame().account
  const { value, problem, reload } = useResource<{ use: Use }>(pathOf(accountId, agentId))
  const use = value?.use ?? known
  const fails = use.messages + use.campaigns > 0
  const isEnd = how === 'unassign'
  const run = () =>
    isEnd
      ? ask(pathOf(accountId, agentId), { method: 'DELETE' })
      : ask(ownPathOf(accountId, agentId), { method: 'PATCH', body: { active: false } })
  return (
    <Sure
      title={`${say.actions[how]}: ${nameOf(agent)}`}
      action={say.actions[how]}
      run={run}
      onDone={onDone}
      onClose={onClose}
      {...(fails && { typed: agentId })}
    >
      {problem && <Problem problem={problem} onRetry={reload} />}
      <ul class="agent-effects">
        <li>{say.requestsFail}</li>
        {fails ? (
          <>
            <li>
              <b>{say.messagesFail(use.messages)}</b>
            </li>
            <li>
              <b>{say.campaignsFail(use.campaigns)}</b>
            </li>
          </>
        ) : (
          <li>{say.nothingFails}</li>
        )}
        <li>{say.repliesEnd(use.autoReplies, isEnd)}</li>
        {isEnd && <li>{say.optOutsStay(use.optOuts)}</li>}
        {!isEnd && <li>{role === 'operator' ? say.failedStay : say.onlyOperator}</li>}
      </ul>
    </Sure>
  )
}
