import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Pool } from '../../../src/db/pool.ts'
import { type MessageCaller, startMessageService } from '../../support/messages.ts'
import { ALWAYS_DETAILED, type ApiResponse } from '../../support/service.ts'

// Reports as callers get them. Each is compared with the OpenAPI document of the service.

export type ReportCaller = MessageCaller & {
  /** Any response. `path`: what follows /v1/reports, with the query. */
  get: (path: string) => Promise<ApiResponse>
  /** The body of a successful response, which must be as documented. */
  report: (path: string) => Promise<any>
  /** All items of a list, read in pages of `limit`. `between` runs after each page but the last, with all items so far. */
  walk: (path: string, limit?: number, between?: (found: any[]) => Promise<unknown>) => Promise<any[]>
}

/** The service without rate limits, and callers of it, each with its own account. */
export async function startReportService(database: { url: string; pool: Pool }) {
  const service = await startMessageService(database)
  const assertDescribed = await descriptionsOf(service.url)
  const newCaller = async () => reporting(await service.newCaller(), assertDescribed)
  return { ...service, newCaller, assertDescribed }
}

export type AssertDescribed = (path: string, body: unknown) => void

export function reporting(caller: MessageCaller, assertDescribed: AssertDescribed): ReportCaller {
  const get = (path: string) => caller.ask('GET', `/reports${path}`)
  async function report(path: string): Promise<any> {
    const { status, headers, body } = await get(path)
    assert.deepEqual([status, body.details, headers.get('content-type')], [200, undefined, 'application/json; charset=utf-8'], path)
    assertDescribed(path, body)
    return body
  }
  async function walk(path: string, limit = 200, between: (found: any[]) => Promise<unknown> = async () => {}): Promise<any[]> {
    const found: any[] = []
    const query = `${path}${path.includes('?') ? '&' : '?'}limit=${limit}`
    for (let cursor = ''; ; ) {
      const page = await report(`${query}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
      found.push(...page.items)
      if (page.nextCursor === null) return found
      assert.equal(page.items.length, limit, 'only the last page is not full')
      await between(found)
      cursor = page.nextCursor
    }
  }
  return { ...caller, get, report, walk }
}

/** Compares responses with the OpenAPI document. */
export async function descriptionsOf(url: string): Promise<AssertDescribed> {
  const document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as { paths: Record<string, unknown> }
  const ajv = new Ajv2020({ strict: false, discriminator: false, validateFormats: false })
  ajv.addSchema(document, 'document')
  const paths = Object.keys(document.paths).filter((path) => path.startsWith('/reports/'))
  return (path, body) => {
    const requested = `/reports${path.replace(/\?.*/s, '')}`
    const template = paths.find((each) => new RegExp(`^${each.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(requested))
    assert.ok(template, `${requested} is documented`)
    const pointer = `/paths/${template.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')}/get/responses/200/content/application~1json/schema`
    const isDescribed = ajv.getSchema(`document#${pointer}`) ?? ajv.compile({ $ref: `document#${pointer}` })
    assert.ok(isDescribed(body), `${requested}: ${JSON.stringify(isDescribed.errors)}`)
  }
}

/** The n-th of a thousand numbers, in ascending order. */
export function phone(n: number): string {
  return `+485001${String(n).padStart(5, '0')}`
}

/** An error as documented, with exactly these details. */
export function assertRefused(
  { status, body }: ApiResponse,
  code: string,
  wanted: number,
  details?: { path: string; reason: string | RegExp }[],
) {
  assert.deepEqual([status, body.code], [wanted, code], JSON.stringify(body))
  const { requestId, details: given = [] } = body
  assert.deepEqual(body, { statusCode: wanted, code, message: code, requestId, ...(given.length > 0 && { details: given }) })
  assert.deepEqual(
    given.map(({ path }: { path: string }) => path),
    (details ?? (ALWAYS_DETAILED.includes(wanted) ? given : [])).map(({ path }: { path: string }) => path),
    JSON.stringify(given),
  )
  for (const [index, { reason }] of (details ?? []).entries()) {
    if (typeof reason === 'string') assert.equal(given[index].reason, reason)
    else assert.match(given[index].reason, reason)
  }
}
