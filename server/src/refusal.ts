import { ApiError, ERRORS, type ErrorCode, EXIT, OperatorError } from './errors.ts'

type Refused = { code: ErrorCode; path?: string; reason?: string; retryAfterSeconds?: number }

/** The exit status of a command, by the status that a caller gets. */
const EXIT_CODES: Record<number, number> = { 400: EXIT.usage, 404: EXIT.notFound, 503: EXIT.unavailable }

/** Something does not exist. A command also names the command that lists what exists. */
export function missing(sentence: string, hint: string): Refusal {
  return new Refusal(`${sentence}; ${hint}.`, { code: 'RCS_NOT_FOUND', reason: `${sentence}.` })
}

/** The state of something does not allow the step. `command`, `caller`: what each of them can do about it, as the end of the sentence. */
export function refused(sentence: string, { command, caller }: { command: string; caller: string }): Refusal {
  return new Refusal(`${sentence}${command}.`, { code: 'RCS_REFUSED', reason: `${sentence}${caller}.` })
}

/** A refusal for operators and for callers: a command prints its sentence, and a caller gets `asApiError`. */
export class Refusal extends OperatorError {
  readonly asApiError: ApiError

  constructor(sentence: string, { code, path = '', reason, retryAfterSeconds }: Refused) {
    super(sentence)
    this.exitCode = EXIT_CODES[ERRORS[code].status] ?? EXIT.refused
    this.asApiError = new ApiError(code, {
      ...(reason !== undefined && { details: [{ path, reason }] }),
      ...(retryAfterSeconds !== undefined && { headers: { 'Retry-After': String(retryAfterSeconds) } }),
    })
  }
}
