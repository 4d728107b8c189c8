import type { Evidence } from './evidence.ts'
import { countBy, type Line, listCounts } from './line.ts'
import type { Complaint } from './processes.ts'

// What is left when all is over.

export function judgeLeft({ left }: Evidence): Line {
  const wrong = Object.entries(left)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what}: ${count}`)
  return { promise: 'nothing is left over', figures: `${Object.keys(left).length} places are empty`, wrong }
}

export function judgeProcesses({ processes: { running, endedByItself, silent }, upsets }: Evidence): Line {
  return {
    promise: 'no process ended by itself, all answer',
    figures: `${running} running after ${upsets} upsets`,
    wrong: [...endedByItself, ...silent.map((name) => `${name} does not answer`)],
  }
}

// What a kill or a freeze does not explain: a row that breaks a rule, a statement that is wrong, two that wait for each other in a circle, a
// fault of the program's own.
const INEXCUSABLE_CODES = /^(22|23|25001|25P|3F|40|42|XX)/
const INEXCUSABLE_TYPES = ['TypeError', 'ReferenceError', 'RangeError', 'SyntaxError', 'AssertionError']

function isInexcusable({ level, code, type }: Complaint): boolean {
  return level === 'fatal' || level === 'stderr' || INEXCUSABLE_CODES.test(code ?? '') || INEXCUSABLE_TYPES.includes(type ?? '')
}

export function judgeComplaints({ processes: { complaints } }: Evidence): Line {
  const kinds = listCounts(countBy(complaints, ({ text, code }) => `"${text}"${code === undefined ? '' : ` (${code})`}`))
  return {
    promise: 'logs have no fault that an upset does not explain',
    figures: `${complaints.length} lines of errors${kinds === '' ? '' : `: ${kinds}`}`,
    wrong: complaints.filter(isInexcusable).map(({ process, text, code, type }) => `${process}: ${text} ${code ?? type ?? ''}`),
  }
}
