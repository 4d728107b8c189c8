import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { fastify } from 'fastify'
import { serveDocs } from '../../src/http/docs.ts'
import { describeApi } from '../../src/http/openapi.ts'

const FILES = {
  '/': ['text/html; charset=utf-8', 'server/static/index.html'],
  '/docs': ['text/html; charset=utf-8', 'server/static/docs/index.html'],
  '/docs/docs.css': ['text/css; charset=utf-8', 'server/static/docs/docs.css'],
  '/docs/docs.js': ['text/javascript; charset=utf-8', 'server/static/docs/docs.js'],
  '/docs/icon.svg': ['image/svg+xml', 'server/static/docs/icon.svg'],
  '/docs/openapi.json': ['application/json; charset=utf-8', 'openapi.json'],
} as const

const app = fastify()
await describeApi(app, { version: '1.2.3', tags: [] })
serveDocs(app)
await app.ready()
const page = (await app.inject('/docs')).body
const document = JSON.parse((await app.inject('/docs/openapi.json')).body)

function fileText(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
}

describe('GET /docs', () => {
  for (const [path, [type, file]] of Object.entries(FILES)) {
    test(`${path} serves ${file}, plain and compressed`, async () => {
      const plain = await app.inject(path)
      assert.equal(plain.statusCode, 200)
      assert.equal(plain.headers['content-type'], type)
      assert.equal(plain.headers['content-encoding'], undefined)
      assert.equal(plain.body, fileText(file))
      const compressed = await app.inject({ url: path, headers: { 'accept-encoding': 'gzip, br' } })
      assert.equal(compressed.headers['content-type'], type)
      assert.equal(compressed.headers['content-encoding'], 'gzip')
      assert.equal(compressed.headers.vary, 'Accept-Encoding')
      assert.equal(gunzipSync(compressed.rawPayload).toString(), plain.body)
    })

    test(`${path} returns 304 to a caller that has the current version`, async () => {
      const { etag = '', 'cache-control': cacheControl } = (await app.inject(path)).headers
      assert.equal(cacheControl, 'no-cache')
      const unchanged = await app.inject({ url: path, headers: { 'if-none-match': `"other", ${etag}`, 'accept-encoding': 'gzip' } })
      assert.equal(unchanged.statusCode, 304)
      assert.equal(unchanged.headers.etag, etag)
      assert.equal(unchanged.body, '')
      const changed = await app.inject({ url: path, headers: { 'if-none-match': 'W/"other"' } })
      assert.equal(changed.statusCode, 200)
    })
  }

  test('adds nothing to the OpenAPI document', () => {
    assert.deepEqual(app.swagger().paths, {})
    assert.deepEqual(
      Object.keys(document.paths).filter((path) => path.startsWith('/docs')),
      [],
    )
  })

  test('redirects /docs/ to /docs, also below a prefix that a proxy adds', async () => {
    const response = await app.inject('/docs/')
    assert.equal(response.statusCode, 308)
    assert.equal(new URL(response.headers.location ?? '', 'https://example.com/herald/docs/').href, 'https://example.com/herald/docs')
  })

  test('forbids other hosts, inline scripts and styles, frames, sniffing and referrers in every response', async () => {
    const { etag = '' } = (await app.inject('/docs')).headers
    const requests = [...Object.keys(FILES), '/docs/'].map((url) => ({ url, headers: {} }))
    for (const request of [...requests, { url: '/docs', headers: { 'if-none-match': etag } }]) {
      const { headers } = await app.inject(request)
      const policy = String(headers['content-security-policy']).split('; ')
      assert.ok(policy.includes("default-src 'none'"), request.url)
      assert.ok(policy.includes("frame-ancestors 'none'"), request.url)
      const sources = policy.filter((rule) => /^\w+-src/.test(rule)).map((rule) => rule.replace(/^\S+ /, ''))
      assert.deepEqual(new Set(sources), new Set(["'none'", "'self'"]), request.url)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
    }
  })

  test('links only to its own sections and files, and all of them exist', async () => {
    const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
    assert.equal(new Set(ids).size, ids.length)
    const links = [...page.matchAll(/\s(?:src|href|srcset|action|data|poster)\s*=\s*"([^"]*)"/g)].map(([, link = '']) => link)
    assert.ok(links.includes('docs/docs.css') && links.includes('docs/docs.js'))
    for (const link of new Set(links)) {
      assert.equal(new URL(link, 'http://localhost/docs').host, 'localhost')
      if (link.startsWith('#')) assert.ok(ids.includes(link.slice(1)), `nothing has the id ${link}`)
      else assert.equal((await app.inject(new URL(link, 'http://localhost/docs').href)).statusCode, 200, link)
    }
    assert.doesNotMatch(fileText('server/static/docs/docs.css'), /url\(|@import|\/\//)
    assert.doesNotMatch(fileText('server/static/docs/docs.js'), /https?:|\/\/[\w.]|fetch|XMLHttpRequest|import\(|innerHTML|eval/)
  })

  test('shows every operation, event and object of the OpenAPI document', () => {
    for (const [path, operations] of Object.entries<object>(document.paths)) {
      for (const method of Object.keys(operations)) {
        assert.ok(page.includes(`<span class="method ${method}">${method}</span> <code><span class="base">/v1</span>${path}</code>`), path)
      }
    }
    for (const event of Object.keys(document.webhooks)) {
      assert.ok(page.includes(`<span class="method event">event</span> <code><span class="base"></span>${event}</code>`), event)
    }
    for (const name of Object.keys(document.components.schemas)) assert.ok(page.includes(`<article id="object-${name}"`), name)
  })
})
