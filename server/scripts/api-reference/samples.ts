import type { ApiDocument, Endpoint, MediaType, Parameter, Schema } from './document.ts'
import { colouredJson, type Html, html, join, type Part } from './html.ts'

type Fields = 'required' | 'all'

/** Returns, as JSON, the example that the document gives, or one made from the schema. `fields` says which fields of an object it has. */
export function sampleBody({ schema, example }: MediaType, fields: Fields): string {
  return JSON.stringify(example ?? sample(fields, schema), null, 2)
}

const BY_FORMAT: Record<string, string> = {
  'date-time': '2026-11-15T09:30:00.000Z',
  date: '2026-11-15',
  uuid: '019a8f1e-7b1c-7d3e-9f00-0123456789ab',
}

const UNKNOWN_TEXT = 'string'

function sample(fields: Fields, schema: Schema): unknown {
  const given = schema.examples?.[0] ?? schema.default ?? schema.enum?.[0]
  if (given !== undefined) return given
  if (schema.oneOf?.[0] !== undefined) return sample(fields, schema.oneOf[0])
  switch (schema.type) {
    case 'object':
      return sampleObject(fields, schema)
    case 'array':
      return Array.from({ length: Math.max(1, schema.minItems ?? 1) }, () => sample(fields, schema.items ?? {}))
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

function sampleObject(fields: Fields, { properties = {}, required = [], minProperties = 0 }: Schema): Record<string, unknown> {
  const names = Object.keys(properties)
  const optional = names.filter((name) => !required.includes(name)).slice(0, Math.max(0, minProperties - required.length))
  const shown = fields === 'all' ? names : names.filter((name) => required.includes(name) || optional.includes(name))
  return Object.fromEntries(shown.map((name) => [name, sample(fields, properties[name] ?? {})]))
}

/** The curl command that calls the endpoint. The page's script inserts the host that the page was loaded from. */
export function curlCommand(document: ApiDocument, endpoint: Endpoint): Html {
  const { method, parameters = [], security, requestBody, responses } = endpoint
  const [bodyType, body] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const headers = parameters.filter((parameter) => parameter.in === 'header' && parameter.required)
  const isFile = Object.keys(responses[200]?.content ?? {}).some((type) => !isJson(type))
  const lines: Part[] = [
    html`curl ${address(document, endpoint)}`,
    method !== 'get' && `--request ${method.toUpperCase()}`,
    ...credentialHeaders(method, security),
    bodyType && `--header ${quoted(`Content-Type: ${bodyType}`)}`,
    ...headers.map((header) => `--header ${quoted(`${header.name}: ${parameterSample(header)}`)}`),
    body && (isJson(bodyType ?? '') ? html`--data ${colouredJson(quoted(sampleBody(body, 'required')))}` : '--data-binary @FILE'),
    isFile && '--remote-name --remote-header-name',
  ]
  return join(
    lines.filter((line) => line !== undefined && line !== false),
    ' \\\n  ',
  )
}

/** A change without a token must come from a page of Herald. */
function credentialHeaders(method: string, security: Endpoint['security']): string[] {
  const isPublic = security?.length === 0
  const needsSession = security?.some(({ session }) => session !== undefined) ?? false
  if (!isPublic && !needsSession) return ['--header "Authorization: Bearer $HERALD_TOKEN"']
  return [
    ...(needsSession ? ['--header "Cookie: __Host-herald=$HERALD_SESSION"'] : []),
    ...(method === 'get' ? [] : [`--header 'Sec-Fetch-Site: same-origin'`]),
  ]
}

function address({ servers: [{ url }] }: ApiDocument, { path, parameters = [] }: Endpoint): Html {
  const needed = parameters.filter(({ required }) => required)
  const filled = needed
    .filter((parameter) => parameter.in === 'path')
    .reduce((filling, parameter) => filling.replace(`{${parameter.name}}`, encodeURIComponent(parameterSample(parameter))), url + path)
  const query = needed
    .filter((parameter) => parameter.in === 'query')
    .map((parameter) => `${encodeURIComponent(parameter.name)}=${encodeURIComponent(parameterSample(parameter))}`)
  return html`'<span data-origin>http://localhost:8080</span>${quoted([filled, query.join('&')].filter(Boolean).join('?')).slice(1)}`
}

/** A value that the schema gives or implies, or else a placeholder such as `AGENT_ID`. */
function parameterSample({ name, schema }: Parameter): string {
  const made = sample('required', schema)
  return made === UNKNOWN_TEXT ? placeholder(name) : String(made)
}

function placeholder(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replace(/\W+/g, '_')
    .toUpperCase()
}

export function isJson(mediaType: string): boolean {
  return mediaType === 'application/json'
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
