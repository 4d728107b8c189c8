import { useState } from 'preact/hooks'
import { CodeBlock } from './code-block.tsx'
import { Button } from './controls.tsx'
import { Dialog } from './dialog.tsx'

/** A button that shows a text to copy. `code`: makes the text when the button is pressed. */
export function CodeButton({ text, title = text, hint, code }: { text: string; title?: string; hint?: string; code: () => string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button icon="code" onClick={() => setOpen(true)}>
        {text}
      </Button>
      {isOpen && (
        <Dialog title={title} onClose={() => setOpen(false)}>
          <CodeBlock text={code()} label={title} />
          {hint && <p class="note">{hint}</p>}
        </Dialog>
      )}
    </>
  )
}
