import { useState } from 'preact/hooks'
import type { Account } from '../app/session.tsx'
import { words } from '../words/words.ts'
import { CodeBlock } from './code-block.tsx'
import { Button } from './controls.tsx'
import { Dialog } from './dialog.tsx'

/** A request to the API for callers. `path`: below /v1, such as `messages?status=FAILED`. */
type Call = { path: string; body?: unknown; headers?: Record<string, string> }

/** Quotes a text for a shell. A single quote would end it, so it stands outside the quotes. */
export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The command for a request: a POST if it has a body. */
export function curlOf({ path, body, headers = {} }: Call, base: string): string {
  return [
    `curl -H 'Authorization: Bearer hk_…:hs_…'`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`]),
    quoted(new URL(`v1/${path}`, base).href),
  ].join(' ')
}

/** The cursor of a list, if the API for callers knows it. The cursors of viewers are encrypted, so the call begins with the first page. */
export const ownCursor = ({ role }: Account, cursor: string | null) => (role === 'viewer' ? null : cursor)

/** Shows the API call that returns or does the same as the page. */
export function AsCurl(call: Call) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button icon="code" onClick={() => setOpen(true)}>
        {words.kit.asCurl}
      </Button>
      {isOpen && (
        <Dialog title={words.kit.curlTitle} onClose={() => setOpen(false)}>
          <CodeBlock text={curlOf(call, document.baseURI)} label={words.kit.curlTitle} />
          <p class="note">{words.kit.curlHint}</p>
        </Dialog>
      )}
    </>
  )
}
