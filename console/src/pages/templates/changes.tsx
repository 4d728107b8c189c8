import { Submit } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import * as say from '../../words/en-templates.ts'
import type { Line } from './diff.ts'

const SIGNS: Record<Line['is'], string> = { same: ' ', added: '+', removed: '−' }

type Props = {
  lines: Line[]
  /** What the person can do after a look. */
  save: (() => Promise<void>) | undefined
  onClose: () => void
}

/** How what a person has written differs from what was saved last. */
export function ChangesDialog({ lines, save, onClose }: Props) {
  const saving = save && { onSubmit: () => save().then(onClose), actions: <Submit text={say.save} /> }
  return (
    <Dialog title={say.actions.changes} onClose={onClose} {...saving}>
      {save && <p>{say.approvesAtOnce}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by the keyboard */}
      <section class="diff" tabIndex={0} aria-label={say.actions.changes}>
        {lines.map(({ text, is }) => (
          <p class={`diff-line is-${is}`}>
            <span aria-hidden="true">{SIGNS[is]}</span>
            {is !== 'same' && <span class="sr">{say.lines[is]}: </span>}
            <code>{text}</code>
          </p>
        ))}
      </section>
    </Dialog>
  )
}
