import { useState } from 'preact/hooks'
import { ask, post } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useRun } from '../../app/run.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-campaign.ts'
import { type Campaign, pathOfCampaign } from './campaign.ts'

type Move = 'pause' | 'resume' | 'cancel'
/** What the move would affect now. */
type CancelPlan = { waiting: number; waitingSms: number; notCreated: number }
type RetryPlan = { messages: number; isMore: boolean; withdrawn: number }
type Open = { action: Move; plan: CancelPlan } | { action: 'retry'; plan: RetryPlan }

const ACTIONS: Record<Campaign['status'], Open['action'][]> = {
  SCHEDULED: ['cancel'],
  RUNNING: ['pause', 'cancel'],
  PAUSED: ['resume', 'cancel'],
  COMPLETED: ['retry'],
  CANCELLED: ['retry'],
}
const ICONS = { pause: 'pause', resume: 'play', cancel: 'ban', retry: 'rotate-ccw' } as const

/** Pause, resume, cancel, and send again what failed. Each first counts what it would affect, says so, and asks. */
export function CampaignActions({ campaign, onChanged }: { campaign: Campaign; onChanged: () => void }) {
  const { accountId } = useFrame().account
  const { campaignId, status, counts, retriedBy } = campaign
  const path = pathOfCampaign(accountId, campaignId)
  const [open, setOpen] = useState<Open>()
  const { run, isBusy, problem } = useRun(onChanged)
  const prepare = (action: Open['action']) =>
    run(async () => {
      // With the messages that a cancellation withdrew. The person may leave them out.
      const plan = action === 'retry' ? 'retry-plan?includeCancelled=true' : 'cancel-plan'
      setOpen({ action, plan: await ask(`${path}/${plan}`) } as Open)
      return ''
    })
  const close = () => setOpen(undefined)
  const done = () => {
    close()
    onChanged()
  }
  const actions = ACTIONS[status].filter((action) => action !== 'retry' || (counts.FAILED > 0 && retriedBy === undefined))
  return (
    <div class="camp-actions">
      {actions.map((action) => (
        <Button icon={ICONS[action]} kind={action === 'cancel' ? 'danger' : 'plain'} isBusy={isBusy} onClick={() => void prepare(action)}>
          {say.actionTexts[action]}
        </Button>
      ))}
      {problem && <Problem problem={problem} />}
      {open?.action === 'retry' && <RetryDialog plan={open.plan} path={path} onClose={close} />}
      {open && open.action !== 'retry' && <MoveDialog {...open} path={path} onDone={done} onClose={close} />}
    </div>
  )
}

type MoveProps = { action: Move; plan: CancelPlan; path: string; onDone: () => void; onClose: () => void }

function MoveDialog({ action, plan: { waiting, waitingSms, notCreated }, path, onDone, onClose }: MoveProps) {
  const { withPassword } = useFrame()
  const run = () => withPassword(() => post(`${path}/${action}`))
  return (
    <Sure title={say.actionTitles[action]} action={say.actionTitles[action]} run={run} closing={say.keep} onDone={onDone} onClose={onClose}>
      <p>{say.actionBodies[action](say.affected(waiting, waitingSms, notCreated))}</p>
    </Sure>
  )
}

function RetryDialog({ plan, path, onClose }: { plan: RetryPlan; path: string; onClose: () => void }) {
  const { accountId } = useFrame().account
  const { messages, withdrawn, isMore } = plan
  const failed = messages - withdrawn
  // If all messages were withdrawn, there is nothing else to send again. A count that was cut may have failures behind its end.
  const [includeCancelled, setIncludeCancelled] = useState(failed === 0 && !isMore)
  const retry = async () => {
    const { campaignId } = await post<Campaign>(`${path}/retry`, { includeCancelled })
    go({ accountId, path: ['campaigns', campaignId] })
  }
  return (
    <Sure title={say.actionTitles.retry} action={say.actionTitles.retry} run={retry} closing={say.keep} onDone={onClose} onClose={onClose}>
      <p>{say.retryBody(includeCancelled ? messages : failed, isMore)}</p>
      {withdrawn > 0 && (
        <label class="check">
          <input type="checkbox" checked={includeCancelled} onChange={() => setIncludeCancelled(!includeCancelled)} />
          {say.withdrawn(withdrawn, isMore)}
        </label>
      )}
    </Sure>
  )
}
