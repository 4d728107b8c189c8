import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type FastifyInstance, fastify } from 'fastify'
import { Type } from 'typebox'
import type { ApiDocument } from '../../src/http/docs/document.ts'
import { renderPage } from '../../src/http/docs/page.ts'
import { serveDocs } from '../../src/http/docs.ts'
import { answerErrors, errorResponses } from '../../src/http/error-answers.ts'
import { describeApi } from '../../src/http/openapi.ts'
import { buildValidator } from '../../src/http/validation.ts'

const HOSTILE = `<script>alert(1)</script><img src=x onerror="alert(2)">'"&\``

const Button = Type.Unsafe({
  $id: 'Button',
  type: 'object',
  discriminator: { propertyName: 'type' },
  oneOf: [
    Type.Object({ type: Type.Literal('url'), url: Type.String({ maxLength: 2048 }) }),
    Type.Object({ type: Type.Literal('call'), phoneNumber: Type.String() }),
    Type.Object({ type: Type.Literal('menu'), entries: Type.Array(Type.Unsafe({ $ref: 'Button#' })) }, { title: 'A menu of buttons' }),
  ],
})
const NewThing = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 31, pattern: '^<b>', description: `The name. ${HOSTILE}` }),
    colour: Type.Optional(Type.Enum(['red', HOSTILE], { default: 'red' })),
    buttons: Type.Optional(Type.Array(Type.Unsafe({ $ref: 'Button#' }), { maxItems: 4 })),
    [HOSTILE]: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  { additionalProperties: false, examples: [{ name: `it's ${HOSTILE} $(id) \\` }] },
)
const ThingPath = Type.Object({ thingId: Type.String() })

async function buildDocumentedApp(): Promise<FastifyInstance> {
  const app = fastify({ schemaController: { compilersFactory: { buildValidator: buildValidator as never } } }) as unknown as FastifyInstance
  answerErrors(app)
  await describeApi(app, { version: '1.2.3', tags: [] })
  serveDocs(app)
  await app.register(
    async (v1) => {
      v1.addSchema(Button)
      const ok = { 200: Type.Object({ thingId: Type.String() }, { description: 'The thing.' }), ...errorResponses('RCS_AGENT_NOT_FOUND') }
      v1.get('/things/:thingId', { schema: { summary: 'Read a thing', params: ThingPath, response: ok } }, async () => ({ thingId: '1' }))
      v1.post(
        '/things',
        { schema: { operationId: 'createThing', summary: `Create ${HOSTILE}`, tags: [HOSTILE], body: NewThing, response: ok } },
        async () => ({ thingId: '1' }),
      )
      const file = { 200: { description: 'A row a thing.', content: { 'text/csv': { schema: { type: 'string' } } } } }
      v1.get('/export', { schema: { operationId: 'exportThings', summary: 'Export the things', response: file } }, async () => '')
    },
    { prefix: '/v1' },
  )
  await app.ready()
  return app
}

const app = await buildDocumentedApp()
const document = app.swagger() as ApiDocument
const page = (await app.inject('/docs')).body
const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)

const EVENTS: ApiDocument = {
  info: { title: 'Events', version: '1' },
  webhooks: {
    'thing.made': {
      post: {
        summary: 'A thing was made',
        requestBody: { content: { 'application/json': { schema: { type: 'object', properties: { eventId: { type: 'string' } } } } } },
        responses: { '2XX': { description: 'Within 15 seconds.' } },
      },
    },
  },
}

/** What a browser shows for a piece of the page. */
function shownText(markup: string): string {
  const characters: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }
  return markup.replace(/<[^>]*>/g, '').replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => characters[entity] ?? '')
}

function article(id: string): string {
  return new RegExp(`<article id="${id}".*?</article>`, 's').exec(page)?.[0] ?? assert.fail(`no article ${id}`)
}

describe('GET /docs', () => {
  test('is there for everybody, without credentials, and is not part of the API it describes', async () => {
    const answer = await app.inject('/docs')
    assert.equal(answer.statusCode, 200)
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
    assert.deepEqual(Object.keys(document.paths ?? {}), ['/things/{thingId}', '/things', '/export'])
  })

  test('with a slash too many leads to the page, also below the prefix of a proxy', async () => {
    const answer = await app.inject('/docs/')
    assert.equal(answer.statusCode, 308)
    assert.equal(new URL(answer.headers.location ?? '', 'https://example.com/herald/docs/').href, 'https://example.com/herald/docs')
  })

  test('every answer forbids all that the page does not need: other hosts, inline scripts and styles, frames, sniffing, referrers', async () => {
    for (const path of ['/docs', '/docs/', '/docs/openapi.json', '/docs/docs.css', '/docs/docs.js', '/docs/icon.svg']) {
      const { headers } = await app.inject(path)
      const policy = String(headers['content-security-policy']).split('; ')
      assert.ok(policy.includes("default-src 'none'"), path)
      assert.ok(policy.includes("frame-ancestors 'none'"), path)
      const sources = policy.filter((rule) => /^\w+-src/.test(rule)).map((rule) => rule.replace(/^\S+ /, ''))
      assert.deepEqual(new Set(sources), new Set(["'none'", "'self'"]), path)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
    }
  })

  test('loads and links to nothing elsewhere, and all that it links to is there', async () => {
    const links = [...page.matchAll(/\s(?:src|href|srcset|action|data|poster)\s*=\s*"([^"]*)"/g)].map(([, link = '']) => shownText(link))
    assert.ok(links.includes('docs/docs.css') && links.includes('docs/docs.js'))
    for (const link of new Set(links)) {
      if (link.startsWith('#')) assert.ok(ids.includes(link.slice(1)), `nothing has the id ${link}`)
      else assert.equal((await app.inject(new URL(link, 'http://localhost/docs').href)).statusCode, 200, link)
      assert.equal(new URL(link, 'http://localhost/docs').host, 'localhost')
    }
    const [style, script] = [(await app.inject('/docs/docs.css')).body, (await app.inject('/docs/docs.js')).body]
    assert.doesNotMatch(style, /url\(|@import|\/\//)
    assert.doesNotMatch(script, /https?:|\/\/[\w.]|fetch|XMLHttpRequest|import\(|innerHTML|eval/)
  })

  test('shows every operation of the document, and each place can be linked to', () => {
    assert.equal(new Set(ids).size, ids.length)
    for (const [path, item] of Object.entries(document.paths ?? {})) {
      for (const method of Object.keys(item)) {
        assert.ok(page.includes(`<span class="method ${method}">${method}</span> <code><span class="base">/v1</span>${path}</code>`), path)
      }
    }
    assert.deepEqual(
      ids.filter((id) => /thing/i.test(id ?? '')),
      ['get-things-thingId', 'exportThings', 'createThing'],
    )
  })

  test('shows the events that a caller is sent', () => {
    const events = renderPage(EVENTS)
    assert.match(
      events,
      /<article id="post-thing-made".*A thing was made.*event<\/span>.*thing\.made.*eventId.*Your response.*Within 15 seconds\./s,
    )
    assert.doesNotMatch(events, /curl/)
  })

  test('shows the fields of a body with their limits, every kind of a union, and the codes of the errors', () => {
    const text = shownText(article('createThing'))
    for (const shown of ['name string required', '1 to 31 characters', 'matches ^<b>', 'at most 4 items', 'default red']) {
      assert.ok(text.includes(shown), shown)
    }
    for (const kind of ['type: "url"', 'type: "call"', 'type: "menu" A menu of buttons', 'phoneNumber', 'at most 2048 characters']) {
      assert.ok(text.includes(kind), kind)
    }
    assert.ok(text.includes('RCS_AGENT_NOT_FOUND: The agent does not exist'))
    assert.ok(text.includes('RCS_UNAUTHORIZED: The credentials are missing'))
  })

  test('an object that holds itself is unfolded once and linked from there', () => {
    assert.ok(shownText(article('createThing')).includes('entries array of Button'))
  })

  test('text from the document stays text, wherever it stands', () => {
    const tags =
      /<!doctype html>|<\/?(?:html|head|meta|title|link|body|header|nav|main|section|article|div|h[1-4]|p|a|span|code|strong|pre|ul|li|dl|dt|dd|details|summary|figure|figcaption|button|input|img|script)(?: [a-z-]+(?:="[^"<>]*")?)*>/g
    assert.ok(!page.replace(tags, '').includes('<'))
    assert.deepEqual(page.match(/<script[^>]*>/g), ['<script src="docs/docs.js" defer>'])
    assert.equal(
      page.match(/<img[^>]*>/g)?.every((tag) => tag.startsWith('<img src="docs/icon.svg" ')),
      true,
    )
    assert.doesNotMatch(page.replace(/&[a-z#0-9]+;/g, ''), /<[^>]*\son\w+=/)
    // In the contents its tag and summary; then the same two as headings, a description, a value, the name of a field.
    assert.equal(shownText(page).split(HOSTILE).length - 1, 7)
  })

  test('its command lines hold for a shell: the text of an example can neither break out nor change', () => {
    const [, markup = ''] = /<figcaption>Request .*?<code>(.*?)<\/code><\/pre>/s.exec(article('createThing')) ?? []
    const script = `curl() { printf '%s\\0' "$@"; }; HERALD_TOKEN=hk_1:hs_2; ${shownText(markup)}`
    const words = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1)
    assert.deepEqual(words.slice(0, -1), [
      'http://localhost:8080/v1/things',
      '--request',
      'POST',
      '--header',
      'Authorization: Bearer hk_1:hs_2',
      '--header',
      'Content-Type: application/json',
      '--data',
    ])
    assert.deepEqual(JSON.parse(words.at(-1) ?? ''), { name: `it's ${HOSTILE} $(id) \\` })
    assert.ok(shownText(article('get-things-thingId')).includes("curl 'http://localhost:8080/v1/things/THING_ID'"))
    assert.ok(shownText(article('exportThings')).includes('--remote-name --remote-header-name'))
  })

  test('the document it is made from can be loaded beside it', async () => {
    assert.deepEqual((await app.inject('/docs/openapi.json')).json(), JSON.parse(JSON.stringify(document)))
  })

  test('is compressed for those who can read it so, and the same for those who can not', async () => {
    const answer = await app.inject({ url: '/docs', headers: { 'accept-encoding': 'gzip, br' } })
    assert.equal(answer.headers['content-encoding'], 'gzip')
    assert.equal(answer.headers.vary, 'Accept-Encoding')
    assert.equal(gunzipSync(answer.rawPayload).toString(), page)
  })
})
