import smpp, { type Message } from 'smpp'

// The package `smpp` encodes and decodes PDUs, so that Herald's own connector is tested against another implementation. This file adds the checks
// of a strict SMSC that the package lacks, once for the process. An exception here ends the session.

const SHORTEST_PDU = 16
const UDH_PRESENT = 0x40
const commandLength = smpp.PDU.commandLength

/** The package would wait forever for the rest of a PDU whose length is below that of its header. */
smpp.PDU.commandLength = (stream) => {
  const length = commandLength(stream)
  if (length === false || length >= SHORTEST_PDU) return length
  throw new Error(`A PDU can't be ${length} octets long.`)
}

const { short_message: shortMessage, ...times } = smpp.commands.submit_sm.params

/** The package accepts a message that is longer than its PDU, and cuts it. */
const { read } = shortMessage.type
shortMessage.type = {
  ...shortMessage.type,
  read: (buffer, offset) => {
    if (offset + 1 + buffer.readUInt8(offset) > buffer.length) throw new Error('The short_message is longer than its PDU.')
    return read(buffer, offset)
  },
}

/** The package throws for a short relative time, and accepts days that do not exist; times.ts reads times instead. */
for (const time of [times.schedule_delivery_time, times.validity_period]) {
  time.filter = { encode: time.filter.encode, decode: (value) => value }
}

/** The package does not keep the number of octets of a message, to which the limits apply, and accepts half a header. This fixes both. */
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

/** Whether the header is within the message, and its elements fill it exactly. */
function isHeaderWhole(bytes: Buffer): boolean {
  const end = bytes.readUInt8(0) + 1
  let offset = 1
  while (offset + 1 < end && end <= bytes.length) offset += 2 + bytes.readUInt8(offset + 1)
  return offset === end && end <= bytes.length
}

export { smpp }
