import { explainsNoToken } from './causes.ts'
import type { Evidence } from './evidence.ts'
import type { LeaseChange } from './leases.ts'
import { type Comparison, countBy, least, listCounts } from './line.ts'
import type { Essential } from './plan.ts'
import type { Complaint } from './processes.ts'
import type { Disturbance } from './upsets.ts'

// What was done, how the processes have fared, and what is left when all is over.

export function judgeUpsets({ upsets, essential }: Evidence): Comparison {
  const byVictim = [...Map.groupBy(upsets, ({ victim }) => victim)].map(
    ([victim, all]) => `${victim} ${listCounts(countBy(all, ({ manner }) => manner))}`,
  )
  return {
    promise: 'what was done',
    figures: `${upsets.length} upsets: ${byVictim.join('; ')}`,
    compared: upsets.length,
    wrong: essential
      .filter((one) => !upsets.some((upset) => isDone(one, upset)))
      .map(({ victim, manner, leastFrozenMs }) => {
        return `no ${victim} was ${manner}${leastFrozenMs === 0 ? '' : ` for ${leastFrozenMs / 1_000} s`}`
      }),
  }
}

function isDone({ victim, manner, leastFrozenMs }: Essential, upset: Disturbance): boolean {
  // Killed in its sleep, it is killed.
  const done = upset.manner === 'hung' ? 'killed' : upset.manner
  return upset.victim.startsWith(victim) && done === manner && upset.frozenMs >= leastFrozenMs
}

/** Who has taken an entry up ends that itself, by its result, or lets its lease run out. Only a phone that has the message comes before. */
export function judgeLeases({ leaseChanges }: Evidence): Comparison {
  const holders = new Map(leaseChanges.flatMap(({ lease, by }) => (lease === null ? [] : [[lease, by]])))
  const claims = leaseChanges.filter(({ lease }) => lease !== null)
  const takenOver = claims.filter(({ leaseBefore, by }) => leaseBefore !== null && holders.get(leaseBefore) !== by).length
  return {
    promise: 'results are written by who holds the lease',
    figures: `${claims.length} claims, ${takenOver} of what another had held, ${leaseChanges.length - claims.length} ends of them`,
    compared: claims.length,
    wrong: [...leaseChanges.flatMap((change) => wrongChange(change, holders)), ...leftLeased(leaseChanges)],
  }
}

/** Entries that were claimed, and of which nobody has written what came of it. */
function leftLeased(changes: readonly LeaseChange[]): string[] {
  const last = new Map(changes.map((change) => [`${change.queue} ${change.entry}`, change]))
  return [...last].flatMap(([entry, { lease, by }]) => (lease === null ? [] : [`${entry}: ${by} claimed it, and it is leased for ever`]))
}

function wrongChange(change: LeaseChange, holders: Map<string, string>): string[] {
  const { queue, entry, by, lease, leaseBefore, wasRunning, isTurned } = change
  const holder = leaseBefore === null ? 'nobody' : holders.get(leaseBefore)
  if (lease !== null) return leaseBefore !== null && wasRunning ? [`${queue} ${entry}: ${by} took it up, and ${holder} had it`] : []
  // What has run out is to be taken back, whoever has it; and a receipt, which API nodes take, ends the sending.
  const isReceipt = queue === 'queue' && by.startsWith('api')
  return holder === by || isTurned || isReceipt ? [] : [`${queue} ${entry}: ${by} wrote a result, and ${holder} had it`]
}

export function judgeLeft({ left }: Evidence): Comparison {
  const wrong = Object.entries(left)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what}: ${count}`)
  const compared = Object.keys(left).length
  return { promise: 'nothing is left over', figures: `${compared} places are empty`, compared, wrong }
}

// The walk goes on every second.
const WALK_LATE_MS = 60_000

/** Messages without an expiry of their own are found by a walk through their ids, 48 hours later: one that it has passed never expires. */
export function judgeWalk({ walks, messages }: Evidence): Comparison {
  return {
    promise: 'the walk of expiries passes no open message',
    figures: walks
      .map(({ reachedAt, passed }) => `it is at ${new Date(reachedAt).toISOString()}, and has left ${passed.length} behind`)
      .join('; '),
    compared: messages.length,
    wrong: [
      ...(walks.length === 1 ? [] : [`there are ${walks.length} walks`]),
      ...walks.flatMap(({ reachedAt, dueAt, passed }) => [
        ...(reachedAt > dueAt ? [`it is ${reachedAt - dueAt} ms ahead: it passes messages that live`] : []),
        ...(dueAt - reachedAt > WALK_LATE_MS ? [`it is ${dueAt - reachedAt} ms behind`] : []),
        ...passed.map((id) => `${id} is open, and will never expire`),
      ]),
    ],
  }
}

export function judgeProcesses({ processes: { running, endedByItself, silent }, upsets }: Evidence): Comparison {
  return {
    promise: 'no process ended by itself, all answer',
    figures: `${running} running after ${upsets.length} upsets`,
    compared: running,
    wrong: [...endedByItself, ...silent.map((name) => `${name} does not answer`)],
  }
}

// What a kill or a freeze explains: a network that is away while an access token is asked of it. All else is a fault.
const TOKEN_MISSING = 'failed to get an access token; will retry with each message'

function isExcused({ level, text, at = 0 }: Complaint, upsets: readonly Disturbance[]): boolean {
  return level === 'error' && text === TOKEN_MISSING && upsets.some((upset) => explainsNoToken(upset, at))
}

export function judgeComplaints({ processes: { logs, complaints }, upsets }: Evidence): Comparison {
  const kinds = listCounts(countBy(complaints, ({ text, code }) => `"${text}"${code === undefined ? '' : ` (${code})`}`))
  return {
    promise: 'logs have no fault that an upset does not explain',
    figures: `${logs} logs, ${complaints.length} lines of errors${kinds === '' ? '' : `: ${kinds}`}`,
    compared: logs,
    wrong: complaints
      .filter((complaint) => !isExcused(complaint, upsets))
      .map(({ process, text, code, type, detail }) => [`${process}: ${text}`, code ?? type, detail].filter(Boolean).join(' ')),
  }
}

/** Whatever died, and however it was told of. Numbers in any form, texts by how they begin, secrets by their end. */
export function judgeDiscretion({ asked, messages, secrets, processes: { logs, written } }: Evidence): Comparison {
  const numbers = new Set(messages.map(({ recipient }) => recipient.replace('+', '')))
  const all = [...asked.messages, ...asked.campaigns]
  const texts = all.flatMap(({ contents: { text, sms } }) => [text, sms?.text ?? text])
  const words = [...new Set(texts.map((text) => text.slice(0, 11))), ...secrets.map((secret) => secret.slice(-16))]
  const isTelling = (line: string) =>
    words.some((word) => line.includes(word)) || (line.match(/\d{9,}/g) ?? []).some((digits) => numbers.has(digits))
  return {
    promise: 'logs hold no number, text or secret',
    figures: `${written.length} lines of ${logs} logs, ${numbers.size} numbers, ${new Set(texts).size} texts`,
    compared: least([logs, numbers.size, texts.length, secrets.length]),
    wrong: written.filter(isTelling),
  }
}
