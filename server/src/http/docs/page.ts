import { type ApiDocument, type Endpoint, type Group, groupEndpoints, type Response, resolve, type Schema } from './document.ts'
import { colouredJson, type Html, html, markdown, type Part, toMarkup } from './html.ts'
import { curlCommand, isJson, parametersOf, sampleBody } from './samples.ts'
import { bodySchema, fieldList, typeLabel, type View } from './schema.ts'

/** Renders the whole reference as one static page of HTML. Its links are relative to `/docs`. */
export function renderPage(document: ApiDocument): string {
  const { title, version, description } = document.info
  const groups = groupEndpoints(document)
  const objects = Object.entries(document.components?.schemas ?? {})
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="docs/docs.css">
<script src="docs/docs.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top"><button type="button" popovertarget="menu">Contents</button> <span>${title}</span></header>
<nav id="menu" popover aria-label="Contents">
<p class="brand"><img src="docs/icon.svg" alt="" width="26" height="26"> ${title} <span class="version">${version}</span></p>
<input type="search" id="filter" placeholder="Filter (press /)" aria-label="Filter the contents" hidden>
${contents(groups, objects)}
</nav>
<main id="content">
<section id="introduction">
<h1>${title} <span class="version">${version}</span></h1>
<div class="text lead">${markdown(description)}</div>
<p class="facts">Base address <code><span data-origin>http://localhost:8080</span>${document.servers?.[0]?.url}</code>
<a class="download" href="docs/openapi.json" download>OpenAPI document</a></p>
</section>
${authentication(document)}
${groups.map((group) => groupSection(document, group))}
<section id="objects"><h2>Objects</h2>${objects.map(([name, schema]) => objectArticle(document, name, schema))}</section>
</main>
</body>
</html>
`
  return toMarkup(page)
}

function contents(groups: Group[], objects: [string, Schema][]): Html {
  return html`<ul><li><a href="#introduction">Introduction</a></li><li><a href="#authentication">Authentication</a></li></ul>
${groups.map(
  ({ id, name, endpoints }) => html`<h2><a href="#${id}">${name}</a></h2>
<ul>${endpoints.map(
    (endpoint) =>
      html`<li data-path="${endpoint.path}"><a href="#${endpoint.id}">${badge(endpoint)} <span>${headline(endpoint)}</span></a></li>`,
  )}</ul>`,
)}
<h2><a href="#objects">Objects</a></h2>
<ul>${objects.map(([name]) => html`<li><a href="#object-${name}">${name}</a></li>`)}</ul>`
}

function authentication(document: ApiDocument): Html {
  const schemes = Object.values(document.components?.securitySchemes ?? {})
  return html`<section id="authentication" class="endpoint">
<div class="prose"><h2>Authentication</h2>${schemes.map(({ description }) => html`<div class="text">${markdown(description)}</div>`)}</div>
<div class="samples">${panel('For the examples', html`export HERALD_TOKEN=hk_…:hs_…`)}</div>
</section>`
}

function groupSection(document: ApiDocument, { id, name, description, endpoints }: Group): Html {
  return html`<section id="${id}">
<h2>${name}</h2>
<div class="text">${markdown(description)}</div>
${endpoints.map((endpoint) => endpointArticle(document, endpoint))}
</section>`
}

function endpointArticle(document: ApiDocument, endpoint: Endpoint): Html {
  const { id, isEvent, path, operation } = endpoint
  const base = isEvent ? '' : document.servers?.[0]?.url
  return html`<article id="${id}" class="endpoint">
<div class="prose">
<h3><a href="#${id}">${headline(endpoint)}</a></h3>
<p class="address">${badge(endpoint)} <code><span class="base">${base}</span>${path}</code>${operation.deprecated && html` <span class="deprecated">deprecated</span>`}</p>
<div class="text">${markdown(operation.description)}</div>
${parameterLists(document, endpoint)}
${requestBody(document, endpoint)}
${responses(document, endpoint)}
</div>
<div class="samples">${isEvent ? eventSample(document, endpoint) : [panel('Request', curlCommand(document, endpoint)), responseSample(document, endpoint)]}</div>
</article>`
}

function headline({ operation, method, path }: Endpoint): string {
  return operation.summary ?? `${method.toUpperCase()} ${path}`
}

function badge({ isEvent, method }: Endpoint): Html {
  return isEvent ? html`<span class="method event">event</span>` : html`<span class="method ${method}">${method}</span>`
}

const PLACES = [
  ['path', 'Path parameters'],
  ['query', 'Query parameters'],
  ['header', 'Headers'],
] as const

function parameterLists(document: ApiDocument, endpoint: Endpoint): Part {
  const parameters = parametersOf(document, endpoint)
  return PLACES.map(([place, title]) => {
    const fields = parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required = false, schema = {}, description }) => ({ name, required, schema, description }))
    return fields.length > 0 && html`<h4>${title}</h4>${fieldList(requestView(document), fields)}`
  })
}

function requestBody(document: ApiDocument, { isEvent, operation }: Endpoint): Part {
  if (operation.requestBody === undefined) return undefined
  const { description, content = {} } = resolve(document, operation.requestBody)
  const view: View = isEvent ? { ...requestView(document), marks: 'optional' } : requestView(document)
  return Object.entries(content).map(
    ([mediaType, { schema = {} }]) => html`<h4>Body <span class="media-type">${mediaType}</span></h4>
<div class="text">${markdown(description ?? schema.description)}</div>${bodySchema(view, schema)}`,
  )
}

function responses(document: ApiDocument, { isEvent, operation }: Endpoint): Html {
  const all = Object.entries(operation.responses ?? {}).map(([status, response]) => ({ status, ...resolve(document, response) }))
  const isError = ({ status }: { status: string }) => /^[45]/.test(status)
  const errors = all.filter(isError)
  const errorBody = Object.values(errors[0]?.content ?? {})[0]?.schema
  return html`<h4>${isEvent ? 'Your response' : 'Responses'}</h4>
${all.filter((response) => !isError(response)).map((response) => successResponse(document, response.status, response))}
${
  errors.length > 0 &&
  html`<details class="errors"><summary>Errors ${errors.map(({ status }) => html`<span class="status error">${status}</span> `)}</summary>
<dl>${errors.map(({ status, description }) => html`<dt><span class="status error">${status}</span></dt><dd>${markdown(description)}</dd>`)}</dl>
${errorBody && html`<p class="limits">Body: ${typeLabel(responseView(document), errorBody)}</p>`}</details>`
}`
}

function successResponse(document: ApiDocument, status: string, { description, headers = {}, content = {} }: Response): Html {
  const fields = Object.entries(headers).map(([name, header]) => {
    const { schema = {}, description: about } = resolve(document, header)
    return { name, schema, required: true, description: about, note: 'header' }
  })
  return html`<div class="response"><div class="response-title"><span class="status">${status}</span> ${markdown(description)}</div>
${fields.length > 0 && fieldList(responseView(document), fields)}
${Object.entries(content).map(([mediaType, { schema }]) =>
  isJson(mediaType) && schema !== undefined
    ? bodySchema(responseView(document), schema)
    : html`<p class="limits">a file: <code>${mediaType}</code></p>`,
)}</div>`
}

function responseSample(document: ApiDocument, { operation }: Endpoint): Html | undefined {
  const [status, response] = Object.entries(operation.responses ?? {}).find(([code]) => code.startsWith('2')) ?? []
  if (status === undefined || response === undefined) return undefined
  const [mediaType, media] = Object.entries(resolve(document, response).content ?? {})[0] ?? []
  if (mediaType === undefined || media === undefined || !isJson(mediaType)) return undefined
  return panel(`Response ${status}`, colouredJson(sampleBody(document, media, 'all')))
}

function eventSample(document: ApiDocument, { operation }: Endpoint): Html | undefined {
  const [media] = Object.values((operation.requestBody && resolve(document, operation.requestBody).content) ?? {})
  return media && panel('Body', colouredJson(sampleBody(document, media, 'all')))
}

function objectArticle(document: ApiDocument, name: string, schema: Schema): Html {
  return html`<article id="object-${name}" class="endpoint">
<div class="prose"><h3><a href="#object-${name}">${name}</a></h3>
<div class="text">${markdown(schema.description)}</div>${bodySchema({ ...responseView(document), marks: 'required', above: [name] }, schema)}</div>
<div class="samples">${panel('Example', colouredJson(sampleBody(document, { schema }, 'all')))}</div>
</article>`
}

function panel(title: string, content: Html): Html {
  return html`<figure class="panel"><figcaption>${title} <button type="button" class="copy" hidden>Copy</button></figcaption><pre tabindex="0"><code>${content}</code></pre></figure>`
}

function requestView(document: ApiDocument): View {
  return { document, inPlace: true, marks: 'required', above: [] }
}

function responseView(document: ApiDocument): View {
  return { document, inPlace: false, marks: 'optional', above: [] }
}
