// The parts of OpenAPI 3.1 that the page shows.

export type Schema = {
  $ref?: string
  title?: string
  description?: string
  type?: string | string[]
  format?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  examples?: unknown[]
  deprecated?: boolean
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  minProperties?: number
  maxProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  multipleOf?: number
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  discriminator?: { propertyName: string }
}

export type MediaType = { schema?: Schema; example?: unknown; examples?: Record<string, { value?: unknown }> }
export type Content = Record<string, MediaType>
export type Parameter = {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
  example?: unknown
  $ref?: string
}
export type Header = { description?: string; schema?: Schema; $ref?: string }
export type Response = { description?: string; headers?: Record<string, Header>; content?: Content; $ref?: string }
export type RequestBody = { description?: string; required?: boolean; content?: Content; $ref?: string }
type Security = Record<string, string[]>[]

export type Operation = {
  operationId?: string
  tags?: string[]
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: RequestBody
  responses?: Record<string, Response>
  security?: Security
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options'
type PathItem = { [method in Method]?: Operation } & { parameters?: Parameter[] }

export type ApiDocument = {
  info: { title: string; version: string; description?: string }
  servers?: { url: string }[]
  tags?: { name: string; description?: string }[]
  paths?: Record<string, PathItem>
  webhooks?: Record<string, PathItem>
  security?: Security
  components?: {
    schemas?: Record<string, Schema>
    securitySchemes?: Record<string, { type: string; scheme?: string; description?: string }>
  }
}

/** An operation with its path: one that the caller requests, or an event (OpenAPI's webhook) that the caller receives. */
export type Endpoint = { id: string; isEvent: boolean; method: Method; path: string; operation: Operation }
export type Group = { id: string; name: string; description: string | undefined; endpoints: Endpoint[] }

const METHODS: Method[] = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options']

/** Groups all operations by their first tag, in the order of the document's tags. Tags that the document does not list come last. */
export function groupEndpoints(document: ApiDocument): Group[] {
  const endpoints = [...endpointsOf(document.paths, false), ...endpointsOf(document.webhooks, true)]
  const byTag = Map.groupBy(endpoints, ({ isEvent, operation }) => operation.tags?.[0] ?? (isEvent ? 'Events' : 'Other'))
  const descriptions = new Map((document.tags ?? []).map(({ name, description }) => [name, description]))
  return [...new Set([...descriptions.keys(), ...byTag.keys()])]
    .filter((name) => byTag.has(name))
    .map((name) => ({ id: `tag-${slug(name)}`, name, description: descriptions.get(name), endpoints: byTag.get(name) ?? [] }))
}

function endpointsOf(paths: Record<string, PathItem> = {}, isEvent: boolean): Endpoint[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method]
      if (operation === undefined) return []
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])]
      return [{ id: slug(operation.operationId ?? `${method} ${path}`), isEvent, method, path, operation: { ...operation, parameters } }]
    }),
  )
}

function slug(text: string): string {
  return text.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '')
}

/** Returns what a `$ref` points to. A description beside the reference overrides the one of the target. */
export function resolve<Node extends { $ref?: string; description?: string }>(document: ApiDocument, node: Node): Node {
  if (node.$ref === undefined) return node
  const { $ref, ...beside } = node
  const names = $ref
    .replace(/^#\//, '')
    .split('/')
    .map((name) => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'))
  const target = names.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], document)
  if (target === undefined) throw new Error(`The OpenAPI document has nothing at ${$ref}.`)
  return resolve(document, { ...(target as Node), ...beside })
}

/** The name under which the document lists a schema; undefined for an inline schema. */
export function schemaName({ $ref }: Schema): string | undefined {
  return $ref?.split('/').at(-1)
}

/** Merges the schemas of `allOf` into one, and says whether null is allowed, too (`anyOf` with null, or null among the types). */
export function flatten(document: ApiDocument, schema: Schema): { schema: Schema; nullable: boolean; name: string | undefined } {
  const name = schemaName(schema)
  const { allOf = [], ...own } = resolve(document, schema)
  const merged = allOf.map((part) => flatten(document, part).schema).reduce(merge, own)
  const choices = merged.oneOf ?? merged.anyOf
  const others = choices?.filter(({ type }) => type !== 'null') ?? []
  if (choices === undefined || others.length === choices.length) return { ...withoutNull(merged), name }
  const { oneOf, anyOf, ...rest } = merged
  const [only] = others
  if (others.length > 1 || only === undefined) return { schema: { ...rest, oneOf: others }, nullable: true, name }
  const inner = flatten(document, only)
  return { schema: { ...inner.schema, ...rest }, nullable: true, name: name ?? inner.name }
}

function merge(into: Schema, part: Schema): Schema {
  return {
    ...part,
    ...into,
    ...((into.properties || part.properties) && { properties: { ...into.properties, ...part.properties } }),
    ...((into.required || part.required) && { required: [...(into.required ?? []), ...(part.required ?? [])] }),
  }
}

function withoutNull(schema: Schema): { schema: Schema; nullable: boolean } {
  if (!Array.isArray(schema.type) || !schema.type.includes('null')) return { schema, nullable: false }
  const types = schema.type.filter((type) => type !== 'null')
  return { schema: { ...schema, type: types.length === 1 && types[0] !== undefined ? types[0] : types }, nullable: true }
}
