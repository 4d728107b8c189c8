import { isReady, type Node } from '../topology/node.ts'
import { type Program, readIfThere } from '../topology/program.ts'

// Whether a process ended by itself or no longer responds, and the errors in the logs.

/** `code`, `type` and `detail`: of the error that was logged. */
export type LogError = {
  process: string
  level: string
  text: string
  /** If the log has the time. */
  at?: number | undefined
  code?: string | undefined
  type?: string | undefined
  detail?: string | undefined
}

export type Processes = {
  running: number
  endedByItself: string[]
  /** Nodes that do not respond at the end. */
  silent: string[]
  logs: number
  /** All lines of all logs. */
  lines: string[]
  /** Lines of level error or fatal, and what programs wrote to their standard error. */
  errors: LogError[]
}

export async function inspectProcesses(nodes: readonly Node[], others: readonly Program[], databaseLog: string): Promise<Processes> {
  const all = [...nodes, ...others]
  const responding = await Promise.all(nodes.map(isReady))
  return {
    running: all.filter(({ isRunning }) => isRunning()).length,
    endedByItself: all.flatMap(({ endedByItself }) => endedByItself),
    silent: nodes.filter((_, n) => !responding[n]).map(({ name }) => name),
    logs: nodes.length + all.length + 1,
    lines: [...nodes.map(({ outFile }) => outFile), ...all.map(({ errFile }) => errFile), databaseLog].flatMap(linesOf),
    errors: [
      ...nodes.flatMap(({ name, outFile }) => readLogErrors(name, linesOf(outFile))),
      ...all.flatMap(({ name, errFile }) => readStandardError(name, linesOf(errFile))),
      ...readDatabaseErrors(linesOf(databaseLog)),
    ],
  }
}

const linesOf = (file: string) => readIfThere(file).split('\n').filter(Boolean)

/** The last line of a process that was killed may be cut. */
export function readLogErrors(process: string, lines: string[]): LogError[] {
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

// The database is empty at the start: the service then says which commands add an account, and how to create the first operator.
const GREETING = /^Herald (is ready at|has stopped)|^The database has no account yet|^ {2}npx herald |^The console: /

/** A healthy service only writes its greeting there, and that it has stopped. */
function readStandardError(process: string, lines: string[]): LogError[] {
  return lines.filter((line) => !GREETING.test(line)).map((line) => ({ process, level: 'stderr', text: line }))
}

/** The log also has our kills and the recoveries after them. A crash of one of its processes is an error. */
function readDatabaseErrors(lines: string[]): LogError[] {
  return lines
    .filter((line) => /PANIC|terminated by signal/.test(line))
    .map((line) => ({ process: 'database', level: 'fatal', text: line }))
}
