import { useRef, useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { linkTo, type Place } from '../../app/place.ts'
import type { Resource } from '../../app/resource.ts'
import { useIsHere, useRun } from '../../app/run.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago, Pill } from '../../kit/display.tsx'
import { Icon, type IconName } from '../../kit/icon.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-templates.ts'
import { ChangesDialog } from './changes.tsx'
import { diffOf } from './diff.ts'
import { SendTest } from './send-test.tsx'
import { bodyOf, isBroken, type Status, type Template, workOf } from './template.ts'
import type { useWork } from './use-work.ts'
import type { Values } from './variables.tsx'

type Props = {
  place: Place
  template: Resource<Template>
  saved: Template | undefined
  own: ReturnType<typeof useWork>
  /** For the variables in a test message. */
  testValues: { variables?: Values }
}
type Asked = 'discard' | 'remove'
type Open = Asked | 'changes' | 'saving' | 'test'

/** The name of the template, how it stands, and what can be done with it. */
export function Head({ place, template, saved, own, testValues }: Props) {
  const { account } = useFrame()
  const [open, setOpen] = useState<Open>()
  const { save, problem, said, setSaid, isBusy } = useSave({ template, saved, own })
  const { work, isChanged, isOld } = own
  const status = saved?.status ?? 'DRAFT'
  const canChange = account.role !== 'viewer'
  // What an approved template sends changes at once, so the person looks at the changes first.
  const isAsked = status === 'APPROVED' && isChanged && !isBroken(work)
  return (
    <>
      <div class="title-row">
        <h1>{work.name || (saved?.name ?? say.add)}</h1>
        <Pill tone={status === 'APPROVED' ? 'good' : 'plain'}>{say.statuses[status]}</Pill>
        <span class="note">{isChanged ? say.changed : saved && <Saved at={saved.updatedAt} />}</span>
        <span class="spring" />
        <AsCurl {...(saved ? { path: `templates/${saved.id}` } : { path: 'templates', body: bodyOf(work, status) })} />
        {whyNotSend(account) === undefined && (
          <Button icon="smartphone" onClick={() => (isBroken(work) ? setSaid(say.brokenTest) : setOpen('test'))}>
            {say.testTitle}
          </Button>
        )}
        {canChange && (
          <Button isBusy={isBusy} onClick={() => (isAsked ? setOpen('saving') : void save(status))}>
            {say.save}
          </Button>
        )}
        {canChange && status === 'DRAFT' && (
          <Button kind="primary" icon="check" isBusy={isBusy} onClick={() => void save('APPROVED')}>
            {say.approve}
          </Button>
        )}
      </div>
      {canChange && <MoreActions saved={saved} isChanged={isChanged} onOpen={setOpen} />}
      <p role="status" class="composer-said">
        {said}
      </p>
      {problem && <Problem problem={problem} />}
      {saved && isOld && <Note text={say.elsewhere} />}
      {open && (
        <Opened open={open} place={place} saved={saved} own={own} testValues={testValues} save={save} onClose={() => setOpen(undefined)} />
      )}
    </>
  )
}

/** What may surprise the person who edits. */
export const Note = ({ text }: { text: string }) => (
  <p class="editor-note tone-warn" role="status">
    <Icon name="triangle-alert" size={15} /> {text}
  </p>
)

const Saved = ({ at }: { at: string }) => (
  <>
    {say.saved} <Ago at={at} />
  </>
)

type MoreProps = { saved: Template | undefined; isChanged: boolean; onOpen: (open: Open) => void }

function MoreActions({ saved, isChanged, onOpen }: MoreProps) {
  const action = (icon: IconName, name: Asked | 'changes') => (
    <Button kind="quiet" icon={icon} onClick={() => onOpen(name)}>
      {say.actions[name]}
    </Button>
  )
  return (
    <p class="more-actions">
      {isChanged && action('list', 'changes')}
      {isChanged && action('undo-2', 'discard')}
      {saved && action('trash-2', 'remove')}
    </p>
  )
}

/** Saves what the person has written, unless somebody else has saved the template meanwhile. */
function useSave({ template, saved, own }: Omit<Props, 'place' | 'testValues'>) {
  const { accountId } = useFrame().account
  const path = `/accounts/${accountId}/templates`
  const { run, ...running } = useRun(template.reload)
  // The page reads the template again after it was saved, and the person may press a button before that.
  const ownVersion = useRef<string>(undefined)
  // A new template has another page from then on, which the browser opens a moment later.
  const isCreated = useRef(false)
  const isHere = useIsHere()
  const create = async (status: Status): Promise<string> => {
    if (isCreated.current) return say.isSaved
    const created = await ask<Template>(path, { method: 'POST', body: bodyOf(own.work, status) })
    isCreated.current = true
    own.wasSaved(own.work, created)
    if (isHere.current) location.replace(linkTo({ accountId, path: ['templates', String(created.id)] }))
    return say.isSaved
  }
  const replace = async (status: Status, { id, updatedAt, status: before }: Template): Promise<string> => {
    const current = await ask<Template>(`${path}/${id}`)
    if (current.updatedAt !== updatedAt && current.updatedAt !== ownVersion.current) return say.notSaved
    const stored = await ask<Template>(`${path}/${id}`, { method: 'PUT', body: bodyOf(own.work, status) })
    ownVersion.current = stored.updatedAt
    own.wasSaved(own.work, stored)
    return before === status ? say.isSaved : say.isApproved
  }
  const save = (status: Status) =>
    run(async () => {
      if (isBroken(own.work)) return say.brokenJson
      return await (saved ? replace(status, saved) : create(status))
    })
  return { ...running, save }
}

type OpenedProps = Omit<Props, 'template'> & { open: Open; save: (status: Status) => Promise<void>; onClose: () => void }

/** The dialogs that send a test, show what changes, or ask before something is lost. */
function Opened({ open, place, saved, own, testValues, save, onClose }: OpenedProps) {
  const { accountId } = useFrame().account
  const { work, forget } = own
  const isHere = useIsHere()
  if (open === 'test') return <SendTest place={place} basic={work.basic} message={work.message} values={testValues} onClose={onClose} />
  const status = saved?.status ?? 'DRAFT'
  const lines = diffOf(saved ? textOf(bodyOf(workOf(saved), status)) : '', textOf(bodyOf(work, status)))
  if (open === 'changes' || open === 'saving') {
    return <ChangesDialog lines={lines} save={open === 'saving' ? () => save(status) : undefined} onClose={onClose} />
  }
  const remove = async () => {
    await ask(`/accounts/${accountId}/templates/${saved?.id}`, { method: 'DELETE' })
    forget()
    if (isHere.current) location.replace(linkTo({ accountId, path: ['templates'] }))
  }
  const runs: Record<Asked, () => Promise<void>> = { discard: async () => forget(), remove }
  return (
    <Sure title={`${say.actions[open]}?`} action={say.actions[open]} run={runs[open]} onDone={onClose} onClose={onClose}>
      <p>{say.asks[open](lines.filter(({ is }) => is !== 'same').length)}</p>
    </Sure>
  )
}

const textOf = (body: object) => JSON.stringify(body, undefined, 2)
