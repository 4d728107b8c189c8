import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { fastify } from 'fastify'
import { readBuilt, writeBuilt } from '../../src/console/built.ts'
import { createConsoleFiles } from '../../src/console/files.ts'
import { serveConsole } from '../../src/console/serve.ts'
import { handleErrors } from '../../src/http/error-responses.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertError, call, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL } = await createTestDatabase()
const { url } = await startTestService({ HERALD_DATABASE_URL }, { roles: ['api'] })

test('GET /console returns a page that may load nothing but its own files, which browsers may keep', async () => {
  const page = await fetch(`${url}/console`)
  assert.equal(page.status, 200)
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.equal(page.headers.get('cache-control'), 'no-cache')
  const policy = page.headers.get('content-security-policy') ?? ''
  for (const part of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "require-trusted-types-for 'script'"])
    assert.ok(policy.includes(part), part)
  const names = [...(await page.text()).matchAll(/(?:href|src)="(console\/main-[^"]+)"/g)].map(([, name]) => name)
  assert.equal(names.length, 2, 'a script and a stylesheet')
  for (const name of names) {
    const file = await fetch(`${url}/${name}`)
    assert.equal(file.status, 200)
    assert.equal(file.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.match(file.headers.get('content-type') ?? '', /^text\/(?:css|javascript)/)
    assert.equal(file.headers.get('content-security-policy'), policy)
  }
})

test('responds 404 to a file that the console does not have, and redirects /console/ to the page', async () => {
  assertError(await call(`${url}/console/main-0.js`), 404, 'RCS_NOT_FOUND')
  const redirect = await fetch(`${url}/console/`, { redirect: 'manual' })
  assert.deepEqual([redirect.status, redirect.headers.get('location')], [308, '../console'])
})

test('every response to a GET below /console has the policy of the page, also an error', async () => {
  const policy = (await fetch(`${url}/console`)).headers.get('content-security-policy')
  const expected: [path: string, status: number][] = [
    ['/console?x=1', 200],
    ['/console/?x=1', 308],
    ['/console/main-0.js', 404],
    ['/console/a/b', 404],
  ]
  for (const [path, status] of expected) {
    const response = await fetch(url + path, { redirect: 'manual' })
    assert.equal(response.status, status, path)
    assert.equal(response.headers.get('content-security-policy'), policy, path)
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff', path)
  }
  assert.equal((await fetch(`${url}/consoles`)).headers.get('content-security-policy'), null)
})

test('says that the bundler is missing only if it is, and sends the policy with the error', async () => {
  const cases: [error: Error, says: RegExp][] = [
    [Object.assign(new Error('the bundler cannot run'), { name: 'BundlerMissing' }), /its bundler cannot run/],
    [Object.assign(new Error('no build.ts'), { code: 'ERR_MODULE_NOT_FOUND' }), /its bundler cannot run/],
    [Object.assign(new Error('Build failed with 1 error'), { errors: [{}] }), /The log of the service says why/],
  ]
  for (const [error, says] of cases) {
    const app = fastify()
    handleErrors(app)
    serveConsole(app, () => Promise.reject(error))
    const { statusCode, body, headers } = await app.inject('/console')
    assert.equal(statusCode, 503)
    assert.match(body, says)
    assert.match(String(headers['content-security-policy']), /default-src 'none'/)
  }
})

test('repeats a failed build after 10 s, not for each request', async () => {
  let now = 0
  let builds = 0
  const load = async () => {
    builds += 1
    if (builds === 1) throw new Error('broken')
    return new Map()
  }
  const files = createConsoleFiles(load, () => now)
  await assert.rejects(files(), /broken/)
  now = 9_999
  await assert.rejects(files(), /broken/)
  assert.equal(builds, 1)
  now = 10_000
  assert.equal((await files()).size, 0)
  now = 30_000
  await files()
  assert.equal(builds, 2)
})

test('serves console/dist until a source of it changes, and always where there are no sources', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'herald-console-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const root = pathToFileURL(`${folder}/`)
  const source = join(folder, 'console/src/main.tsx')
  mkdirSync(join(folder, 'console/src'), { recursive: true })
  writeFileSync(source, 'one')
  assert.equal(readBuilt(root), undefined, 'nothing is built')
  writeBuilt(
    new Map([
      ['', Buffer.from('page')],
      ['main-1.js', Buffer.from('script')],
    ]),
    ['console/src/main.tsx'],
    root,
  )
  assert.deepEqual([...(readBuilt(root)?.keys() ?? [])].sort(), ['', 'main-1.js'])
  writeFileSync(source, 'two')
  assert.equal(readBuilt(root), undefined, 'the source has changed')
  writeFileSync(source, 'one')
  assert.equal(readBuilt(root)?.size, 2, 'the source is as it was, although its time is new')
  rmSync(join(folder, 'console/src'), { recursive: true })
  assert.equal(readBuilt(root)?.size, 2, 'there are no sources')
})
