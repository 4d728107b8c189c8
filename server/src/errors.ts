// All errors that callers can get, one row each. Error responses, the OpenAPI document and docs/errors.md are made from this table.

export const ERRORS = {
  RCS_INVALID_MESSAGE: {
    status: 400,
    when: 'The content of the message breaks a rule. If other fields are wrong too, this is still the code, and `details` lists everything.',
  },
  RCS_INVALID_RECIPIENT: {
    status: 400,
    when: 'A number is not a possible international phone number; or a list of recipients is empty, too long, or has a number twice.',
  },
  RCS_INVALID_SMS_FALLBACK: { status: 400, when: '`smsFallback` or `smsFallbackAfterExpiry` breaks a rule.' },
  RCS_TEMPLATE_NOT_APPROVED: { status: 400, when: 'The template is a draft; only `APPROVED` templates can be sent.' },
  RCS_IDEMPOTENCY_KEY_REQUIRED: {
    status: 400,
    when: 'The header Idempotency-Key is missing, empty, sent twice, over 255 characters, or not printable ASCII.',
  },
  RCS_INVALID_REQUEST: { status: 400, when: 'A field, parameter, header or the JSON itself is invalid.' },
  RCS_MISSING_VARIABLE: {
    status: 400,
    when: 'The content or the SMS has a variable that has neither a value nor a default; `details` names the field and the variable.',
  },
  RCS_INVALID_CURSOR: {
    status: 400,
    when: 'The cursor is not one of this list, with this sort and these filters; start again without a cursor.',
  },
  RCS_MEDIA_URL_REFUSED: {
    status: 400,
    when: 'The URL of the file, or one that it redirects to, is not an `https:` address of the public internet; `details` says why.',
  },
  RCS_UNAUTHORIZED: { status: 401, when: 'The credentials are missing, malformed, wrong, revoked or expired.' },
  RCS_ADDRESS_NOT_ALLOWED: { status: 403, when: 'The key may not be used from the address that the request comes from.' },
  RCS_ACCOUNT_SUSPENDED: { status: 403, when: 'The operator has suspended the account.' },
  RCS_SCOPE: { status: 403, when: 'The key lacks the scope that the request needs; `details` has both.' },
  RCS_MODULE_NOT_AVAILABLE: { status: 403, when: 'The account lacks the module that the request needs.' },
  RCS_ROLE: { status: 403, when: 'The role of the person or token does not allow this; `details` names the lowest role that does.' },
  RCS_CROSS_SITE: { status: 403, when: 'A request with a session comes from another site, or does not say which site it comes from.' },
  RCS_PASSWORD_REQUIRED: {
    status: 403,
    when: 'The step needs the password again: `POST /admin/v1/session/confirm`, or without a password `GET /admin/v1/oidc/confirm`; then repeat the request within ten minutes.',
  },
  RCS_SIGN_IN_REFUSED: { status: 403, when: 'The sign-in with the OpenID provider did not succeed; `details` says why.' },
  RCS_INSECURE_CONNECTION: { status: 403, when: 'People sign in over HTTPS; without it, only on the machine that Herald runs on.' },
  RCS_AGENT_NOT_FOUND: { status: 404, when: 'The agent does not exist, is inactive, or is not assigned to the account.' },
  RCS_TEMPLATE_NOT_FOUND: {
    status: 404,
    when: 'The template, or one that a button sends, does not exist or belongs to another account.',
  },
  RCS_MESSAGE_NOT_FOUND: { status: 404, when: 'The message does not exist, or belongs to another account.' },
  RCS_CAMPAIGN_NOT_FOUND: { status: 404, when: 'The campaign does not exist, or belongs to another account.' },
  RCS_SEGMENT_NOT_FOUND: { status: 404, when: 'A group does not exist, or belongs to another account.' },
  RCS_WEBHOOK_ENDPOINT_NOT_FOUND: { status: 404, when: 'The webhook endpoint does not exist, or belongs to another account.' },
  RCS_EVENT_NOT_FOUND: { status: 404, when: 'The event is not in the log of the account, which keeps events for 30 days.' },
  RCS_ACCOUNT_NOT_FOUND: { status: 404, when: 'The account does not exist, or the person or token has no role in it.' },
  RCS_SESSION_NOT_FOUND: { status: 404, when: 'The session has ended, or belongs to somebody else.' },
  RCS_NOT_FOUND: { status: 404, when: 'What the request names does not exist; `details` says what.' },
  RCS_ROUTE_NOT_FOUND: {
    status: 404,
    when: 'There is no such path. Paths are case-sensitive and have no slash at the end; /docs lists them.',
  },
  RCS_METHOD_NOT_ALLOWED: { status: 405, when: 'The path exists, but not for this method; the header Allow lists its methods.' },
  RCS_REQUEST_TIMEOUT: { status: 408, when: 'The request did not arrive completely in time.' },
  RCS_IDEMPOTENCY_CONFLICT: { status: 409, when: 'The Idempotency-Key was used before, with another body.' },
  RCS_MESSAGE_STATE: { status: 409, when: 'The message is being sent, was sent, or has its final status, so it can’t be cancelled.' },
  RCS_TEMPLATE_IN_USE: {
    status: 409,
    when: 'The template to be deleted is sent by a button of another template or of an unfinished campaign, or by an automatic reply.',
  },
  RCS_CAMPAIGN_STATE: {
    status: 409,
    when: 'The campaign can’t be paused, resumed or cancelled in its current status, which `details` names.',
  },
  RCS_WEBHOOK_ENDPOINT_EXISTS: { status: 409, when: 'Another webhook endpoint of the account has the same URL.' },
  RCS_WEBHOOK_ENDPOINT_STATE: {
    status: 409,
    when: 'The webhook endpoint is disabled, or a replay of it is running; `details` says which.',
  },
  RCS_REFUSED: { status: 409, when: 'The change is not possible now; `details` says why.' },
  RCS_NOT_SIMULATED: { status: 409, when: 'The carrier is a real network. Phones exist only where the carrier is the simulator.' },
  RCS_LINK_GONE: { status: 410, when: 'The link was used or replaced, or has expired; ask an operator for another one.' },
  RCS_CURSOR_GONE: {
    status: 410,
    when: 'Events after the cursor no longer exist, since they are kept for 30 days; or the operator restored the log to before the cursor.',
  },
  RCS_SEGMENT_EXISTS: { status: 412, when: 'The request has `If-None-Match: *`, and the segment exists.' },
  RCS_PAYLOAD_TOO_LARGE: { status: 413, when: 'The body is over 256 KiB.' },
  RCS_UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    when: 'The body is not uncompressed application/json; for an import, not uncompressed text/csv in UTF-8.',
  },
  RCS_MEDIA_UNREACHABLE: {
    status: 422,
    when: 'The host of the file does not respond, or not in time, or the URL redirects too often; `details` says why.',
  },
  RCS_MEDIA_STATUS: { status: 422, when: 'The host of the file responds with a status other than 200, such as 404; `details` names it.' },
  RCS_MEDIA_NOT_IMAGE: {
    status: 422,
    when: 'The file is not a PNG, JPEG, GIF or WebP by its Content-Type and its first bytes.',
  },
  RCS_MEDIA_TOO_LARGE: { status: 422, when: 'The file is over 5 MiB.' },
  RCS_RATE_LIMITED: { status: 429, when: 'Too many requests; Retry-After says how many seconds to wait.' },
  RCS_QUOTA_EXCEEDED: {
    status: 429,
    when: 'The request exceeds a quota of the account; `details` has its name, value and use. Retry-After says how many seconds to wait.',
  },
  RCS_HEADERS_TOO_LARGE: { status: 431, when: 'The request line and headers are over 16 KiB.' },
  RCS_INTERNAL: { status: 500, when: 'A fault of the service, logged with the request id.' },
  RCS_UNAVAILABLE: {
    status: 503,
    when: 'The database, the OpenID provider or the simulator is out of reach, the service is shutting down, too many exports, imports, streams, sign-ins or image fetches run, too many requests wait for phones, or a large import is changing the segment; try again after Retry-After seconds.',
  },
} as const satisfies Record<string, { status: number; when: string }>

export type ErrorCode = keyof typeof ERRORS

/** One mistake: where it is (a JSON pointer, or the name of a query parameter or header), and what would be right. */
export type Violation = { path: string; reason: string }

/** Errors of these statuses always have `details`. If the code that throws gives none, they are the `when` of the error. */
const ALWAYS_DETAILED = [401, 404, 405]

/** RFC 9110 requires it of every 401. Browsers ask for no password, unlike for `Basic`. */
const CHALLENGE = { 'WWW-Authenticate': 'Bearer' }

/** An error that the caller gets as a response. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: Violation[] | undefined
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, options: { details?: Violation[]; headers?: Record<string, string> } = {}) {
    super(code)
    this.code = code
    const { status, when } = ERRORS[code]
    this.details = options.details ?? (ALWAYS_DETAILED.includes(status) ? [{ path: '', reason: when }] : undefined)
    this.headers = { ...(status === 401 && CHALLENGE), ...options.headers }
  }
}

/** The 404 for a path parameter. A resource of another account looks the same. */
export function notFound(code: ErrorCode, parameter: string, resource: string): ApiError {
  return new ApiError(code, { details: [{ path: `/${parameter}`, reason: `names no ${resource} of this account` }] })
}

/** The exit status of a command that failed, by the kind of failure. A fault in Herald is a 1, too. docs/get-started.md lists them. */
export const EXIT = { refused: 1, usage: 2, notFound: 3, unavailable: 4, timedOut: 5 } as const

/** An error for the operator. It is printed without a stack, and control characters in its lines are escaped. */
export class OperatorError extends Error {
  readonly lines: readonly string[]
  exitCode: number = EXIT.refused

  constructor(...lines: string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

/** An error for the operator about something that does not exist. */
export function noSuch(...lines: string[]): OperatorError {
  return Object.assign(new OperatorError(...lines), { exitCode: EXIT.notFound })
}

/** An error for the operator about arguments or settings that can't be right. */
export function wrongUsage(...lines: string[]): OperatorError {
  return Object.assign(new OperatorError(...lines), { exitCode: EXIT.usage })
}

/** An error for the operator about a database that can't be reached. Trying again later may help. */
export function outOfReach(...lines: string[]): OperatorError {
  return Object.assign(new OperatorError(...lines), { exitCode: EXIT.unavailable })
}
