export type HttpResponse = { status: number; body: string; headers?: Record<string, string> }
/** Close the connection without a response. */
export type Drop = 'drop'

export type FieldViolation = { field: string; description: string }

const STATUSES = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
} as const
type Status = keyof typeof STATUSES

export function ok(value: unknown): HttpResponse {
  return { status: 200, body: JSON.stringify(value) }
}

/** Returns an error in Google's form. `code`: the HTTP status, if it is not the usual one. */
export function refusal(status: Status, message: string, violations: FieldViolation[] = [], code: number = STATUSES[status]): HttpResponse {
  const details =
    violations.length === 0 ? {} : { details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }] }
  return { status: code, body: JSON.stringify({ error: { code, message, status, ...details } }) }
}

export const invalidField = (field: string, description: string): HttpResponse =>
  refusal('INVALID_ARGUMENT', description, [{ field, description }])
