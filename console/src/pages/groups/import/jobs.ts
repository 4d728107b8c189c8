import { useEffect, useState } from 'preact/hooks'
import { type ApiProblem, ask } from '../../../app/api.ts'
import { useFrame } from '../../../app/session.tsx'
import { newNumber, pathOf } from '../segments.ts'
import { headerOf } from './columns.ts'
import type { Chosen } from './read-file.ts'
import { type Imported, rewrite } from './rewrite.ts'
import { unreadable, upload } from './upload.ts'

// An import goes on while the person looks at other pages of the console, so it does not belong to a component.

/** `name`: of a group that is new. Its number is known when the import has begun. */
type Target = { accountId: number; segmentId?: number; name?: string }

export type Wanted = Chosen & { target: Target }

export type Job = Wanted & {
  state: /** `share`: of the file that was sent. Undefined when Herald has all of it. */
    | { is: 'running'; share: number | undefined }
    | { is: 'done'; result: Imported; nameProblem?: ApiProblem }
    | { is: 'failed'; problem: ApiProblem }
  cancel: () => void
}

/** How many rejected lines Herald lists. */
export const MAX_REJECTED = 1_000

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

async function importFile(path: string, wanted: Wanted, doing: Doing): Promise<Imported> {
  const { head, columns } = wanted
  const { body, rejected } = await bodyOf(wanted, doing)
  const result = await upload({ path, body, ...doing })
  // How many lines of the file stand before the line that follows the header of what was sent.
  const before = columns.hasHeader ? head.second.linesBefore : 0
  const all = [...result.rejected, ...rejected].map(({ line, reason }) => ({ line: line - 1 + before, reason }))
  return { imported: result.imported, rejected: all.toSorted((a, b) => a.line - b.line).slice(0, MAX_REJECTED) }
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

async function start(key: string, { file, head, columns, target: { accountId, segmentId, name } }: Wanted): Promise<void> {
  if (isRunning(jobs.get(key))) return
  const cancelling = new AbortController()
  const { signal } = cancelling
  const target: Target = { accountId, ...(segmentId !== undefined && { segmentId }), ...(name !== undefined && { name }) }
  const wanted = { file, head, columns, target }
  const show = (state: Job['state']) => set(key, { ...wanted, cancel: () => cancelling.abort(), state })
  const onShare = (share: number | undefined) => show({ is: 'running', share })
  onShare(0)
  try {
    const number = name === undefined ? (segmentId as number) : await newNumber(accountId, name, segmentId)
    target.segmentId = number
    const result = await importFile(pathOf(accountId, number, '/import'), wanted, { signal, onShare })
    const nameProblem = name !== undefined && result.imported > 0 && (await nameGroup(pathOf(accountId, number), name))
    show({ is: 'done', result, ...(nameProblem && { nameProblem }) })
  } catch (error) {
    if (signal.aborted) set(key, undefined)
    else show({ is: 'failed', problem: error as ApiProblem })
  }
}

/** Names a group that the import has created. Not before, since a failed import would leave an empty group. */
const nameGroup = (path: string, name: string) =>
  ask(path, { method: 'PUT', body: { name } }).then(
    () => undefined,
    (problem: ApiProblem) => problem,
  )

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
