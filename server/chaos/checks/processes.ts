import type { LeaseChange } from '../history/leases.ts'
import type { LogError } from '../history/processes.ts'
import type { Fault } from '../schedule/faults.ts'
import type { RequiredFault } from '../schedule/plan.ts'
import { explainsNoToken } from './causes.ts'
import { type Check, countBy, least, listCounts } from './result.ts'

// The faults themselves, the processes and their logs, and what remains at the end.

export const checkFaults: Check = ({ faults, required }) => ({
  compared: faults.length,
  wrong: required
    .filter((one) => !faults.some((fault) => isDone(one, fault)))
    .map(
      ({ target, manner, leastFrozenMs }) => `no ${target} was ${manner}${leastFrozenMs === 0 ? '' : ` for ${leastFrozenMs / 1_000} s`}`,
    ),
  note: listCounts(countBy(faults, ({ target, manner }) => `${target} ${manner}`)),
})

function isDone({ target, manner, leastFrozenMs }: RequiredFault, fault: Fault): boolean {
  const done = fault.manner === 'hung' ? 'killed' : fault.manner
  return fault.target.startsWith(target) && done === manner && fault.frozenMs >= leastFrozenMs
}

/** The node that has claimed an entry ends the claim with its result, or lets the lease expire. Only a receipt may come before. */
export const checkLeases: Check = ({ leaseChanges }) => {
  const holders = new Map(leaseChanges.flatMap(({ lease, by }) => (lease === null ? [] : [[lease, by]])))
  const claims = leaseChanges.filter(({ lease }) => lease !== null)
  const takenOver = claims.filter(({ leaseBefore, by }) => leaseBefore !== null && holders.get(leaseBefore) !== by).length
  return {
    compared: claims.length,
    wrong: [...leaseChanges.flatMap((change) => wrongChange(change, holders)), ...stillLeased(leaseChanges)],
    note: `${takenOver} claims of what another node had held`,
  }
}

function stillLeased(changes: readonly LeaseChange[]): string[] {
  const last = new Map(changes.map((change) => [`${change.queue} ${change.entry}`, change]))
  return [...last].flatMap(([entry, { lease, by }]) => (lease === null ? [] : [`${entry}: ${by} claimed it, and it is still leased`]))
}

function wrongChange(change: LeaseChange, holders: Map<string, string>): string[] {
  const { queue, entry, by, lease, leaseBefore, wasRunning, isTurned } = change
  const holder = leaseBefore === null ? 'no node' : holders.get(leaseBefore)
  if (lease !== null) return leaseBefore !== null && wasRunning ? [`${queue} ${entry}: ${by} claimed it, and ${holder} held it`] : []
  // A message that expires is revoked whatever worker has leased it, and a receipt at an API node ends its sending.
  const isReceipt = queue === 'queue' && by.startsWith('api')
  return holder === by || isTurned || isReceipt ? [] : [`${queue} ${entry}: ${by} stored a result, and ${holder} held it`]
}

export const checkRemaining: Check = ({ remaining }) => ({
  compared: Object.keys(remaining).length,
  wrong: Object.entries(remaining)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what}: ${count}`),
})

// The walk goes on every second.
const WALK_LATE_MS = 60_000

/** A walk through the ids finds messages without an expiry of their own after 48 hours. A message that it has skipped never expires. */
export const checkExpiryWalk: Check = ({ walks, messages }) => ({
  compared: messages.length,
  wrong: [
    ...(walks.length === 1 ? [] : [`there are ${walks.length} walks`]),
    ...walks.flatMap(({ reachedAt, dueAt, passed }) => [
      ...(reachedAt > dueAt ? [`it is ${reachedAt - dueAt} ms ahead: it skips messages that are not due`] : []),
      ...(dueAt - reachedAt > WALK_LATE_MS ? [`it is ${dueAt - reachedAt} ms behind`] : []),
      ...passed.map((id) => `${id} is open, and will never expire`),
    ]),
  ],
})

export const checkProcesses: Check = ({ processes: { running, endedByItself, silent } }) => ({
  compared: running,
  wrong: [...endedByItself, ...silent.map((name) => `${name} does not respond`)],
})

const TOKEN_MISSING = 'failed to get an access token; will retry with each message'
/** A case that kills a process of PostgreSQL records it so. */
export const BACKEND_KILLED = 'backend killed'

/** A network that is away, or a freeze of the process, explains a missing access token; a killed backend explains its line in PostgreSQL's log. All else is wrong. */
function isExplained({ process, level, text, at = 0 }: LogError, faults: readonly Fault[]): boolean {
  if (process === 'database') return text.includes('terminated by signal 9') && faults.some(({ manner }) => manner === BACKEND_KILLED)
  return level === 'error' && text === TOKEN_MISSING && faults.some((fault) => explainsNoToken(fault, process, at))
}

export const checkLogErrors: Check = ({ processes: { logs, errors }, faults }) => ({
  compared: logs,
  wrong: errors
    .filter((error) => !isExplained(error, faults))
    .map(({ process, text, code, type, detail }) => [`${process}: ${text}`, code ?? type, detail].filter(Boolean).join(' ')),
})

/** Numbers in any form, texts by their beginning, secrets by their end. */
export const checkLogSecrets: Check = ({ requested, messages, secrets, processes: { logs, lines } }) => {
  const numbers = new Set(messages.map(({ recipient }) => recipient.replace('+', '')))
  const texts = [...requested.messages, ...requested.campaigns].flatMap(({ contents: { text, sms } }) => [text, sms?.text ?? text])
  const words = [...new Set(texts.map((text) => text.slice(0, 11))), ...secrets.map((secret) => secret.slice(-16))]
  const isLeaking = (line: string) =>
    words.some((word) => line.includes(word)) || (line.match(/\d{9,}/g) ?? []).some((digits) => numbers.has(digits))
  return { compared: least([logs, numbers.size, texts.length, secrets.length]), wrong: lines.filter(isLeaking) }
}
