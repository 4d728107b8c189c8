import type { Faults } from '../faults.ts'
import { type Answer, type FieldViolation, invalidField, ok, refusal } from '../http/answers.ts'
import { type Call, decodePart, type Handler, isJson, parseJson } from '../http/server.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { ACTIONS, type Acting } from './actions.ts'
import { isPhone } from './behaviours.ts'
import { type Ledger, readLedger } from './ledger.ts'
import { listPhones, viewPhone } from './view.ts'

type Deps = { acting: Acting; ledger: Ledger; faults: Faults; webhooks: Webhooks }

const NO_SUCH_PATH = refusal('NOT_FOUND', 'There is nothing here; simulator/README.md lists the paths.')

/** Everything under /simulator/: for tests and pages, not a part of any network. */
export function createControlRoutes(deps: Deps): Handler {
  const { store } = deps.acting
  return async (call) => {
    // A page of another origin can't send this type without asking first, and nobody here says yes.
    if ((call.method === 'POST' || call.method === 'PUT') && !isJson(call.headers)) {
      return refusal('INVALID_ARGUMENT', 'The content type must be application/json.', [], 415)
    }
    const answer = await route(deps, call)
    await store.committed()
    return answer
  }
}

function route(deps: Deps, call: Call): Answer | Promise<Answer> {
  const [, , section = '', part, action, ...more] = call.path.split('/')
  const name = `${call.method} ${section}${part === undefined ? '' : '/part'}${action === undefined ? '' : '/action'}`
  if (more.length > 0) return NO_SUCH_PATH
  const phone = part === undefined ? '' : decodePart(part)
  switch (name) {
    case 'GET counts':
      return ok({ ...deps.ledger.counts(), owed: owed(deps) })
    case 'GET ledger':
      return ledger(deps, call)
    case 'GET phones':
      return phones(deps, call)
    case 'GET phones/part':
      return withPhone(phone, (number) => viewOf(deps, number, call))
    case 'POST phones/part/action':
      return withPhone(phone, (number) => act(deps, number, action ?? '', call))
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

function withPhone(phone: string | undefined, then: (phone: string) => Answer): Answer {
  return isPhone(phone) ? then(phone) : invalidField('phone', 'The phone number must be in E.164, with a leading +.')
}

/** Counted, since what is owed is short-lived: it does not grow with history. */
function owed({ acting: { store } }: Deps) {
  const count = (sql: string) => store.get<{ count: number }>(sql)?.count ?? 0
  return {
    steps: count('select count(*) as count from steps'),
    webhooks: count('select count(*) as count from webhooks'),
    deliverSm: count('select count(*) as count from deliver_sm'),
  }
}

/** Undefined where the parameter is something else than a whole number up to `max`. */
function wholeNumber(call: Call, name: string, otherwise: number, max: number): number | undefined {
  const value = call.query.get(name)
  if (value === null) return otherwise
  return /^\d{1,15}$/.test(value) && Number(value) <= max ? Number(value) : undefined
}

function ledger({ acting: { store } }: Deps, call: Call): Answer {
  const after = wholeNumber(call, 'after', 0, Number.MAX_SAFE_INTEGER)
  const limit = wholeNumber(call, 'limit', 1000, 10_000)
  if (after === undefined) return invalidField('after', 'after must be a sequence number.')
  if (limit === undefined || limit === 0) return invalidField('limit', 'limit must be a whole number from 1 to 10000.')
  const entries = readLedger(store, after, limit)
  return ok({ entries, next: entries.at(-1)?.seq ?? after })
}

function phones({ acting: { store } }: Deps, call: Call): Answer {
  const limit = wholeNumber(call, 'limit', 1000, 10_000)
  if (limit === undefined || limit === 0) return invalidField('limit', 'limit must be a whole number from 1 to 10000.')
  const numbers = listPhones(store, call.query.get('after') ?? '', limit)
  return ok({ phones: numbers, next: numbers.length === limit ? (numbers.at(-1) ?? null) : null })
}

function viewOf({ acting: { store } }: Deps, phone: string, call: Call): Answer {
  const after = wholeNumber(call, 'after', 0, Number.MAX_SAFE_INTEGER)
  const limit = wholeNumber(call, 'limit', 1000, 10_000)
  if (after === undefined) return invalidField('after', 'after must be a sequence number.')
  if (limit === undefined || limit === 0) return invalidField('limit', 'limit must be a whole number from 1 to 10000.')
  return ok(viewPhone(store, phone, after, limit))
}

function act({ acting }: Deps, phone: string, name: string, call: Call): Answer {
  const action = ACTIONS.get(name)
  if (action === undefined) return refusal('NOT_FOUND', `A phone can ${[...ACTIONS.keys()].join(', ')}, not ${name}.`)
  const body = parseJson(call.body.toString('utf8')) as Record<string, unknown> | undefined
  const violations: FieldViolation[] = []
  action.check(body, '', violations)
  if (violations.length > 0) return refusal('INVALID_ARGUMENT', violations[0]?.description ?? '', violations)
  return action.act(acting, phone, body ?? {})
}

async function setWebhook({ webhooks }: Deps, call: Call): Promise<Answer> {
  const body = parseJson(call.body.toString('utf8'))
  const fields = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const { url, ...more } = fields
  const isWeb = typeof url === 'string' && URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)
  if (!isWeb || Object.keys(more).length > 0) return invalidField('url', 'The body must be {"url": an http or https address}.')
  const problem = await webhooks.register(url)
  return problem === undefined ? ok({ url }) : refusal('FAILED_PRECONDITION', problem)
}

function setFaults({ faults }: Deps, call: Call): Answer {
  const problem = faults.replace(parseJson(call.body.toString('utf8')))
  return problem === undefined ? ok(faults.describe()) : refusal('INVALID_ARGUMENT', problem)
}
