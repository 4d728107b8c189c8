import type { Place } from '../../app/place.ts'
import { MessageList } from './list.tsx'
import { MessageView } from './message.tsx'
import './messages.css'

/** The list of messages; or one message, if the address has its id. */
export function MessagesPage({ place }: { place: Place }) {
  const [, messageId] = place.path
  return messageId === undefined ? <MessageList place={place} /> : <MessageView key={messageId} place={place} messageId={messageId} />
}
