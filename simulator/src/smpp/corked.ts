import type { Session } from 'smpp'

/** Has all that is sent in this turn go out by one write; a write for each PDU was a tenth of the work. */
export function corked(session: Session): Session {
  const { socket } = session
  if (socket.writableCorked === 0) {
    socket.cork()
    process.nextTick(() => socket.uncork())
  }
  return session
}
