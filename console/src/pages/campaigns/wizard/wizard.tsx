import { useEffect, useRef, useState } from 'preact/hooks'
import { type Agent, nameOf, sendingAgents, useAgents } from '../../../app/agents.ts'
import { useAll } from '../../../app/all.ts'
import { post } from '../../../app/api.ts'
import { go, linkTo, type Place } from '../../../app/place.ts'
import { useIsHere, useRun } from '../../../app/run.ts'
import { useFrame, whyNotSend } from '../../../app/session.tsx'
import { AsCurl } from '../../../kit/as-curl.tsx'
import { Button } from '../../../kit/controls.tsx'
import { Crumbs } from '../../../kit/crumbs.tsx'
import { Empty, PageHead } from '../../../kit/display.tsx'
import { Reading } from '../../../kit/reading.tsx'
import * as campaignWords from '../../../words/en-campaigns.ts'
import * as sendWords from '../../../words/en-send.ts'
import * as say from '../../../words/en-wizard.ts'
import type { Campaign } from '../campaign.ts'
import { type Counted, reachOf, useAudience } from './audience.tsx'
import { ContentStep, type Template } from './content-step.tsx'
import { bodyOf, type Draft, missingIn, STEPS, type Step, type StepProps, stepOf } from './draft.ts'
import { placeOfStep, Refused, StepHead, Steps } from './frame.tsx'
import { GroupsStep } from './groups-step.tsx'
import { ReviewStep } from './review-step.tsx'
import { SmsStep } from './sms-step.tsx'
import { TimeStep } from './time-step.tsx'
import { useWizard } from './use-wizard.ts'

/** Prepares a campaign in five steps, and creates it. The step is in the address. */
export function WizardPage({ place }: { place: Place }) {
  const { account } = useFrame()
  const whyNot = whyNotSend(account)
  const { agents, ...read } = useAgents(whyNot === undefined)
  const active = sendingAgents(agents ?? [])
  const none = whyNot ?? (agents && active.length === 0 && sendWords.noAgent)
  return (
    <>
      <Crumbs page="campaigns">{campaignWords.add}</Crumbs>
      <PageHead title={campaignWords.add} />
      {none && <Empty icon="hand" title={none} />}
      <Reading value={agents} {...read} />
      {active.length > 0 && <Wizard agents={active} step={STEPS.find((step) => step === place.query.get('step')) ?? 'content'} />}
    </>
  )
}

function Wizard({ agents, step }: { agents: Agent[]; step: Step }) {
  const { accountId } = useFrame().account
  const wizard = useWizard()
  const { draft, template, templates, agentName } = useChosen(wizard.draft, agents)
  const counted = useCounted(draft, step)
  const reach = counted.value && reachOf(counted.value)
  const body = bodyOf(draft, template?.basic === true)
  const { send, isBusy, problem } = useSend(wizard, body)
  const [typed, setTyped] = useState('')
  const [tried, setTried] = useState<Step>()
  const missing = missingIn(draft)
  const wrong: StepProps['wrong'] = (path) =>
    [...(problem?.details ?? []), ...(tried === step ? missing : [])].find((each) => each.path.startsWith(path))?.reason
  const isReady = missing.length === 0 && template !== undefined && reach !== undefined && reach.reached > 0 && typed === `${reach.reached}`
  const show = (by: 1 | -1) => go(placeOfStep(accountId, STEPS[STEPS.indexOf(step) + by] as Step))
  const submit = (event: Event) => {
    event.preventDefault()
    setTried(step)
    if (missing.some((each) => stepOf(each) === step)) focusWrong(event.currentTarget as HTMLFormElement)
    else if (step !== 'review') show(1)
    else if (isReady) void send()
  }
  const change = (more: Partial<Draft>) => wizard.change({ agentId: draft.agentId, ...more })
  const startAnew = () => {
    wizard.startAnew(draft)
    // The next campaign reaches people a second time, so the person confirms how many.
    setTyped('')
  }
  const props = { draft, change, wrong, agents, templates, template, counted, missing, agentName, typed, onType: setTyped }
  const StepFields = FIELDS[step]
  return (
    <>
      <Steps step={step} />
      <form class="card camp-wizard" onSubmit={submit} noValidate>
        <StepHead step={step} />
        <Reading {...templates} />
        <StepFields {...props} />
        {problem && <Refused problem={problem} onAnew={startAnew} />}
        <div class="form-end">
          {step !== 'content' && <Button onClick={() => show(-1)}>{say.back}</Button>}
          {step === 'review' && <AsCurl path="campaigns" body={body} headers={{ 'Idempotency-Key': wizard.key }} />}
          <Button kind="primary" type="submit" isBusy={isBusy} disabled={step === 'review' && !isReady}>
            {step === 'review' ? say.sends[draft.starts](reach?.inWords ?? '…') : say.next}
          </Button>
        </div>
      </form>
    </>
  )
}

const FIELDS = { content: ContentStep, groups: GroupsStep, time: TimeStep, sms: SmsStep, review: ReviewStep }

/** The draft with an agent and a template that it can have now. */
function useChosen(given: Draft, agents: Agent[]) {
  const { value: all, ...rest } = useAll<Template>('templates')
  const value = all?.filter(({ status }) => status === 'APPROVED')
  const template = value?.find(({ id }) => String(id) === given.templateId)
  const agent = agents.find(({ agentId }) => agentId === given.agentId) ?? (agents[0] as Agent)
  const draft = { ...given, agentId: agent.agentId, templateId: value && !template ? '' : given.templateId }
  return { draft, template, templates: { value, ...rest }, agentName: nameOf(agent) }
}

/** Whom the draft reaches. It is counted again for the review, since the groups may have grown. */
function useCounted(draft: Draft, step: Step): Counted {
  const counted = useAudience(draft)
  useEffect(() => {
    if (step === 'review') counted.reload()
  }, [step])
  return counted
}

/** Creates the campaign. */
function useSend(wizard: ReturnType<typeof useWizard>, body: object) {
  const { accountId } = useFrame().account
  const { run, isBusy, problem } = useRun(() => {})
  const sent = useRef<Draft>(undefined)
  const isHere = useIsHere()
  const send = () =>
    run(async () => {
      sent.current = wizard.draft
      wizard.keepForRetry()
      const { campaignId } = await post<Campaign>(`/accounts/${accountId}/campaigns`, body, { 'idempotency-key': wizard.key })
      wizard.forget()
      if (isHere.current) location.replace(linkTo({ accountId, path: ['campaigns', campaignId] }))
      return ''
    })
  // What was wrong with an earlier draft may be right by now.
  return { send, isBusy, problem: sent.current === wizard.draft ? problem : undefined }
}

/** The first wrong field, once the page shows what is wrong with it. */
function focusWrong(form: HTMLFormElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"], input[type="checkbox"]')?.focus())
}
