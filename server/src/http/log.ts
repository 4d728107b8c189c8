import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import pg from 'pg'
import { type DestinationStream, type Logger, pino } from 'pino'
import { printable } from '../printable.ts'

/** The log holds these fields and no others: whatever else is handed to it, by us or by a package, is left out. */
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

// What waits for a disk that is full; the lines that come after that are left out.
const KEPT_BYTES = 1024 * 1024

/** JSON for machines; on a terminal the same fields in a line for people. */
function standardOutput(): DestinationStream {
  if (!process.stdout.isTTY) {
    const output = pino.destination({ fd: 1, sync: true, maxLength: KEPT_BYTES })
    // The service goes on without its log: an error that nobody hears would end it. Each line is written at once, so that there is nothing
    // to flush, which for the last one, of a fault, would be tried until the disk has room: for ever, with the process standing still.
    output.on('error', () => {})
    output.flushSync = () => {}
    return output
  }
  return {
    write: (line) => {
      const { level, time, msg, err, requestId, ...fields } = JSON.parse(line) as Record<string, string>
      const texts = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
      const parts = [time?.slice(11, 19), level, msg, ...texts, err && JSON.stringify(err)]
      process.stdout.write(`${printable(parts.filter(Boolean).join(' '))}\n`)
    },
  }
}

// Asked every few seconds by machines, for ever.
const PROBES = new Set(['/healthz', '/readyz'])

/** `route` is the pattern of a route, never the address as sent, which may hold a number or a secret. */
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

export function logRequest(log: FastifyBaseLogger, { method, route, status, ms, accountId }: ServedRequest): void {
  log[PROBES.has(route) ? 'debug' : 'info']({ method, route, status, ms: Math.round(ms * 10) / 10, accountId }, 'request')
}

/** What helps to find a fault, without what may quote a caller's data: a database error's message and detail hold values of rows. */
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

/** Credentials lose all but their kind, numbers of seven digits and more all but the ends. */
export function maskSecrets(text: string): string {
  return text.replace(/\b(h[ks]_|whsec_)[A-Za-z0-9+/=_-]+/g, '$1***').replace(/(?<!\d)(\d{2})\d{3,}(\d{2})(?!\d)/g, '$1***$2')
}
