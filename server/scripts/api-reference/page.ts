import {
  type ApiDocument,
  type Endpoint,
  type Group,
  groupEndpoints,
  type MediaType,
  type Response,
  readDocument,
  type Schema,
} from './document.ts'
import { colouredJson, type Html, html, markdown, type Part, toMarkup } from './html.ts'
import { curlCommand, isJson, sampleBody } from './samples.ts'
import { bodySchema, fieldList, typeLabel, type View } from './schema.ts'

/**
 * `folder`: the address of the folder `/docs`, relative to the page. `file`: the document in that folder. `other`: the page of the other
 * document. `token`: what the examples authenticate with.
 */
type Place = { folder: string; file: string; other: { address: string; title: string }; token: string }

/** Renders an OpenAPI document as one static page of HTML. */
export function renderPage(openApi: string, { folder, file, other, token }: Place): string {
  const document = readDocument(openApi)
  const { title, version, description } = document.info
  const groups = groupEndpoints(document)
  const objects = Object.entries(document.components.schemas ?? {})
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${folder}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${folder}docs.css">
<script src="${folder}docs.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top"><button type="button" popovertarget="menu">Contents</button> <span>${title}</span></header>
<nav id="menu" popover aria-label="Contents">
<p class="brand"><img src="${folder}icon.svg" alt="" width="26" height="26"> ${title} <span class="version">${version}</span></p>
<input type="search" id="filter" placeholder="Filter (press /)" aria-label="Filter the contents" hidden>
${contents(groups, objects)}
</nav>
<main id="content">
<section id="introduction">
<h1>${title} <span class="version">${version}</span></h1>
<div class="text lead">${markdown(description)}</div>
<p class="facts">Base address <code><span data-origin>http://localhost:8080</span>${document.servers[0].url}</code>
<a class="download" href="${folder}${file}" download>OpenAPI document</a> <a href="${other.address}">${other.title}</a></p>
</section>
${authentication(document, token)}
${groups.map((group) => groupSection(document, group))}
<section id="objects"><h2>Objects</h2>${objects.map(([name, schema]) => objectArticle(name, schema))}</section>
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
      html`<li data-path="${endpoint.path}"><a href="#${endpoint.id}">${badge(endpoint)} <span>${endpoint.summary}</span></a></li>`,
  )}</ul>`,
)}
<h2><a href="#objects">Objects</a></h2>
<ul>${objects.map(([name]) => html`<li><a href="#object-${name}">${name}</a></li>`)}</ul>`
}

function authentication({ components: { securitySchemes } }: ApiDocument, token: string): Html {
  return html`<section id="authentication" class="endpoint">
<div><h2>Authentication</h2>${Object.values(securitySchemes).map(({ description }) => html`<div class="text">${markdown(description)}</div>`)}</div>
<div class="samples">${panel('For the examples', html`export HERALD_TOKEN=${token}`)}</div>
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
  const { id, summary, description, isEvent, path } = endpoint
  const base = isEvent ? '' : document.servers[0].url
  return html`<article id="${id}" class="endpoint">
<div>
<h3><a href="#${id}">${summary}</a></h3>
<p class="address">${badge(endpoint)} <code><span class="base">${base}</span>${path}</code></p>
<div class="text">${markdown(description)}</div>
${credentials(endpoint)}
${parameterLists(endpoint)}
${requestBody(endpoint)}
${responses(endpoint)}
</div>
<div class="samples">${isEvent ? jsonPanel('Body', endpoint.requestBody) : [panel('Request', curlCommand(document, endpoint)), responseSample(endpoint)]}</div>
</article>`
}

function credentials({ security, isEvent }: Endpoint): Html[] | undefined {
  if (isEvent) return undefined
  if (security?.length === 0) return [html`<p>Needs no credentials.</p>`]
  return security?.map(({ integrationKey }) =>
    integrationKey === undefined
      ? html`<p>Needs a session; a token is refused.</p>`
      : html`<p>Needs the scope <code>${integrationKey[0]}</code>, if the key has scopes.</p>`,
  )
}

function badge({ isEvent, method }: Endpoint): Html {
  return isEvent ? html`<span class="method event">event</span>` : html`<span class="method ${method}">${method}</span>`
}

const REQUEST: View = { inPlace: true, marks: 'required' }
const EVENT: View = { inPlace: true, marks: 'optional' }
const RESPONSE: View = { inPlace: false, marks: 'optional' }
const OBJECT: View = { inPlace: false, marks: 'required' }

const PLACES = { path: 'Path parameters', query: 'Query parameters', header: 'Headers' }

function parameterLists({ parameters = [] }: Endpoint): Part {
  return Object.entries(PLACES).map(([place, title]) => {
    const fields = parameters.filter((parameter) => parameter.in === place)
    return fields.length > 0 && html`<h4>${title}</h4>${fieldList(REQUEST, fields)}`
  })
}

function requestBody({ isEvent, requestBody: { content } = { content: {} } }: Endpoint): Part {
  return Object.entries(content).map(
    ([mediaType, { schema }]) => html`<h4>Body <span class="media-type">${mediaType}</span></h4>
<div class="text">${markdown(schema.description)}</div>${bodySchema(isEvent ? EVENT : REQUEST, schema)}`,
  )
}

function responses({ isEvent, responses: byStatus }: Endpoint): Html {
  const all = Object.entries(byStatus)
  const errors = all.filter(([status]) => /^[45]/.test(status))
  return html`<h4>${isEvent ? 'Your response' : 'Responses'}</h4>
${all.filter((response) => !errors.includes(response)).map(([status, response]) => successResponse(status, response))}
${errors.length > 0 && errorList(errors)}`
}

function errorList(errors: [string, Response][]): Html {
  const [body] = Object.values(errors[0]?.[1].content ?? {})
  return html`<details class="errors"><summary>Errors ${errors.map(([status]) => html`<span class="status error">${status}</span> `)}</summary>
<dl>${errors.map(([status, { description }]) => html`<dt><span class="status error">${status}</span></dt><dd>${markdown(description)}</dd>`)}</dl>
${body && html`<p class="limits">Body: ${typeLabel(body.schema)}</p>`}</details>`
}

function successResponse(status: string, { description, headers = {}, content = {} }: Response): Html {
  const fields = Object.entries(headers).map(([name, header]) => ({ ...header, name, required: true, note: 'header' }))
  return html`<div class="response"><div class="response-title"><span class="status">${status}</span> ${markdown(description)}</div>
${fields.length > 0 && fieldList(RESPONSE, fields)}
${Object.entries(content).map(([mediaType, { schema }]) =>
  isJson(mediaType) ? bodySchema(RESPONSE, schema) : html`<p class="limits">a file: <code>${mediaType}</code></p>`,
)}</div>`
}

function responseSample({ responses: byStatus }: Endpoint): Html | undefined {
  const [status, response] = Object.entries(byStatus).find(([code]) => code.startsWith('2')) ?? []
  return jsonPanel(`Response ${status}`, response)
}

function jsonPanel(title: string, { content = {} }: { content?: Record<string, MediaType> } = {}): Html | undefined {
  const [mediaType, media] = Object.entries(content)[0] ?? []
  return media && mediaType && isJson(mediaType) ? panel(title, colouredJson(sampleBody(media, 'all'))) : undefined
}

function objectArticle(name: string, schema: Schema): Html {
  return html`<article id="object-${name}" class="endpoint">
<div><h3><a href="#object-${name}">${name}</a></h3>
<div class="text">${markdown(schema.description)}</div>${bodySchema(OBJECT, schema)}</div>
<div class="samples">${jsonPanel('Example', { content: { 'application/json': { schema } } })}</div>
</article>`
}

function panel(title: string, content: Html): Html {
  return html`<figure class="panel"><figcaption>${title} <button type="button" class="copy" hidden>Copy</button></figcaption><pre tabindex="0"><code>${content}</code></pre></figure>`
}
