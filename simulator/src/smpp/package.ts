import smpp, { type Message } from 'smpp'

// The package `smpp` reads and writes what goes over the line, so that Herald's own connector meets an implementation that isn't ours.
// What a strict SMSC needs and it leaves out is added here, once for the process. What throws here ends the session.

const SHORTEST_PDU = 16
const UDH_PRESENT = 0x40
const commandLength = smpp.PDU.commandLength

/** It would wait for ever for the rest of a PDU that says it is shorter than its own head. */
smpp.PDU.commandLength = (stream) => {
  const length = commandLength(stream)
  if (length === false || length >= SHORTEST_PDU) return length
  throw new Error(`A PDU can't be ${length} octets long.`)
}

const { short_message: shortMessage, ...times } = smpp.commands.submit_sm.params

/** It takes a message that says it is longer than its PDU for a shorter one. */
const { read } = shortMessage.type
shortMessage.type = {
  ...shortMessage.type,
  read: (buffer, offset) => {
    if (offset + 1 + buffer.readUInt8(offset) > buffer.length) throw new Error('The short_message is longer than its PDU.')
    return read(buffer, offset)
  },
}

/** It throws where a relative time is too short, and takes others for days that aren't there; times.ts reads them. */
for (const time of [times.schedule_delivery_time, times.validity_period]) {
  time.filter = { encode: time.filter.encode, decode: (value) => value }
}

/** It decodes a message and forgets how many octets it had, which is what the limits are about; and it makes do with half a header. */
function rememberOctets(field: (typeof smpp.tlvs)['message_payload']): void {
  const { encode, decode } = field.filter
  field.filter = {
    encode,
    decode(value, skipUdh) {
      const bytes = Buffer.isBuffer(value) ? value : undefined
      const hasHeader = ((this as { esm_class?: number }).esm_class ?? 0) & UDH_PRESENT && !skipUdh
      if (bytes && bytes.length > 0 && hasHeader && !isHeaderWhole(bytes)) {
        return { message: '', octets: bytes.length, headerIsBroken: true } satisfies Message
      }
      const decoded = decode.call(this, value, skipUdh)
      if (bytes && typeof decoded === 'object' && decoded !== null) (decoded as Message).octets = bytes.length
      return decoded
    },
  }
}
rememberOctets(shortMessage)
rememberOctets(smpp.tlvs.message_payload)

/** Its length lies within the message, and its elements fill it to the last octet. */
function isHeaderWhole(bytes: Buffer): boolean {
  const end = bytes.readUInt8(0) + 1
  let offset = 1
  while (offset + 1 < end && end <= bytes.length) offset += 2 + bytes.readUInt8(offset + 1)
  return offset === end && end <= bytes.length
}

export { smpp }
