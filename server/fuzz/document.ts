// The operations of the service: those of its OpenAPI document, and the routes outside of it.

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
  id: string
  method: string
  /** From the root, with names in braces: `/v1/templates/{id}`. */
  path: string
  parameters: Parameter[]
  body: Schema | undefined
  example: unknown
  /** By status, the JSON pointer of the schema of the response in the document; undefined if the response is not JSON. */
  responses: Map<number, string | undefined>
}

type Media = { schema?: Schema; example?: unknown }
type DocumentOperation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { content?: Record<string, Media> }>
}
export type ApiDocument = {
  servers: { url: string }[]
  paths: Record<string, Record<string, DocumentOperation>>
  components: { schemas: Record<string, Schema> }
}

const JSON_TYPE = 'application/json'

export function documentedOperations(document: ApiDocument): Operation[] {
  const prefix = document.servers[0]?.url ?? ''
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { schema, example } = operation.requestBody?.content[JSON_TYPE] ?? {}
      return {
        id: operation.operationId,
        method: method.toUpperCase(),
        path: `${prefix}${path}`,
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

const ERROR = '/components/schemas/Error'

/** Routes that are not in the document, and paths that do not exist. Errors have the documented form here too. */
export const OUTSIDE: Operation[] = [
  outside('carrierWebhook', 'POST', '/carriers/{carrier}/webhook', [200], [400, 401, 404, 413, 415, 429]),
  outside('visitLink', 'GET', '/l/{code}', [302, 404], [429]),
  outside('readHealth', 'GET', '/healthz', [200], []),
  outside('readReadiness', 'GET', '/readyz', [200], []),
  outside('readMetrics', 'GET', '/metrics', [200], [404]),
  outside('readFirstPage', 'GET', '/', [200], []),
  outside('readDocs', 'GET', '/docs', [200], []),
  outside('readDocument', 'GET', '/v1/openapi.json', [200], [400, 429]),
  outside('unknownRoute', 'GET', '/v1/{anything}', [], [401, 403, 404, 429]),
  outside('unknownPath', 'GET', '/{anything}', [], [404]),
]

function outside(id: string, method: string, path: string, statuses: number[], errors: number[]): Operation {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({ name, in: 'path' as const, schema: { type: 'string' } }))
  const responses = new Map([
    ...statuses.map((status) => [status, undefined] as const),
    ...errors.map((status) => [status, ERROR] as const),
  ])
  return { id, method, path, parameters, body: method === 'POST' ? {} : undefined, example: undefined, responses }
}

/** The schema of every error, whatever the request. */
export const ERROR_POINTER = ERROR
