import type { Refusal } from '../carrier.ts'

/** What a command_status means for a submit: a permanent refusal with its reason, or a temporary one. */
type SubmitResult = Refusal | 'AGAIN'

export const STATUS = {
  OK: 0x00,
  INVALID_LENGTH: 0x02,
  INVALID_COMMAND: 0x03,
  NOT_BOUND: 0x04,
  THROTTLED: 0x58,
  /** Our response to a deliver_sm that was not stored: the network sends it again. */
  TEMPORARY: 0x64,
} as const

// AGAIN: the network or the recipient's network is busy, or the connection is in the wrong state. Any other status would be the same next
// time.
const STATUSES = new Map<number, readonly [name: string, result: SubmitResult]>([
  [0x01, ['ESME_RINVMSGLEN', 'REJECTED']],
  [0x02, ['ESME_RINVCMDLEN', 'REJECTED']],
  [0x03, ['ESME_RINVCMDID', 'REJECTED']],
  [0x04, ['ESME_RINVBNDSTS', 'AGAIN']],
  [0x05, ['ESME_RALYBND', 'REJECTED']],
  [0x06, ['ESME_RINVPRTFLG', 'REJECTED']],
  [0x07, ['ESME_RINVREGDLVFLG', 'REJECTED']],
  [0x08, ['ESME_RSYSERR', 'AGAIN']],
  [0x0a, ['ESME_RINVSRCADR', 'INVALID_SENDER']],
  [0x0b, ['ESME_RINVDSTADR', 'INVALID_RECIPIENT']],
  [0x0c, ['ESME_RINVMSGID', 'REJECTED']],
  [0x0d, ['ESME_RBINDFAIL', 'REJECTED']],
  [0x0e, ['ESME_RINVPASWD', 'REJECTED']],
  [0x0f, ['ESME_RINVSYSID', 'REJECTED']],
  [0x11, ['ESME_RCANCELFAIL', 'REJECTED']],
  [0x13, ['ESME_RREPLACEFAIL', 'REJECTED']],
  [0x14, ['ESME_RMSGQFUL', 'AGAIN']],
  [0x15, ['ESME_RINVSERTYP', 'REJECTED']],
  [0x43, ['ESME_RINVESMCLASS', 'REJECTED']],
  [0x45, ['ESME_RSUBMITFAIL', 'REJECTED']],
  [0x48, ['ESME_RINVSRCTON', 'INVALID_SENDER']],
  [0x49, ['ESME_RINVSRCNPI', 'INVALID_SENDER']],
  [0x50, ['ESME_RINVDSTTON', 'INVALID_RECIPIENT']],
  [0x51, ['ESME_RINVDSTNPI', 'INVALID_RECIPIENT']],
  [0x53, ['ESME_RINVSYSTYP', 'REJECTED']],
  [0x54, ['ESME_RINVREPFLAG', 'REJECTED']],
  [0x58, ['ESME_RTHROTTLED', 'AGAIN']],
  [0x61, ['ESME_RINVSCHED', 'REJECTED']],
  [0x62, ['ESME_RINVEXPIRY', 'REJECTED']],
  [0x63, ['ESME_RINVDFTMSGID', 'REJECTED']],
  [0x64, ['ESME_RX_T_APPN', 'AGAIN']],
  [0x65, ['ESME_RX_P_APPN', 'REJECTED']],
  [0x66, ['ESME_RX_R_APPN', 'REJECTED']],
  [0xc0, ['ESME_RINVOPTPARSTREAM', 'REJECTED']],
  [0xc1, ['ESME_ROPTPARNOTALLWD', 'REJECTED']],
  [0xc2, ['ESME_RINVPARLEN', 'REJECTED']],
  [0xc3, ['ESME_RMISSINGOPTPARAM', 'REJECTED']],
  [0xc4, ['ESME_RINVOPTPARAMVAL', 'REJECTED']],
  [0xfe, ['ESME_RDELIVERYFAILURE', 'UNDELIVERABLE']],
  [0xff, ['ESME_RUNKNOWNERR', 'REJECTED']],
])

/** A network's own code (0x400 and up) is permanent: retrying it for hours would hold up all other messages by the back-off. */
export function resultOf(status: number): SubmitResult {
  return STATUSES.get(status)?.[1] ?? 'REJECTED'
}

/** For people: the name from the specification and the number. A network's own codes have a number only. */
export function describeStatus(status: number): string {
  const number = `0x${status.toString(16).padStart(8, '0')}`
  const name = STATUSES.get(status)?.[0]
  return name === undefined ? `SMPP status ${number}` : `${name} (${number})`
}
