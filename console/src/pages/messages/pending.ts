import type { Message } from '../../timeline/types.ts'

/** Whether a message is about to change without an event: failed attempts and an SMS that is held back emit none. */
export const isPending = ({ status, smsFallback }: Message) =>
  status === 'ACCEPTED' || status === 'SENDING' || smsFallback?.status === 'SCHEDULED'

/** When the SMS of these messages are due. */
export const dueTimesOf = (messages: Message[]) =>
  messages.flatMap(({ smsFallback }) => (smsFallback?.status === 'SCHEDULED' && smsFallback.dueAt !== undefined ? [smsFallback.dueAt] : []))
