import { ShownOnce } from '../../kit/shown-once.tsx'
import { words } from '../../words/words.ts'

/** Shows a new secret, which can't be read later. */
export function SecretDialog({ title, secret, onClose }: { title: string; secret: string; onClose: () => void }) {
  return <ShownOnce title={title} hint={words.webhooks.secretHint} label={words.webhooks.secret} text={secret} onClose={onClose} />
}
