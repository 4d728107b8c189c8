// The parts of OpenAPI 3.1 that this API uses and the page shows.

export type Schema = {
  title?: string
  description?: string
  type?: string
  format?: string
  enum?: unknown[]
  default?: unknown
  examples?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  minProperties?: number
  maxProperties?: number
  minimum?: number
  maximum?: number
  pattern?: string
  anyOf?: Schema[]
  oneOf?: Schema[]
  discriminator?: { propertyName: string }
  /** Added by `readDocument`: the name under which the document lists the schema, and whether null is allowed too. */
  name?: string
  nullable?: boolean
}

export type MediaType = { schema: Schema; example?: unknown }
export type Parameter = { name: string; in: string; required?: boolean; description?: string; schema: Schema }
export type Response = {
  description: string
  headers?: Record<string, { description?: string; schema: Schema }>
  content?: Record<string, MediaType>
}

type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters?: Parameter[]
  /** The scope that the key needs, or that a session is needed. Empty: no credentials are needed. */
  security?: { integrationKey?: [scope: string]; session?: [] }[]
  requestBody?: { content: Record<string, MediaType> }
  responses: Record<string, Response>
}

type Paths = Record<string, Record<string, Operation>>

export type ApiDocument = {
  info: { title: string; version: string; description: string }
  servers: [{ url: string }]
  tags: { name: string; description: string }[]
  paths: Paths
  webhooks?: Paths
  components: { schemas?: Record<string, Schema>; securitySchemes: Record<string, { description: string }> }
}

/** An operation with its path: one that the caller requests, or an event (OpenAPI's webhook) that the caller receives. */
export type Endpoint = Operation & { id: string; isEvent: boolean; method: string; path: string }
export type Group = { id: string; name: string; description: string; endpoints: Endpoint[] }

/** Groups the operations by their tag, in the order of the document's tags. */
export function groupEndpoints({ tags, paths, webhooks = {} }: ApiDocument): Group[] {
  const endpoints = [...endpointsOf(paths, false), ...endpointsOf(webhooks, true)]
  return tags.map(({ name, description }) => ({
    id: `tag-${slug(name)}`,
    name,
    description,
    endpoints: endpoints.filter((endpoint) => endpoint.tags.includes(name)),
  }))
}

function endpointsOf(paths: Paths, isEvent: boolean): Endpoint[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ ...operation, id: slug(operation.operationId), isEvent, method, path })),
  )
}

function slug(text: string): string {
  return text.replace(/[\W_]+/g, '-')
}

/** Parses an OpenAPI document. Replaces each `$ref` with its target, and each union of a schema and null with that schema, marked `nullable`. */
export function readDocument(text: string): ApiDocument {
  const document: ApiDocument = JSON.parse(text)
  for (const [name, schema] of Object.entries(document.components.schemas ?? {})) schema.name = name
  replaceWithin(document, (node) => (typeof node.$ref === 'string' ? targetOf(document, node.$ref) : node))
  replaceWithin(document, withoutNull)
  return document
}

type Node = Record<string, unknown>

/** Replaces every object within `node`. A schema that contains itself makes the document a cyclic graph, so each object is visited once. */
function replaceWithin(node: object, replace: (value: Node) => object, visited = new Set<object>()): void {
  if (visited.has(node)) return
  visited.add(node)
  for (const [key, value] of Object.entries(node)) {
    if (typeof value !== 'object' || value === null) continue
    const replaced = replace(value)
    ;(node as Node)[key] = replaced
    replaceWithin(replaced, replace, visited)
  }
}

function targetOf(document: ApiDocument, reference: string): object {
  const names = reference.split('/').slice(1)
  const target = names.reduce<unknown>((value, name) => (value as Node | undefined)?.[name], document)
  if (typeof target !== 'object' || target === null) throw new Error(`The OpenAPI document has nothing at ${reference}.`)
  return target
}

function withoutNull(schema: Schema): Schema {
  const { anyOf, ...rest } = schema
  const [only, ...others] = anyOf?.filter(({ type }) => type !== 'null') ?? []
  return anyOf?.length === 2 && only !== undefined && others.length === 0 ? { ...only, ...rest, nullable: true } : schema
}
