import { CodeBlock } from './code-block.tsx'
import { Dialog } from './dialog.tsx'

type Props = { title: string; hint: string; label: string; text: string; onClose: () => void }

/** Shows a secret that can't be read later. */
export function ShownOnce({ title, hint, label, text, onClose }: Props) {
  return (
    <Dialog title={title} onClose={onClose} closesOutside={false}>
      <p>{hint}</p>
      {/* Not a button: where the browser refuses to copy, its text must be selectable. */}
      <CodeBlock text={text} label={label} />
    </Dialog>
  )
}
