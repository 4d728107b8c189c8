import { useEffect, useState } from 'preact/hooks'
import { type ApiProblem, ask } from '../../../app/api.ts'
import { useFrame } from '../../../app/session.tsx'
import { newGroup, pathOf, type Segment, type Target } from '../segments.ts'
import { headerOf } from './columns.ts'
import type { Chosen } from './read-file.ts'
import { type Imported, rewrite } from './rewrite.ts'
import { unreadable, upload } from './upload.ts'

// An import goes on while the person looks at other pages of the console, so it does not belong to a component.

/** `name`: of a group that is new. Its number is known when the import has begun. */
export type Wanted = Chosen & { target: Target & { name?: string } }

export type Job = Wanted & {
  state: /** `share`: of the file that was sent. Undefined when Herald has all of it. */
  { is: 'running'; share: number | undefined } | { is: 'done'; result: Imported } | { is: 'failed'; problem: ApiProblem }
  cancel: () => void
}

/** How many rejected lines Herald lists. */
export const MAX_REJECTED = 1_000

const pathOfTarget = ({ accountId, segmentId }: Target) => pathOf(accountId, segmentId as number)

type Doing = { signal: AbortSignal; onShare: (share: number | undefined) => void }

/** What is sent: the file with a header of its own. `rejected`: lines that are not sent. */
async function bodyOf({ file, head, columns: { columns, hasHeader } }: Wanted, { signal, onShare }: Doing) {
  const { separator } = head
  const header = headerOf(columns, separator)
  const rest = file.slice(hasHeader ? head.second.at : head.start)
  // The browser reads the file from the disk while it sends it.
  if (columns.every(({ use }) => use !== 'none')) return { body: new Blob([header, rest]), rejected: [] }
  const { parts, rejected } = await rewrite({ rest, columns, separator, signal, onShare }).catch(() => {
    throw unreadable()
  })
  return { body: new Blob([header, ...parts]), rejected }
}

async function importFile(wanted: Wanted, doing: Doing): Promise<Imported> {
  const { head, columns, target } = wanted
  const { body, rejected } = await bodyOf(wanted, doing)
  const result = await upload({ path: `${pathOfTarget(target)}/import`, body, ...doing })
  // How many lines of the file stand before the line that follows the header of what was sent.
  const before = columns.hasHeader ? head.second.linesBefore : 0
  const all = [...result.rejected, ...rejected].map(({ line, reason }) => ({ line: line - 1 + before, reason }))
  return { imported: result.imported, rejected: all.toSorted((a, b) => a.line - b.line).slice(0, MAX_REJECTED) }
}

/** The group is created first: the upload takes a while, and another import must not get its number. It is deleted if nothing came into it. */
async function importNew(wanted: Wanted, doing: Doing): Promise<Imported> {
  const { target } = wanted
  await newGroup(target, target.name as string)
  let isEmpty = true
  try {
    const result = await importFile(wanted, doing)
    isEmpty = result.imported === 0
    return result
  } catch (error) {
    // Without a response, Herald may have imported the file. Another try goes into the same group.
    isEmpty = doing.signal.aborted || (error as ApiProblem).status > 0
    throw error
  } finally {
    if (isEmpty) await removeEmpty(pathOfTarget(target)).catch(() => {})
  }
}

/** Somebody else may have added members meanwhile. */
async function removeEmpty(path: string): Promise<void> {
  const { members } = await ask<Segment>(path)
  if (members === 0) await ask(path, { method: 'DELETE' })
}

/** By person and account: another person who signs in with this browser does not see them. */
const jobs = new Map<string, Job>()
const watchers = new Set<() => void>()

/** A page that closes would break the import off. */
const warn = (event: BeforeUnloadEvent) => event.preventDefault()

function set(key: string, job: Job | undefined): void {
  if (job === undefined) jobs.delete(key)
  else jobs.set(key, job)
  const change = [...jobs.values()].some(isRunning) ? addEventListener : removeEventListener
  change('beforeunload', warn)
  for (const watcher of watchers) watcher()
}

export const isRunning = (job: Job | undefined) => job?.state.is === 'running'

async function start(key: string, { file, head, columns, target: given }: Wanted): Promise<void> {
  if (isRunning(jobs.get(key))) return
  const cancelling = new AbortController()
  const { signal } = cancelling
  const target = { ...given }
  const wanted = { file, head, columns, target }
  const show = (state: Job['state']) => set(key, { ...wanted, cancel: () => cancelling.abort(), state })
  const onShare = (share: number | undefined) => show({ is: 'running', share })
  onShare(0)
  try {
    const result = await (target.name === undefined ? importFile : importNew)(wanted, { signal, onShare })
    show({ is: 'done', result })
  } catch (error) {
    if (signal.aborted) set(key, undefined)
    else show({ is: 'failed', problem: error as ApiProblem })
  }
}

/** The import of the person into the account, if there is one. */
export function useJob() {
  const { session, account } = useFrame()
  const key = `${session.personId} ${account.accountId}`
  const [, draw] = useState({})
  useEffect(() => {
    const watcher = () => draw({})
    watchers.add(watcher)
    return () => void watchers.delete(watcher)
  }, [])
  return {
    job: jobs.get(key),
    start: (wanted: Wanted) => void start(key, wanted),
    forget: () => set(key, undefined),
    /** Forgets it when the person leaves the page, unless it goes on, or has rejected lines that they may come back for. */
    leave: () => {
      const job = jobs.get(key)
      const isKept = isRunning(job) || (job?.state.is === 'done' && job.state.result.rejected.length > 0)
      if (!isKept) set(key, undefined)
    },
  }
}
