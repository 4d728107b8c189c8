import { Submit } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { words } from '../../words/words.ts'
import type { Line } from './diff.ts'

const say = words.templates.changes

const SIGNS: Record<Line['is'], string> = { same: ' ', added: '+', removed: '−' }

type Props = {
  lines: Line[]
  /** What the person can do after a look. */
  save: (() => Promise<void>) | undefined
  onClose: () => void
}

/** How what a person has written differs from what was saved last. */
export function ChangesDialog({ lines, save, onClose }: Props) {
  const saving = save && { onSubmit: () => save().then(onClose), actions: <Submit text={words.templates.actions.save} /> }
  return (
    <Dialog title={words.templates.actions.changes} onClose={onClose} {...saving}>
      {save && <p>{say.approved}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by the keyboard */}
      <section class="diff" tabIndex={0} aria-label={words.templates.actions.changes}>
        {lines.map(({ text, is }) => (
          <p class={`diff-line is-${is}`}>
            <span aria-hidden="true">{SIGNS[is]}</span>
            {is !== 'same' && <span class="sr">{say[is]}: </span>}
            <code>{text}</code>
          </p>
        ))}
      </section>
    </Dialog>
  )
}
