import { useEffect, useState } from 'preact/hooks'
import { draftOf, forgetDraft, keepDraft } from '../../app/drafts.ts'
import { useFrame } from '../../app/session.tsx'
import { bodyOf, isBroken, NEW, type Template, type Work, workOf } from './template.ts'

/** `since`: the version of the template that the person has begun with. */
type Kept = { work: Work; since: string | undefined }

/** The names of the drafts of templates. `new` is the id of a new one. */
export function useDraftNames() {
  const { account, session } = useFrame()
  return (id: string | number) => `template-${session.personId}-${account.accountId}-${id}`
}

/**
 * What the person writes: what was saved, until they change it. Changes survive a reload of the page. `isOld`: somebody else has saved the template since.
 */
export function useWork(id: string, saved: Template | undefined) {
  const nameOf = useDraftNames()
  const name = nameOf(id)
  const [kept, setKept] = useState(() => draftOf<Kept>(name))
  const before = saved === undefined ? NEW : workOf(saved)
  const work = kept?.work ?? before
  const change = (more: Partial<Work>) => {
    const next = { work: { ...work, json: undefined, ...more }, since: kept === undefined ? saved?.updatedAt : kept.since }
    setKept(next)
    keepDraft(name, next)
  }
  const forget = () => {
    setKept(undefined)
    forgetDraft(name)
  }
  /** What was sent is the saved version now. What the person has written meanwhile stays. */
  const wasSaved = (sent: Work, stored: Template) => {
    setKept((last) => {
      if (last === undefined) return undefined
      const next = { work: last.work === sent ? { ...sent, json: undefined } : last.work, since: stored.updatedAt }
      // A new template has a page of its own from then on.
      forgetDraft(name)
      keepDraft(nameOf(stored.id), next)
      return next
    })
  }
  const isChanged = isBroken(work) || textOf(work) !== textOf(before)
  const isDone = kept !== undefined && !isChanged && work.json === undefined
  useEffect(() => {
    if (isDone) forget()
  }, [isDone])
  const isOld = isChanged && kept?.since !== undefined && saved !== undefined && kept.since < saved.updatedAt
  return { work, change, forget, wasSaved, isChanged, isOld }
}

const textOf = (work: Work) => JSON.stringify(bodyOf(work, 'DRAFT'))
