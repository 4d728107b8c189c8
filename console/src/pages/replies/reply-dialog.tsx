import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import type { useTemplates } from '../../app/templates.ts'
import { ButtonLink, Select, TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-auto-replies.ts'
import * as replyWords from '../../words/en-replies.ts'

export type AutoReply = { autoReplyId: number; agentId: string; keyword: string; templateId: number }

type Props = {
  /** Undefined: a new one. */
  reply: AutoReply | undefined
  agents: { value: string; text: string }[]
  templates: ReturnType<typeof useTemplates>['templates']
  onDone: (said: string) => void
  onClose: () => void
}

/** Adds or changes an automatic reply. It stays with its agent. */
export function ReplyDialog({ reply, agents, templates, onDone, onClose }: Props) {
  const { accountId } = useFrame().account
  const [agentId, setAgentId] = useState(reply?.agentId ?? agents[0]?.value ?? '')
  const [keyword, setKeyword] = useState(reply?.keyword ?? '')
  const [templateId, setTemplateId] = useState(String(reply?.templateId ?? ''))
  const approved = templates?.filter(({ status }) => status === 'APPROVED') ?? []
  const save = async () => {
    const body = { keyword, templateId: Number(templateId) }
    const [method, id, more] = reply === undefined ? ['POST', '', { agentId }] : ['PATCH', `/${reply.autoReplyId}`, {}]
    const saved = await ask<AutoReply>(`/accounts/${accountId}/auto-replies${id}`, { method, body: { ...body, ...more } })
    onDone(say.saved(saved.keyword))
  }
  /** Templates may have the same name. */
  const textOf = (id: number, name: string) =>
    approved.some((other) => other.name === name && other.id !== id) ? `${name} (${say.templateName(id)})` : name
  return (
    <FormDialog title={reply === undefined ? say.add : `${say.edit}: “${reply.keyword}”`} action={say.save} run={save} onClose={onClose}>
      {() => (
        <>
          {reply === undefined && <Select label={replyWords.agent} value={agentId} options={agents} onChange={setAgentId} required />}
          <TextField label={say.keyword} value={keyword} onInput={setKeyword} hint={say.keywordHint} required autocomplete="off" />
          <Select
            label={say.template}
            value={approved.some(({ id }) => String(id) === templateId) ? templateId : ''}
            options={[{ value: '', text: say.choose }, ...approved.map(({ id, name }) => ({ value: String(id), text: textOf(id, name) }))]}
            onChange={setTemplateId}
            required
          />
          {templates && approved.length === 0 && (
            <p>
              {say.noTemplate} <ButtonLink href={linkTo({ accountId, path: ['templates'] })}>{pages.templates}</ButtonLink>
            </p>
          )}
        </>
      )}
    </FormDialog>
  )
}
