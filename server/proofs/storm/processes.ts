import { readFileSync, statSync } from 'node:fs'
import { isReady, type Node } from './nodes.ts'
import type { Program } from './process.ts'

// How the processes themselves have fared: whether one ended by itself or no longer answers, and what their logs complain of.

/** `code`, `type`, `detail`: of the error that it is about, with the words of that. */
export type Complaint = {
  process: string
  level: string
  text: string
  /** Where its log says so. */
  at?: number | undefined
  code?: string | undefined
  type?: string | undefined
  detail?: string | undefined
}

export type Processes = {
  running: number
  endedByItself: string[]
  /** At the end, though they should answer. */
  silent: string[]
  /** How many logs were looked through, and all that stands in them. */
  logs: number
  written: string[]
  /** Lines of a log with level error or fatal, and what programs wrote to their standard error. */
  complaints: Complaint[]
}

export async function inspectProcesses(nodes: readonly Node[], others: readonly Program[], databaseLog: string): Promise<Processes> {
  const all = [...nodes, ...others]
  const answering = await Promise.all(nodes.map(isReady))
  return {
    running: all.filter(({ isRunning }) => isRunning()).length,
    endedByItself: all.flatMap(({ endedByItself }) => endedByItself),
    silent: nodes.filter((_, n) => !answering[n]).map(({ name }) => name),
    logs: nodes.length + all.length + 1,
    written: [...nodes.map(({ outFile }) => outFile), ...all.map(({ errFile }) => errFile), databaseLog].flatMap(linesOf),
    complaints: [
      ...nodes.flatMap(({ name, outFile }) => readLogFaults(name, linesOf(outFile))),
      ...all.flatMap(({ name, errFile }) => readErrors(name, linesOf(errFile))),
      ...readDatabaseFaults(linesOf(databaseLog)),
    ],
  }
}

function linesOf(file: string): string[] {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return []
  return readFileSync(file, 'utf8').split('\n').filter(Boolean)
}

/** The last line of one that was killed may be cut. */
export function readLogFaults(process: string, lines: string[]): Complaint[] {
  return lines.flatMap((line) => {
    const { level, time, msg, err } = parse(line) ?? {}
    if (level !== 'error' && level !== 'fatal') return []
    const at = time === undefined ? undefined : Date.parse(time)
    return [{ process, level, text: msg ?? '', at, code: err?.code, type: err?.type, detail: err?.message }]
  })
}

type LogLine = { level?: string; time?: string; msg?: string; err?: { code?: string; type?: string; message?: string } }

function parse(line: string): LogLine | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Greetings are all that is written there by a service that is well. */
function readErrors(process: string, lines: string[]): Complaint[] {
  return lines.filter((line) => !line.startsWith('Herald is ready at')).map((line) => ({ process, level: 'stderr', text: line }))
}

/** That it was killed and recovers is told there, too. A crash of its own would be another matter. */
function readDatabaseFaults(lines: string[]): Complaint[] {
  return lines
    .filter((line) => /PANIC|terminated by signal/.test(line))
    .map((line) => ({ process: 'database', level: 'fatal', text: line }))
}
