import type { Session } from 'smpp'

/** Joins the PDUs of this turn to one write; a write for each took a tenth of the CPU time. */
export function corked(session: Session): Session {
  const { socket } = session
  if (socket.writableCorked === 0) {
    socket.cork()
    process.nextTick(() => socket.uncork())
  }
  return session
}
