// The SMPP 3.4 PDUs that a transceiver needs. Encoding and decoding use the same tables.

type FieldTypes = {
  int8: number
  /** Ends with a NUL on the wire. */
  cstring: string
  /** Preceded by its length in one octet. */
  octets: Buffer
}
type FieldKind = keyof FieldTypes
type Fields = readonly (readonly [name: string, kind: FieldKind])[]

const BIND = [
  ['systemId', 'cstring'],
  ['password', 'cstring'],
  ['systemType', 'cstring'],
  ['interfaceVersion', 'int8'],
  ['addressTon', 'int8'],
  ['addressNpi', 'int8'],
  ['addressRange', 'cstring'],
] as const satisfies Fields
const BIND_RESPONSE = [['systemId', 'cstring']] as const satisfies Fields
const SHORT_MESSAGE = [
  ['serviceType', 'cstring'],
  ['sourceTon', 'int8'],
  ['sourceNpi', 'int8'],
  ['source', 'cstring'],
  ['destinationTon', 'int8'],
  ['destinationNpi', 'int8'],
  ['destination', 'cstring'],
  ['esmClass', 'int8'],
  ['protocolId', 'int8'],
  ['priority', 'int8'],
  ['scheduleTime', 'cstring'],
  ['validityPeriod', 'cstring'],
  ['registeredDelivery', 'int8'],
  ['replaceIfPresent', 'int8'],
  ['dataCoding', 'int8'],
  ['defaultMessageId', 'int8'],
  ['shortMessage', 'octets'],
] as const satisfies Fields
const MESSAGE_RESPONSE = [['messageId', 'cstring']] as const satisfies Fields
const NO_FIELDS = [] as const satisfies Fields

const COMMANDS = {
  bind_transceiver: { id: 0x00000009, fields: BIND },
  bind_transceiver_resp: { id: 0x80000009, fields: BIND_RESPONSE },
  submit_sm: { id: 0x00000004, fields: SHORT_MESSAGE },
  submit_sm_resp: { id: 0x80000004, fields: MESSAGE_RESPONSE },
  deliver_sm: { id: 0x00000005, fields: SHORT_MESSAGE },
  deliver_sm_resp: { id: 0x80000005, fields: MESSAGE_RESPONSE },
  enquire_link: { id: 0x00000015, fields: NO_FIELDS },
  enquire_link_resp: { id: 0x80000015, fields: NO_FIELDS },
  unbind: { id: 0x00000006, fields: NO_FIELDS },
  unbind_resp: { id: 0x80000006, fields: NO_FIELDS },
  generic_nack: { id: 0x80000000, fields: NO_FIELDS },
} as const satisfies Record<string, { id: number; fields: Fields }>
type Command = keyof typeof COMMANDS
const COMMANDS_BY_ID = new Map(Object.entries(COMMANDS).map(([command, { id }]) => [id as number, command as Command]))

type FieldsOf<List extends Fields> = { [Field in List[number] as Field[0]]: FieldTypes[Field[1]] }
export type Tlvs = ReadonlyMap<number, Buffer>
export type PduOf<C extends Command> = { command: C; status: number; sequence: number; tlvs: Tlvs } & FieldsOf<
  (typeof COMMANDS)[C]['fields']
>
export type Pdu = { [C in Command]: PduOf<C> }[Command]
export type ShortMessage = FieldsOf<typeof SHORT_MESSAGE>

export const NO_TLVS: Tlvs = new Map()
export const TLV = { receiptedMessageId: 0x001e, networkErrorCode: 0x0423, messagePayload: 0x0424, messageState: 0x0427 } as const

export const HEADER_OCTETS = 16
const RESPONSE_BIT = 0x80000000

/** A response has the number of its command, with this bit set. */
export function isResponse(commandId: number): boolean {
  return commandId >= RESPONSE_BIT
}

export function encodePdu(pdu: Pdu): Buffer {
  const { id } = COMMANDS[pdu.command]
  // A response with an error status has no body.
  const fields: Fields = pdu.status === 0 ? COMMANDS[pdu.command].fields : NO_FIELDS
  const values = pdu as unknown as Record<string, FieldTypes[FieldKind]>
  let length = HEADER_OCTETS
  for (const [name, kind] of fields) length += kind === 'int8' ? 1 : (values[name] as string | Buffer).length + 1
  for (const value of pdu.tlvs.values()) length += 4 + value.length
  const octets = Buffer.allocUnsafe(length)
  octets.writeUInt32BE(length, 0)
  octets.writeUInt32BE(id, 4)
  octets.writeUInt32BE(pdu.status, 8)
  octets.writeUInt32BE(pdu.sequence, 12)
  let offset = HEADER_OCTETS
  for (const [name, kind] of fields) offset = writeField(octets, offset, kind, values[name] as FieldTypes[FieldKind])
  for (const [tag, value] of pdu.tlvs) {
    octets.writeUInt16BE(tag, offset)
    octets.writeUInt16BE(value.length, offset + 2)
    offset += 4 + value.copy(octets, offset + 4)
  }
  return octets
}

// Latin-1 encoding drops the upper octet of a code unit: U+0100 would become the NUL that ends the field, and the rest of the text would
// become other fields.
const UNWRITABLE = /[^\u0020-\u00ff]/g

function writeField(octets: Buffer, offset: number, kind: FieldKind, value: FieldTypes[FieldKind]): number {
  if (kind === 'int8') return octets.writeUInt8(value as number, offset)
  if (kind === 'cstring') {
    return octets.writeUInt8(0, offset + octets.write((value as string).replace(UNWRITABLE, '?'), offset, 'latin1'))
  }
  const message = value as Buffer
  octets.writeUInt8(message.length, offset)
  return offset + 1 + message.copy(octets, offset + 1)
}

export type Decoded =
  | { is: 'pdu'; pdu: Pdu }
  /** A request with a readable header and an unreadable body. A response is read as far as possible instead. */
  | { is: 'broken'; reason: string; commandId: number; sequence: number }
  | { is: 'unfamiliar'; commandId: number; sequence: number }

/** Decodes one complete PDU. The result keeps no reference to `octets`, and no input makes it throw. */
export function decodePdu(octets: Buffer): Decoded {
  if (octets.length < HEADER_OCTETS || octets.readUInt32BE(0) !== octets.length) {
    return { is: 'broken', reason: 'its length is not what it says', commandId: 0, sequence: 0 }
  }
  const commandId = octets.readUInt32BE(4)
  const status = octets.readUInt32BE(8)
  const sequence = octets.readUInt32BE(12)
  const command = COMMANDS_BY_ID.get(commandId)
  if (command === undefined) return { is: 'unfamiliar', commandId, sequence }
  const pdu: Record<string, unknown> = { command, status, sequence, tlvs: NO_TLVS }
  const { fields } = COMMANDS[command]
  // Responses with an error status have no body, and some networks omit the body of other responses too.
  const bodiless = isResponse(commandId) && octets.length === HEADER_OCTETS
  const reason = bodiless ? leaveEmpty(fields, pdu) : readBody(octets, fields, pdu)
  return reason === undefined ? { is: 'pdu', pdu: pdu as Pdu } : { is: 'broken', reason, commandId, sequence }
}

/** Sets the fields of a response without a body. Responses have only text fields. */
function leaveEmpty(fields: Fields, into: Record<string, unknown>): undefined {
  for (const [name] of fields) into[name] = ''
}

/** Reads the fields into an object. Returns the problem, if there is one. */
function readBody(octets: Buffer, fields: Fields, into: Record<string, unknown>): string | undefined {
  let offset = HEADER_OCTETS
  for (const [name, kind] of fields) {
    const end = endOfField(octets, offset, kind)
    // Some networks omit the NUL after a response's only text. That text is the message id, which receipts are matched by, so accept it.
    const isCutShort = kind === 'cstring' && end > octets.length && (fields === MESSAGE_RESPONSE || fields === BIND_RESPONSE)
    if (end > octets.length && !isCutShort) return `${name} goes past its end`
    if (isCutShort) into[name] = octets.toString('latin1', offset)
    else if (kind === 'int8') into[name] = octets[offset]
    else if (kind === 'cstring') into[name] = octets.toString('latin1', offset, end - 1)
    else into[name] = Buffer.from(octets.subarray(offset + 1, end))
    offset = Math.min(end, octets.length)
  }
  if (offset < octets.length) into.tlvs = readTlvs(octets, offset)
  return undefined
}

/** The offset after a field. It is greater than the length of the octets if the field is incomplete. */
function endOfField(octets: Buffer, offset: number, kind: FieldKind): number {
  if (kind === 'int8') return offset + 1
  if (kind === 'octets') return offset + 1 + (octets[offset] ?? 0)
  const nul = octets.indexOf(0, offset)
  return nul === -1 || offset >= octets.length ? Number.POSITIVE_INFINITY : nul + 1
}

/**
 * Stops at the first incomplete field or stray octet: the fields before it are kept, since a receipt or response matters more than a
 * malformed end.
 */
function readTlvs(octets: Buffer, from: number): Tlvs {
  const tlvs = new Map<number, Buffer>()
  for (let offset = from; offset + 4 <= octets.length; ) {
    const tag = octets.readUInt16BE(offset)
    const start = offset + 4
    offset = start + octets.readUInt16BE(offset + 2)
    if (offset > octets.length) break
    tlvs.set(tag, Buffer.from(octets.subarray(start, offset)))
  }
  return tlvs
}
