import type { Account } from '../app/session.tsx'
import * as say from '../words/en-kit.ts'
import { CodeButton } from './code-button.tsx'

/**
 * A request to the API for callers. `path`: below /v1, such as `messages?status=FAILED`. `isAdmin`: to the admin API instead, so the path is below
 * /admin/v1. `credentials`: those of a key or a token, if they are known.
 */
type Call = { path: string; body?: unknown; headers?: Record<string, string>; isAdmin?: boolean; credentials?: string }

/** Quotes a text for a shell. A single quote would end it, so it stands outside the quotes. */
export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The command for a request: a POST if it has a body. */
export function curlOf(
  { path, body, headers = {}, isAdmin = false, credentials = isAdmin ? 'ho_…' : 'hk_…:hs_…' }: Call,
  base: string,
): string {
  return [
    `curl -H 'Authorization: Bearer ${credentials}'`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`]),
    quoted(new URL(`${isAdmin ? 'admin/v1' : 'v1'}/${path}`, base).href),
  ].join(' ')
}

/** The cursor of a list, if the API for callers knows it. The cursors of viewers are encrypted, so the call begins with the first page. */
export const ownCursor = ({ role }: Account, cursor: string | null) => (role === 'viewer' ? null : cursor)

/** Shows the API call that returns or does the same as the page. */
export function AsCurl(call: Call) {
  return (
    <CodeButton
      text={say.asCurl}
      title={say.curlTitle}
      code={() => curlOf(call, document.baseURI)}
      hint={call.isAdmin ? say.adminCurlHint : say.curlHint}
    />
  )
}
