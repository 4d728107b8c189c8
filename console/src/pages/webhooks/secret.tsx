import { CodeBlock } from '../../kit/code-block.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { words } from '../../words/words.ts'

/** Shows a new secret, which can't be read later. */
export function SecretDialog({ title, secret, onClose }: { title: string; secret: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose} closesOutside={false}>
      <p>{words.webhooks.secretHint}</p>
      {/* Not a button: where the browser refuses to copy, its text must be selectable. */}
      <CodeBlock text={secret} label={words.webhooks.secret} />
    </Dialog>
  )
}
