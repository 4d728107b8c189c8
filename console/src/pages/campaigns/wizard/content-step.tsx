import { type Agent, nameOf } from '../../../app/agents.ts'
import { linkTo } from '../../../app/place.ts'
import { useFrame } from '../../../app/session.tsx'
import { Select, TextField } from '../../../kit/controls.tsx'
import { Empty } from '../../../kit/display.tsx'
import type { Content } from '../../../phone/content.ts'
import { stage } from '../../../words/en-phones.ts'
import * as sendWords from '../../../words/en-send.ts'
import * as say from '../../../words/en-wizard.ts'
import { ContentPhone } from '../content-phone.tsx'
import { type StepProps, TEMPLATE } from './draft.ts'

export type Template = { id: number; name: string; status: 'DRAFT' | 'APPROVED'; basic: boolean; message: Content }
/** `value`: the approved ones. */
export type Templates = { value: Template[] | undefined }

type Props = StepProps & { agents: Agent[]; templates: Templates; template: Template | undefined }

/** A name, an agent, and a template, with what recipients will see. */
export function ContentStep({ draft, change, wrong, agents, templates: { value: items }, template }: Props) {
  const { accountId } = useFrame().account
  return (
    <div class="camp-content">
      <div class="form">
        <TextField label={say.name} value={draft.name} onInput={(name) => change({ name })} problem={wrong('/name')} autocomplete="off" />
        <Select
          label={sendWords.agent}
          value={draft.agentId}
          options={agents.map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))}
          onChange={(agentId) => change({ agentId })}
        />
        <Select
          label={sendWords.template}
          value={draft.templateId}
          options={[
            { value: '', text: sendWords.chooseTemplate },
            ...(items ?? []).map(({ id, name }) => ({ value: String(id), text: name })),
          ]}
          onChange={(templateId) => change({ templateId })}
          problem={wrong(TEMPLATE)}
        />
        {items?.length === 0 && (
          <p class="hint">
            {sendWords.noTemplate} <a href={linkTo({ accountId, path: ['templates'] })}>{say.toTemplates}</a>
          </p>
        )}
      </div>
      <section class="camp-stage" aria-label={stage}>
        {template ? <ContentPhone content={template.message} agentId={draft.agentId} /> : <Empty icon="smartphone" title={say.noPreview} />}
      </section>
    </div>
  )
}
