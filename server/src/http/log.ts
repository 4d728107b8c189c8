import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import pg from 'pg'
import { type DestinationStream, type Logger, pino } from 'pino'
import { printable } from '../printable.ts'

/** The log holds only these fields. Any other field that Herald or a package passes is left out. */
const FIELDS = [
  'method',
  'route',
  'status',
  'ms',
  'accountId',
  'carrier',
  'agentId',
  'endpointId',
  'file',
  'kind',
  'pauseMs',
  'reason',
  'code',
  'signal',
  'name',
  'month',
  'months',
  'retentionMonths',
  'metricsUrl',
  'err',
] as const

export function createLogger(level: string, destination: DestinationStream = standardOutput()): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => Object.fromEntries(FIELDS.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]]))),
      },
    },
    destination,
  )
}

// How many bytes to buffer while the disk is full. Lines after that are dropped.
const MAX_BUFFERED_BYTES = 1024 * 1024

/** JSON for machines; on a terminal the same fields as a line of text. */
function standardOutput(): DestinationStream {
  if (!process.stdout.isTTY) {
    const output = pino.destination({ fd: 1, sync: true, maxLength: MAX_BUFFERED_BYTES })
    // The service continues if the log can't be written: an error event without a listener would end it. Each line is written at once, so
    // there is nothing to flush. pino would flush the last line of a fatal error, and would block the process until the disk has room.
    output.on('error', () => {})
    output.flushSync = () => {}
    return output
  }
  return {
    write: (line) => {
      const { level, time, msg, err, requestId, ...fields } = JSON.parse(line) as Record<string, string>
      const texts = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
      const id = requestId && `requestId=${requestId}`
      const parts = [time?.slice(11, 19), level, msg, ...texts, id, err && JSON.stringify(err)]
      process.stdout.write(`${printable(parts.filter(Boolean).join(' '))}\n`)
    },
  }
}

// Probes request these every few seconds, and a network posts several events for each message, so they are logged at debug level; but not an
// event that was refused.
const PROBES = new Set(['/healthz', '/readyz'])
export const isQuiet = ({ route, status }: ServedRequest) => PROBES.has(route) || (route.startsWith('/carriers/') && status < 400)

/** `route` is the pattern of the route, never the URL as sent, which may hold a phone number or a secret. */
export type ServedRequest = { method: string; route: string; status: number; ms: number; accountId?: number | undefined }

export function servedRequest(
  { method, routeOptions, caller }: FastifyRequest,
  { statusCode: status, elapsedTime: ms }: FastifyReply,
): ServedRequest {
  return { method, route: routeOptions.url ?? 'unknown', status, ms, accountId: caller?.accountId }
}

/** A logger whose lines have the id of the request. */
export function logOf({ log, id }: FastifyRequest): FastifyBaseLogger {
  return log.child({ requestId: id })
}

export function logRequest(log: FastifyBaseLogger, served: ServedRequest): void {
  const { method, route, status, ms, accountId } = served
  log[isQuiet(served) ? 'debug' : 'info']({ method, route, status, ms: Math.round(ms * 10) / 10, accountId }, 'request')
}

/** Describes an error without the parts that may quote a caller's data: the message and the detail of a database error hold values of rows. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error }
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  const { code } = error as { code?: unknown }
  if (error instanceof pg.DatabaseError) {
    const { table, constraint, routine } = error
    return { type: 'DatabaseError', code, table, constraint, routine, frames }
  }
  return { type: error.name, code, message: maskSecrets(error.message), frames }
}

/** Masks credentials except for their prefix, and numbers of seven or more digits except for the first two and the last two. */
export function maskSecrets(text: string): string {
  return text.replace(/\b(h[ks]_|whsec_)[A-Za-z0-9+/=_-]+/g, '$1***').replace(/(?<!\d)(\d{2})\d{3,}(\d{2})(?!\d)/g, '$1***$2')
}
