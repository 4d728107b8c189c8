import type { Page, Request } from 'playwright-core'
import { isAtLeast, type Role } from '../../../server/src/people/roles.ts'

// Which requests a role may send, as the OpenAPI document of the running service says.

type Operation = { method: string; pattern: RegExp; role: Role | undefined }

async function readOperations(base: string): Promise<Operation[]> {
  const document = (await (await fetch(`${base}/admin/v1/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { description?: string }>>
  }
  // An operation of one path comes before that of a pattern: messages/export is no id.
  const paths = Object.entries(document.paths).sort(([one], [other]) => one.split('{').length - other.split('{').length)
  return paths.flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { description = '' }]) => ({
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
      role: /Needs the role `(\w+)`/.exec(description)?.[1] as Role | undefined,
    })),
  )
}

/** Why a request of this role would be refused. Undefined: it would not. */
export async function refusals(base: string) {
  const operations = await readOperations(base)
  return (role: Role, method: string, url: string): string | undefined => {
    const path = new URL(url).pathname.replace('/admin/v1', '')
    const operation = operations.find((each) => each.method === method && each.pattern.test(path))
    if (operation === undefined) return `${method} ${path} is no operation of the API`
    const { role: needed } = operation
    return needed === undefined || isAtLeast(role, needed) ? undefined : `${method} ${path} needs the role ${needed}`
  }
}

/** Counts the requests that are under way, without those that never end. */
export function watchRequests(page: Page) {
  const open = new Set<Request>()
  const isOfPage = (request: Request) => request.url().includes('/admin/v1/') && !/\/stream\?|[?&]wait/.test(request.url())
  page.on('request', (request) => isOfPage(request) && open.add(request))
  page.on('requestfinished', (request) => open.delete(request))
  page.on('requestfailed', (request) => open.delete(request))
  return { count: () => open.size }
}
