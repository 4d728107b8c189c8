import { ask } from '../../app/api.ts'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { useTemplates } from '../../app/templates.ts'
import { Button } from '../../kit/controls.tsx'
import { Empty } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-auto-replies.ts'
import * as replyWords from '../../words/en-replies.ts'
import { useAgentNames } from './agent-names.ts'
import { Head, useChanges } from './changes.tsx'
import { type AutoReply, ReplyDialog } from './reply-dialog.tsx'

/** Without a reply: a new one. */
type Open = { change: 'edit' | 'remove'; reply?: AutoReply }

/** The templates that Herald sends to recipients who write a keyword. */
export function AutomaticReplies() {
  const { accountId, role } = useFrame().account
  const { open, setOpen, version, status, ...changes } = useChanges<Open>()
  const { options, nameFor, ...agents } = useAgentNames()
  const { templates, ...read } = useTemplates()
  const isAdmin = role !== 'viewer'
  const templateOf = (id: number) => templates?.find((each) => each.id === id)?.name ?? say.templateName(id)
  const { change, reply } = open ?? {}
  return (
    <>
      <Head current="automatic">
        {isAdmin && (
          <Button icon="plus" kind="primary" onClick={() => setOpen({ change: 'edit' })}>
            {say.add}
          </Button>
        )}
      </Head>
      <p class="hint replies-hint">{say.hint}</p>
      {agents.problem && <Problem problem={agents.problem} onRetry={agents.reload} />}
      {read.problem && <Problem problem={read.problem} onRetry={read.reload} />}
      {status}
      <LongTable<AutoReply>
        label={replyWords.tabs.automatic}
        path={`/accounts/${accountId}/auto-replies`}
        version={version}
        columns={[{ title: say.keyword }, { title: say.template }, ...(isAdmin ? [{ title: replyWords.change }] : [])]}
        keyOf={({ autoReplyId }) => String(autoReplyId)}
        empty={
          <Empty icon="message-circle-reply" title={say.empty}>
            <p>{say.emptyHint}</p>
          </Empty>
        }
        cells={(each) => (
          <>
            <td>
              <b class="row-number">{each.keyword}</b>
              <small>{nameFor(each.agentId)}</small>
            </td>
            <td>
              <a class="in-row" href={linkTo({ accountId, path: ['templates', String(each.templateId)] })}>
                {templateOf(each.templateId)}
              </a>
            </td>
            {isAdmin && (
              <td>
                <span class="row-actions">
                  <Button kind="quiet" icon="pencil" onClick={() => setOpen({ change: 'edit', reply: each })}>
                    {say.edit}
                  </Button>
                  <Button kind="quiet" icon="trash-2" onClick={() => setOpen({ change: 'remove', reply: each })}>
                    {say.remove}
                  </Button>
                </span>
              </td>
            )}
          </>
        )}
      />
      {change === 'edit' && <ReplyDialog reply={reply} agents={options} templates={templates} {...changes} />}
      {change === 'remove' && reply && (
        <Sure
          title={`${say.remove}: “${reply.keyword}”`}
          action={say.remove}
          run={() => ask(`/accounts/${accountId}/auto-replies/${reply.autoReplyId}`, { method: 'DELETE' })}
          {...changes}
          onDone={() => changes.onDone(say.removed)}
        >
          <p>{say.sure(reply.keyword, nameFor(reply.agentId))}</p>
        </Sure>
      )}
    </>
  )
}
