import { ShownOnce } from '../../kit/shown-once.tsx'
import * as webhookWords from '../../words/en-webhooks.ts'

/** Shows a new secret, which can't be read later. */
export function SecretDialog({ title, secret, onClose }: { title: string; secret: string; onClose: () => void }) {
  return <ShownOnce title={title} hint={webhookWords.secretHint} label={webhookWords.secret} text={secret} onClose={onClose} />
}
