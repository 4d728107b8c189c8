import { useRef, useState } from 'preact/hooks'
import { type Agent, nameOf, sendingAgents, useAgents } from '../../app/agents.ts'
import { type ApiProblem, post } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { filter, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Select } from '../../kit/controls.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Problem } from '../../kit/problem.tsx'
import { colorOf, type DrawnButton, type Platform } from '../../phone/drawn.ts'
import { Phone } from '../../phone/phone.tsx'
import { PlatformChoice, platformOf } from '../../phone/platform-choice.tsx'
import * as say from '../../words/en-phones.ts'
import type { Conversation } from './ledger.ts'
import type { PhoneSummary } from './phone.ts'
import { ShareLocation } from './share-location.tsx'
import { StageTools } from './stage-tools.tsx'

type Props = {
  phone: PhoneSummary
  conversations: Conversation[]
  place: Place
  isLoading: boolean
  /** The problem that the page shows already. The stage does not say it again. */
  alert: ApiProblem | undefined
  ledgerProblem: ApiProblem | undefined
  onChange: () => void
}

/** The phone itself. A viewer sees it, and can't use it. */
export function Stage({ phone, conversations, place, isLoading, alert, ledgerProblem, onChange }: Props) {
  const { account } = useFrame()
  const { agents = [] } = useAgents()
  const { simulator } = useCarriers()
  const named = conversations.map((each) => ({ ...each, name: nameOfSender(each, agents) }))
  const { shown, keep } = useShown(place, named, { agents, agentIds: simulator?.agentIds ?? [] }, isLoading)
  const { agentId, waiting } = shown
  const { act, tap, problem: actProblem, note, isSharing, setSharing } = useActions(phone, agentId, onChange)
  const problem = actProblem ?? ledgerProblem
  const mayAct = account.role !== 'viewer'
  const platform = platformOf(place.query.get('as'))
  const sender = { name: shown.name, isVerified: agentId !== undefined, color: colorOf(shown.key) }
  return (
    <section class="stage" aria-label={say.stage} aria-busy={isLoading}>
      <StageHead platform={platform} conversations={named} shown={shown} place={place} />
      {!phone.online && (
        <p class="stage-note tone-warn">
          <Icon name="power" size={15} /> {say.isOffline(waiting)}
        </p>
      )}
      {shown.isCut && (
        <p class="stage-note tone-plain">
          <Icon name="history" size={15} /> {say.olderMissing}
        </p>
      )}
      <Phone platform={platform} sender={sender} entries={shown.entries} onTap={mayAct && phone.online ? tap : undefined} />
      <p class="stage-status" role="status">
        {note}
      </p>
      {problem && problem.code !== alert?.code && <Problem problem={problem} />}
      {mayAct && <StageTools phone={phone} canReply={agentId !== undefined} act={act} onWrite={keep} onShare={() => setSharing(true)} />}
      {account.role === 'viewer' && <p class="soft">{say.onlyReads}</p>}
      {isSharing && <ShareLocation act={act} onClose={() => setSharing(false)} />}
    </section>
  )
}

function nameOfSender({ name, agentId }: Pick<Conversation, 'name' | 'agentId'>, agents: Agent[]): string {
  const agent = agents.find((each) => each.agentId === agentId)
  return agent === undefined ? name : nameOf(agent)
}

function emptyWith(agent: Agent | undefined): Conversation {
  const name = agent === undefined ? '' : nameOf(agent)
  return { key: agent?.agentId ?? '', agentId: agent?.agentId, name, entries: [], waiting: 0, isCut: false, lastAt: '' }
}

/** `agentIds`: those of the simulated network. The phone gets nothing from the others. */
type Agents = { agents: Agent[]; agentIds: string[] }

/**
 * The conversation on the screen: `?with=`; without it, the most recent one when the phone was opened. It stays the same while others get
 * messages: a person may be writing in it. An unused phone shows the agent that the page Send suggests until it gets its first message, or until
 * the person writes to that agent: `keep`.
 */
function useShown(place: Place, conversations: Conversation[], { agents, agentIds }: Agents, isLoading: boolean) {
  const first = useRef<string>(undefined)
  const asked = conversations.find(({ key }) => key === place.query.get('with'))?.key
  const suggested = () => sendingAgents(agents).find(({ agentId }) => agentIds.includes(agentId))
  if (asked !== undefined) first.current = undefined
  else if (!isLoading) first.current ??= conversations[0]?.key
  const key = asked ?? first.current
  const shown =
    key === undefined
      ? (conversations[0] ?? emptyWith(suggested()))
      : (conversations.find((each) => each.key === key) ?? emptyWith(agents.find(({ agentId }) => agentId === key)))
  const keep = () => {
    if (asked === undefined && shown.agentId !== undefined) first.current ??= shown.key
  }
  return { shown, keep }
}

type HeadProps = { platform: Platform; conversations: Conversation[]; shown: Conversation; place: Place }

function StageHead({ platform, conversations, shown, place }: HeadProps) {
  const all = conversations.some(({ key }) => key === shown.key) ? conversations : [shown, ...conversations]
  return (
    <div class="stage-head">
      <PlatformChoice platform={platform} onChange={(as) => filter(place, { as })} />
      {all.length > 1 && (
        <Select
          label={say.conversation}
          value={shown.key}
          options={all.map(({ key, name, agentId }) => ({ value: key, text: agentId === undefined ? `SMS: ${name}` : name }))}
          onChange={(key) => filter(place, { with: key })}
        />
      )}
    </div>
  )
}

export type Act = (action: string, body?: object) => Promise<boolean>

/** What the owner of the phone does. */
function useActions(phone: PhoneSummary, agentId: string | undefined, onChange: () => void) {
  const { account } = useFrame()
  const [problem, setProblem] = useState<ApiProblem>()
  const [note, setNote] = useState('')
  const [isSharing, setSharing] = useState(false)
  const sending = useRef(new Set<string>())
  const act: Act = async (action, body = {}) => {
    // A double click would send it twice. The buttons are not disabled meanwhile, since they would lose the focus.
    if (sending.current.has(action)) return false
    sending.current.add(action)
    setProblem(undefined)
    setNote('')
    const isSwitch = action === 'offline' || action === 'online'
    const path = `/accounts/${account.accountId}/phones/${phone.phoneId}/${action}`
    const failed = await post(path, isSwitch ? {} : { agentId, ...body }).then(
      () => undefined,
      (error: ApiProblem) => error,
    )
    sending.current.delete(action)
    setProblem(failed)
    onChange()
    return failed === undefined
  }
  const tap = (button: DrawnButton, messageId: string) => {
    void act('tap', { messageId, button: button.key }).then((isDone) => {
      if (!isDone) return
      setNote(button.kind === 'reply' ? '' : say.opens(button.kind, button.opens ?? ''))
      // A phone asks its owner before it shares where it is.
      if (button.kind === 'share-location') setSharing(true)
    })
  }
  return { act, tap, problem, note, isSharing, setSharing }
}
