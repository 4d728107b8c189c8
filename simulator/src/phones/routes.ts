import { createHash, timingSafeEqual } from 'node:crypto'
import { bareAgentId } from '../agents.ts'
import type { Faults } from '../faults.ts'
import { type FieldViolation, type HttpResponse, invalidField, ok, refusal } from '../http/responses.ts'
import { type Call, decodePart, type Handler, isJson, parseJson, textOf } from '../http/server.ts'
import type { Check } from '../rbm/checks.ts'
import type { Store } from '../state/store.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { ACTIONS, type Acting, launch, launchBody, performAction } from './actions.ts'
import { isPhone } from './behaviours.ts'
import { readHistory } from './history.ts'
import { type Ledger, readLedger } from './ledger.ts'
import { listRecentPhones, summarizePhone } from './summary.ts'
import { listPhones, viewMessage, viewPhone, viewSmsOf } from './view.ts'

type Deps = { store: Store; acting: Acting; ledger: Ledger; faults: Faults; webhooks: Webhooks; webhookToken: string }

const MAX_PAGE_SIZE = 10_000
const MAX_WAIT_MS = 30_000
const NO_SUCH_PATH = refusal('NOT_FOUND', 'Unknown path; simulator/README.md lists the paths.')

const NO_TOKEN = refusal('UNAUTHENTICATED', 'The Authorization header must be "Bearer " and the webhookToken of carriers.json.')

/** Handles everything under /simulator/, which is for tests and tools and not a part of any network. */
export function createControlRoutes(deps: Deps): Handler {
  const { store } = deps
  return async (call) => {
    // A web page of another origin cannot send this type without a preflight request, which is never allowed here.
    if ((call.method === 'POST' || call.method === 'PUT') && !isJson(call.headers)) {
      return refusal('INVALID_ARGUMENT', 'The content type must be application/json.', [], 415)
    }
    const response = await route(deps, call)
    await store.committed()
    return response
  }
}

function route(deps: Deps, call: Call): HttpResponse | Promise<HttpResponse> {
  const [, , section = '', part, action, ...more] = call.path.split('/')
  const name = `${call.method} ${section}${part === undefined ? '' : '/part'}${action === undefined ? '' : '/action'}`
  if (more.length > 0) return NO_SUCH_PATH
  // A phone number, an agent's id or a message's id.
  const target = part === undefined ? '' : decodePart(part)
  switch (name) {
    case 'GET counts':
      return ok({ ...deps.ledger.counts(), owed: owed(deps) })
    case 'GET ledger':
      return withPage(call, (page) => ledger(deps, page))
    case 'GET phones':
      return withPage(call, (page) => phones(deps, call, page), true)
    case 'GET phones/part':
      return withPhone(target, (number) => withPage(call, ({ after, limit }) => ok(viewPhone(deps.acting.messages, number, after, limit))))
    case 'GET messages/part':
      return ok(viewMessage(deps.acting.messages, target ?? '', agentsOf(call)))
    case 'GET summary':
      return withPage(call, ({ limit }) => ok(listRecentPhones(deps.store, deps.acting.offline, agentsOf(call), limit)))
    case 'GET phones/part/action':
      return withPhone(target, (number) => readPhone(deps, number, action ?? '', call))
    case 'POST phones/part/action':
      return withPhone(target, (number) => act(deps, number, action ?? '', call))
    case 'POST agents/part/action':
      return action === 'launch' && target ? launchAgent(deps, target, call) : NO_SUCH_PATH
    case 'GET webhook':
      return ok({ url: deps.webhooks.url() ?? null })
    case 'PUT webhook':
      return setWebhook(deps, call)
    case 'GET faults':
      return ok(deps.faults.describe())
    case 'PUT faults':
      return setFaults(deps, call)
    case 'DELETE faults':
      deps.faults.clear()
      return ok({})
    default:
      return NO_SUCH_PATH
  }
}

type Response = HttpResponse | Promise<HttpResponse>

function withPhone(phone: string | undefined, then: (phone: string) => Response): Response {
  return isPhone(phone) ? then(phone) : invalidField('phone', 'The phone number must be in E.164, with a leading +.')
}

function owed({ store: { state } }: Deps): Record<string, number> {
  return Object.fromEntries(Object.entries(state.owed).map(([name, { debts }]) => [name, debts.size]))
}

type Page = { after: number; limit: number }

/** Reads `after` and `limit` of a list, or returns an error. A phone number as `after` is not read here. */
function withPage(call: Call, then: (page: Page) => Response, afterIsPhone = false): Response {
  const after = afterIsPhone ? 0 : wholeNumber(call, 'after', 0, Number.MAX_SAFE_INTEGER)
  const limit = wholeNumber(call, 'limit', 1000, MAX_PAGE_SIZE)
  if (after === undefined) return invalidField('after', 'after must be a sequence number.')
  if (limit === undefined || limit === 0) return invalidField('limit', `limit must be a whole number from 1 to ${MAX_PAGE_SIZE}.`)
  return then({ after, limit })
}

/** Returns undefined if the parameter is not a whole number up to `max`. */
function wholeNumber(call: Call, name: string, otherwise: number, max: number): number | undefined {
  const value = call.query.get(name)
  if (value === null) return otherwise
  return /^\d{1,15}$/.test(value) && Number(value) <= max ? Number(value) : undefined
}

function ledger({ store }: Deps, { after, limit }: Page): HttpResponse {
  const entries = readLedger(store, after, limit)
  return ok({ entries, next: entries.at(-1)?.seq ?? after })
}

function phones({ store }: Deps, call: Call, { limit }: Page): HttpResponse {
  const numbers = listPhones(store, call.query.get('after') ?? '', limit)
  return ok({ phones: numbers, next: numbers.length === limit ? (numbers.at(-1) ?? null) : null })
}

/** The agents that a request is restricted to; empty if it is not. */
const agentsOf = (call: Call): Set<string> => new Set(call.query.getAll('agentId').map(bareAgentId))

function readPhone({ store, acting, ledger }: Deps, phone: string, name: string, call: Call): Response {
  if (name === 'summary') return ok(summarizePhone(store, acting.offline, agentsOf(call), phone))
  if (name === 'sms') return withPage(call, ({ limit }) => ok(viewSmsOf(acting.messages, phone, limit)))
  if (name !== 'ledger') return NO_SUCH_PATH
  return withPage(call, ({ after, limit }) => {
    const waitMs = wholeNumber(call, 'waitMs', 0, MAX_WAIT_MS)
    if (waitMs === undefined) return invalidField('waitMs', `waitMs must be a whole number from 0 to ${MAX_WAIT_MS}.`)
    const page = { agents: agentsOf(call), after: call.query.has('after') ? after : undefined, limit }
    return follow(
      Date.now() + waitMs,
      (ms) => ledger.next(phone, ms),
      () => readHistory(acting.messages, phone, page),
    )
  })
}

/** Reads until there are entries, or until the deadline. */
async function follow(
  endsAt: number,
  next: (ms: number) => Promise<boolean>,
  read: () => ReturnType<typeof readHistory>,
): Promise<HttpResponse> {
  for (;;) {
    const page = read()
    const waitMs = endsAt - Date.now()
    if (page.entries.length > 0 || waitMs <= 0 || !(await next(waitMs))) return ok(page)
  }
}

function act({ acting }: Deps, phone: string, name: string, call: Call): HttpResponse {
  const action = ACTIONS.get(name)
  if (action === undefined) return refusal('NOT_FOUND', `A phone can ${[...ACTIONS.keys()].join(', ')}, not ${name}.`)
  return withBody(call, action.check, (body) => performAction(action, acting, phone, body))
}

function launchAgent({ acting }: Deps, agentId: string, call: Call): HttpResponse {
  return withBody(call, launchBody, ({ state }) => launch(acting, bareAgentId(agentId), state as string))
}

function withBody(call: Call, check: Check, then: (body: Record<string, unknown>) => HttpResponse): HttpResponse {
  const body = parseJson(textOf(call.body)) as Record<string, unknown>
  const violations: FieldViolation[] = []
  check(body, '', violations)
  if (violations.length > 0) return refusal('INVALID_ARGUMENT', violations[0]?.description ?? '', violations)
  // A null counts as absent.
  const fields = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
  return then(typeof fields.agentId === 'string' ? { ...fields, agentId: bareAgentId(fields.agentId) } : fields)
}

/** Sets the address of the webhook. The challenge sends the webhook token there, so only a caller that knows the token may set it. */
async function setWebhook({ webhooks, webhookToken }: Deps, call: Call): Promise<HttpResponse> {
  if (!isEqual(call.headers.authorization ?? '', `Bearer ${webhookToken}`)) return NO_TOKEN
  const body = parseJson(textOf(call.body))
  const fields = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const { url, ...more } = fields
  const isWeb = typeof url === 'string' && URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)
  if (!isWeb || Object.keys(more).length > 0) return invalidField('url', 'The body must be {"url": an http or https address}.')
  const problem = await webhooks.register(url)
  return problem === undefined ? ok({ url }) : refusal('FAILED_PRECONDITION', problem)
}

function setFaults({ faults }: Deps, call: Call): HttpResponse {
  const problem = faults.replace(parseJson(textOf(call.body)))
  return problem === undefined ? ok(faults.describe()) : refusal('INVALID_ARGUMENT', problem)
}

/** Compares in constant time. */
function isEqual(text: string, expected: string): boolean {
  const [one, other] = [text, expected].map((each) => createHash('sha256').update(each).digest()) as [Buffer, Buffer]
  return timingSafeEqual(one, other)
}
