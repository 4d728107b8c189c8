import { CARRIER_ERRORS } from '../errors.ts'

/** The values of command_status that this connector sends or acts on. carriers/errors.ts has what each means for a message. */
export const STATUS = {
  OK: 0x00,
  INVALID_LENGTH: 0x02,
  INVALID_COMMAND: 0x03,
  NOT_BOUND: 0x04,
  THROTTLED: 0x58,
  /** Our response to a deliver_sm that was not stored: the network sends it again. */
  TEMPORARY: 0x64,
} as const

/** For people: the name from the specification and the number. A network's own codes have a number only. */
export function describeStatus(status: number): string {
  const number = `0x${status.toString(16).padStart(8, '0')}`
  const name = CARRIER_ERRORS.smpp.known.get(status)?.name
  return name === undefined ? `SMPP status ${number}` : `${name} (${number})`
}
