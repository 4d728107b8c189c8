import * as say from '../words/en-kit.ts'
import { Button, useCopy } from './controls.tsx'
import './dialog.css'

/** A text to copy as a whole. */
export function CodeBlock({ text, label }: { text: string; label: string }) {
  const { isCopied, said, copy } = useCopy(text)
  return (
    <div class="code-block">
      <Button icon={isCopied ? 'check' : 'copy'} kind="quiet" onClick={copy}>
        {said || say.copy}
      </Button>
      {/* Beside the button: within it, it would take the button's name away. */}
      <span class="sr" role="status">
        {said}
      </span>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by the keyboard */}
      <section tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
    </div>
  )
}
