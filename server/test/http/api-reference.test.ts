import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { type FastifyInstance, fastify } from 'fastify'
import { Type } from 'typebox'
import type { ApiDocument } from '../../scripts/api-reference/document.ts'
import { renderPage } from '../../scripts/api-reference/page.ts'
import { errorResponses, handleErrors } from '../../src/http/error-responses.ts'
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

async function describeThings(): Promise<ApiDocument> {
  const app = fastify({ schemaController: { compilersFactory: { buildValidator: buildValidator as never } } }) as unknown as FastifyInstance
  handleErrors(app)
  await describeApi(app, {
    version: '1.2.3',
    tags: [{ name: HOSTILE, description: 'Things.' }],
    webhooks: eventWith({ type: 'object', properties: { eventId: { type: 'string' } } }),
  })
  await app.register(
    async (v1) => {
      v1.addSchema(Button)
      const tags = [HOSTILE]
      const ok = { 200: Type.Object({ thingId: Type.String() }, { description: 'The thing.' }), ...errorResponses('RCS_AGENT_NOT_FOUND') }
      const read = { operationId: 'readThing', summary: 'Read a thing', tags, params: ThingPath, response: ok }
      v1.get('/things/:thingId', { schema: read }, async () => ({ thingId: '1' }))
      const create = { operationId: 'createThing', summary: `Create ${HOSTILE}`, tags, body: NewThing, response: ok }
      v1.post('/things', { schema: create }, async () => ({ thingId: '1' }))
      const file = { 200: { description: 'A row a thing.', content: { 'text/csv': { schema: { type: 'string' } } } } }
      const exportAll = { operationId: 'exportThings', summary: 'Export the things', tags, response: file }
      v1.get('/export', { schema: exportAll }, async () => '')
    },
    { prefix: '/v1' },
  )
  await app.ready()
  return app.swagger() as unknown as ApiDocument
}

function eventWith(schema: object) {
  return {
    'thing.made': {
      post: {
        operationId: 'thing.made',
        tags: [HOSTILE],
        summary: 'A thing was made',
        requestBody: { content: { 'application/json': { schema } } },
        responses: { '2XX': { description: 'Within 15 seconds.' } },
      },
    },
  }
}

const document = await describeThings()
const PLACE = { folder: 'docs/', file: 'openapi.json', other: { address: 'docs/other', title: 'Other' }, token: 'hk_…:hs_…' }
const page = renderPage(JSON.stringify(document), PLACE)
const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)

/** What a browser shows for a piece of the page. */
function shownText(markup: string): string {
  const characters: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }
  return markup.replace(/<[^>]*>/g, '').replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => characters[entity] ?? '')
}

function article(id: string): string {
  return new RegExp(`<article id="${id}".*?</article>`, 's').exec(page)?.[0] ?? assert.fail(`no article ${id}`)
}

describe('renderPage', () => {
  test('gives every operation, event and object a section that can be linked to', () => {
    assert.deepEqual(
      ids.filter((id) => /thing|button/i.test(id ?? '')),
      ['readThing', 'createThing', 'exportThings', 'thing-made', 'object-Button'],
    )
  })

  test('shows an event with its body and the response that the caller sends', () => {
    const event = article('thing-made')
    assert.match(event, /A thing was made.*event<\/span>.*thing\.made.*eventId.*Your response.*Within 15 seconds\./s)
    assert.doesNotMatch(event, /curl/)
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

  test('shows an object that contains itself once, and links to it from there', () => {
    assert.ok(shownText(article('createThing')).includes('entries array of Button'))
  })

  test('escapes all text of the document', () => {
    const tags =
      /<!doctype html>|<\/?(?:html|head|meta|title|link|body|header|nav|main|section|article|div|h[1-4]|p|a|span|code|pre|ul|li|dl|dt|dd|details|summary|figure|figcaption|button|input|img|script)(?: [a-z-]+(?:="[^"<>]*")?)*>/g
    assert.ok(!page.replace(tags, '').includes('<'))
    assert.deepEqual(page.match(/<script[^>]*>/g), ['<script src="docs/docs.js" defer>'])
    assert.equal(
      page.match(/<img[^>]*>/g)?.every((tag) => tag.startsWith('<img src="docs/icon.svg" ')),
      true,
    )
    assert.doesNotMatch(page.replace(/&[a-z#0-9]+;/g, ''), /<[^>]*\son\w+=/)
    // The tag and the summary in the contents and as headings, a description, a value, the name of a field.
    assert.equal(shownText(page).split(HOSTILE).length - 1, 7)
  })

  test('quotes the text of an example for the shell', () => {
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
    assert.ok(shownText(article('readThing')).includes("curl 'http://localhost:8080/v1/things/THING_ID'"))
    assert.ok(shownText(article('exportThings')).includes('--remote-name --remote-header-name'))
  })

  test('throws for a keyword that it cannot show, and for a reference to nothing', () => {
    const withField = (field: object) => JSON.stringify({ ...document, webhooks: eventWith({ type: 'object', properties: { field } }) })
    assert.throws(() => renderPage(withField({ type: 'integer', multipleOf: 5 }), PLACE), /cannot show "multipleOf": 5/)
    assert.throws(
      () => renderPage(withField({ type: 'object', additionalProperties: { type: 'integer', multipleOf: 5 } }), PLACE),
      /cannot show "multipleOf": 5/,
    )
    assert.throws(() => renderPage(withField({ $ref: '#/components/schemas/Other' }), PLACE), /nothing at #\/components\/schemas\/Other/)
  })
})
