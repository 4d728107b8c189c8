import { type ApiDocument, type Endpoint, flatten, type MediaType, type Parameter, resolve, type Schema } from './document.ts'
import { colouredJson, type Html, html, join, type Part } from './html.ts'
import { fixedValue } from './schema.ts'

/** Returns, as JSON, the example that the document gives, or one made from the schema. `fields` says which fields of an object it has. */
export function sampleBody(document: ApiDocument, media: MediaType, fields: 'required' | 'all'): string {
  const given = media.example ?? Object.values(media.examples ?? {})[0]?.value
  return JSON.stringify(given ?? sample({ document, fields, above: [] }, media.schema ?? {}), null, 2)
}

type Making = { document: ApiDocument; fields: 'required' | 'all'; above: string[] }

const BY_FORMAT: Record<string, string> = {
  'date-time': '2026-11-15T09:30:00.000Z',
  date: '2026-11-15',
  uuid: '019a8f1e-7b1c-7d3e-9f00-0123456789ab',
  uri: 'https://www.example.com/',
  email: 'name@example.com',
}

const UNKNOWN_TEXT = 'string'

function sample(making: Making, node: Schema): unknown {
  const { schema, nullable, name } = flatten(making.document, node)
  const given = schema.example ?? schema.examples?.[0] ?? schema.default ?? fixedValue(schema) ?? schema.enum?.[0]
  if (given !== undefined) return given
  // The recursion of an object that contains itself ends here.
  if (name !== undefined && making.above.includes(name)) return nullable ? null : {}
  const below = name === undefined ? making : { ...making, above: [...making.above, name] }
  const [kind] = schema.oneOf ?? schema.anyOf ?? []
  if (kind === undefined) return plainSample(below, schema)
  const chosen = sample(below, kind)
  return schema.properties === undefined ? chosen : { ...sampleObject(below, schema), ...(chosen as object) }
}

function plainSample(making: Making, schema: Schema): unknown {
  switch ([schema.type].flat()[0] ?? (schema.properties && 'object')) {
    case 'object':
      return sampleObject(making, schema)
    case 'array':
      return Array.from({ length: Math.max(1, schema.minItems ?? 1) }, () => sample(making, schema.items ?? {}))
    case 'integer':
      return Math.max(1, schema.minimum ?? 1)
    case 'number':
      return schema.minimum ?? 0
    case 'boolean':
      return true
    case 'string':
      return BY_FORMAT[schema.format ?? ''] ?? UNKNOWN_TEXT
    default:
      return null
  }
}

function sampleObject(making: Making, { properties = {}, required = [], minProperties = 0 }: Schema): Record<string, unknown> {
  const names = Object.keys(properties)
  const optional = names.filter((name) => !required.includes(name)).slice(0, Math.max(0, minProperties - required.length))
  const shown = making.fields === 'all' ? names : names.filter((name) => required.includes(name) || optional.includes(name))
  return Object.fromEntries(shown.map((name) => [name, sample(making, properties[name] ?? {})]))
}

/** The curl command that calls the endpoint. If the document names no host, the page's script inserts the host it was loaded from. */
export function curlCommand(document: ApiDocument, endpoint: Endpoint): Html {
  const { method, operation } = endpoint
  const body = operation.requestBody && resolve(document, operation.requestBody)
  const [bodyType, media] = Object.entries(body?.content ?? {})[0] ?? []
  const headers = parametersOf(document, endpoint).filter((parameter) => parameter.in === 'header' && parameter.required)
  const secured = (operation.security ?? document.security ?? []).length > 0
  const lines: Part[] = [
    html`curl ${address(document, endpoint)}`,
    method !== 'get' && `--request ${method.toUpperCase()}`,
    secured && '--header "Authorization: Bearer $HERALD_TOKEN"',
    bodyType && `--header ${quoted(`Content-Type: ${bodyType}`)}`,
    ...headers.map((header) => `--header ${quoted(`${header.name}: ${parameterSample(document, header)}`)}`),
    media && html`--data ${colouredJson(quoted(sampleBody(document, media, 'required')))}`,
    returnsFile(document, endpoint) && '--remote-name --remote-header-name',
  ]
  return join(
    lines.filter((line) => line !== undefined && line !== false),
    ' \\\n  ',
  )
}

function address(document: ApiDocument, endpoint: Endpoint): Html {
  const base = document.servers?.[0]?.url ?? ''
  const parameters = parametersOf(document, endpoint)
  const path = endpoint.path.replace(/\{([^}]+)\}/g, (_, name) => {
    const parameter = parameters.find((candidate) => candidate.in === 'path' && candidate.name === name)
    return encodeURIComponent(parameter === undefined ? placeholder(name) : parameterSample(document, parameter))
  })
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map((parameter) => `${encodeURIComponent(parameter.name)}=${encodeURIComponent(parameterSample(document, parameter))}`)
  const rest = `${base}${path}${query.length > 0 ? `?${query.join('&')}` : ''}`
  if (/^https?:/.test(base)) return html`${quoted(rest)}`
  return html`'<span data-origin>http://localhost:8080</span>${quoted(rest).slice(1)}`
}

export function parametersOf(document: ApiDocument, { operation }: Endpoint): Parameter[] {
  return (operation.parameters ?? []).map((parameter) => resolve(document, parameter))
}

/** A value that the document gives or implies, or else a placeholder such as `AGENT_ID`. */
function parameterSample(document: ApiDocument, { name, schema = {}, example }: Parameter): string {
  const made = sample({ document, fields: 'required', above: [] }, schema)
  return String(example ?? (made === UNKNOWN_TEXT ? placeholder(name) : made))
}

function placeholder(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase()
}

function returnsFile(document: ApiDocument, { operation }: Endpoint): boolean {
  return Object.entries(operation.responses ?? {})
    .filter(([status]) => status.startsWith('2'))
    .some(([, response]) => Object.keys(resolve(document, response).content ?? {}).some((type) => !isJson(type)))
}

export function isJson(mediaType: string): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/.test(mediaType)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
