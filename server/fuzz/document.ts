// The operations of the service: those of its two OpenAPI documents, and the routes outside of them.

export type Schema = {
  $ref?: string
  type?: string
  format?: string
  pattern?: string
  enum?: unknown[]
  oneOf?: Schema[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minimum?: number
  maximum?: number
  examples?: unknown[]
}

export type Parameter = { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: Schema }

export type Operation = {
  /** The operationId; of the admin API with a prefix, since most operations exist in both: `sendMessage`, `admin/sendMessage`. */
  id: string
  method: string
  /** From the root, with names in braces: `/v1/templates/{id}`. */
  path: string
  /** Where its schemas are. */
  document: ApiDocument
  /** It needs no credentials. */
  isPublic: boolean
  parameters: Parameter[]
  body: Schema | undefined
  example: unknown
  /** By status, the JSON pointer of the schema of the response in the document; undefined if the response is not JSON. */
  responses: Map<number, string | undefined>
}

type Media = { schema?: Schema; example?: unknown }
type DocumentOperation = {
  operationId: string
  security?: object[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { content?: Record<string, Media> }>
}
export type ApiDocument = {
  servers: { url: string }[]
  paths: Record<string, Record<string, DocumentOperation>>
  components: { schemas: Record<string, Schema> }
}

export const ADMIN_API = '/admin/v1'
const JSON_TYPE = 'application/json'

/** The first segments of its paths: `/v1` or `/admin/v1`. */
export const apiOf = ({ servers }: ApiDocument) => servers[0]?.url ?? ''

export const isOfAdmin = ({ path }: Pick<Operation, 'path'>) => path.startsWith(`${ADMIN_API}/`)

/** The name of an operation in its document. */
export const operationIdOf = ({ id }: Pick<Operation, 'id'>) => id.replace(ADMIN_PREFIX, '')

const ADMIN_PREFIX = 'admin/'

export function documentedOperations(document: ApiDocument): Operation[] {
  const api = apiOf(document)
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { schema, example } = operation.requestBody?.content[JSON_TYPE] ?? {}
      return {
        id: api === ADMIN_API ? ADMIN_PREFIX + operation.operationId : operation.operationId,
        method: method.toUpperCase(),
        path: `${api}${path}`,
        document,
        isPublic: operation.security?.length === 0,
        parameters: operation.parameters ?? [],
        body: schema,
        example,
        responses: responsesOf(operation, `/paths/${escapePointer(path)}/${method}/responses`),
      }
    }),
  )
}

function responsesOf({ responses }: DocumentOperation, pointer: string): Operation['responses'] {
  return new Map(
    Object.entries(responses).map(([status, { content = {} }]) => {
      const isJson = content[JSON_TYPE]?.schema !== undefined
      return [Number(status), isJson ? `${pointer}/${status}/content/${escapePointer(JSON_TYPE)}/schema` : undefined]
    }),
  )
}

export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

export function resolve(document: ApiDocument, schema: Schema): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '')
  return name === undefined ? schema : (document.components.schemas[name] as Schema)
}

/** The schema of every error, whatever the request. */
export const ERROR_POINTER = '/components/schemas/Error'

/** Operations that would end the run, or make its result depend on time, by id. */
export const EXCLUDED: Record<string, string> = {
  'admin/streamEvents': 'Its response never ends, so it would count as a hang.',
  'admin/setFaults': 'The faults would stay for all other requests: no message would be sent, and no phone would respond.',
}

export function operationsOf(v1: ApiDocument, admin: ApiDocument): Operation[] {
  const documented = [...documentedOperations(v1), ...documentedOperations(admin)].filter(({ id }) => !(id in EXCLUDED))
  return [...documented, ...outsideOf(v1, ROUTES), ...outsideOf(admin, ADMIN_ROUTES)]
}

type Route = { id: string; method: 'GET' | 'POST'; path: string; statuses: number[]; errors: number[]; isPublic: boolean }

/** Routes that are not in the document, and paths that do not exist. Errors have the documented form here too. */
const ROUTES: Route[] = [
  open('carrierWebhook', 'POST', '/carriers/{carrier}/webhook', [200], [400, 401, 404, 413, 415, 429]),
  open('visitLink', 'GET', '/l/{code}', [302, 404], [429]),
  open('readHealth', 'GET', '/healthz', [200], []),
  open('readReadiness', 'GET', '/readyz', [200], []),
  open('readMetrics', 'GET', '/metrics', [200], [404]),
  open('readFirstPage', 'GET', '/', [200], []),
  open('readDocs', 'GET', '/docs', [200], []),
  open('readDocument', 'GET', '/v1/openapi.json', [200], [400, 429]),
  open('unknownPath', 'GET', '/{anything}', [], [404]),
  { ...open('unknownRoute', 'GET', '/v1/{anything}', [], [401, 403, 404, 429]), isPublic: false },
]
const ADMIN_ROUTES: Route[] = [
  open('admin/readDocs', 'GET', '/docs/admin', [200], []),
  open('admin/readDocument', 'GET', '/admin/v1/openapi.json', [200], [400, 429]),
  { ...open('admin/unknownRoute', 'GET', '/admin/v1/{anything}', [], [401, 404, 429]), isPublic: false },
]

function open(id: string, method: Route['method'], path: string, statuses: number[], errors: number[]): Route {
  return { id, method, path, statuses, errors, isPublic: true }
}

function outsideOf(document: ApiDocument, routes: Route[]): Operation[] {
  return routes.map(({ statuses, errors, ...route }) => ({
    ...route,
    document,
    parameters: [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({ name, in: 'path' as const, schema: { type: 'string' } })),
    body: route.method === 'POST' ? {} : undefined,
    example: undefined,
    responses: new Map([
      ...statuses.map((status) => [status, undefined] as const),
      ...errors.map((status) => [status, ERROR_POINTER] as const),
    ]),
  }))
}
