import type { Pool } from '../../src/db/pool.ts'
import { type ApiResponse, assertError, call, createCaller, startTestService, type TestCaller } from './service.ts'

export const TEXT = { type: 'MESSAGE', content: 'Hello' }
/** Paths that name no template; a careless parser could read some as this id. */
export function noTemplates(id: number): string[] {
  const almost = [`0${id}`, `+${id}`, `-${id}`, `${id}.0`, `${id}e0`, ` ${id}`, `${id}%20`, `0x${id.toString(16)}`, `${id},`]
  return [...almost, '0', '2147483648', '9007199254740993', '99999999999999999999', 'abc', 'check', '%00', 'ą', "1' or 1=1"]
}

export function assertNoSuchTemplate(response: ApiResponse, id: number | string): void {
  assertError(response, 404, 'RCS_TEMPLATE_NOT_FOUND', [['/id', 'names no template of this account']], String(id))
}

/** A content with a button that sends a template. */
export function sending(...templateIds: number[]) {
  return {
    ...TEXT,
    buttons: templateIds.map((templateId, index) => ({ id: `b${index}`, type: 'trigger_template', text: 'More', templateId })),
  }
}

export type TemplateCaller = TestCaller & {
  create: (body: unknown) => Promise<ApiResponse>
  /** Creates one and returns its id. */
  created: (message?: unknown, fields?: Record<string, unknown>) => Promise<number>
  read: (id: number | string) => Promise<ApiResponse>
  list: (query?: string) => Promise<ApiResponse>
  replace: (id: number | string, body: unknown) => Promise<ApiResponse>
  remove: (id: number | string) => Promise<ApiResponse>
  check: (body: unknown, query?: string) => Promise<ApiResponse>
}

/** The service without limits, and callers of it, each with its own account. */
export async function startTemplateService({ url: HERALD_DATABASE_URL, pool }: { url: string; pool: Pool }) {
  const { url, log } = await startTestService({ HERALD_DATABASE_URL, HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000' })
  async function newCaller(): Promise<TemplateCaller> {
    const caller = await createCaller(pool)
    const { authorization } = caller
    const send = (method: string, path: string, body?: unknown) => call(`${url}/v1/templates${path}`, { method, authorization, body })
    const create = (body: unknown) => send('POST', '', body)
    return {
      ...caller,
      create,
      created: async (message = TEXT, fields = {}) => (await create({ name: 'Template', message, ...fields })).body.id,
      read: (id) => send('GET', `/${id}`),
      list: (query = '') => send('GET', query),
      replace: (id, body) => send('PUT', `/${id}`, body),
      remove: (id) => send('DELETE', `/${id}`),
      check: (body, query = '') => send('POST', `/check${query}`, body),
    }
  }
  return { url, log, newCaller }
}
