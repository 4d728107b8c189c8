import smpp, { type Message } from 'smpp'

// The package `smpp` reads and writes what goes over the line, so that Herald's own connector meets an implementation that isn't ours.
// Three things that a strict SMSC needs it leaves out; they are added here, once for the process. What throws here ends the session.

const SHORTEST_PDU = 16
const commandLength = smpp.PDU.commandLength

/** It would wait for ever for the rest of a PDU that says it is shorter than its own head. */
smpp.PDU.commandLength = (stream) => {
  const length = commandLength(stream)
  if (length === false || length >= SHORTEST_PDU) return length
  throw new Error(`A PDU can't be ${length} octets long.`)
}

/** It takes a message that says it is longer than its PDU for a shorter one. */
const shortMessage = smpp.commands.submit_sm.params.short_message
const { read } = shortMessage.type
shortMessage.type = {
  ...shortMessage.type,
  read: (buffer, offset) => {
    if (offset + 1 + buffer.readUInt8(offset) > buffer.length) throw new Error('The short_message is longer than its PDU.')
    return read(buffer, offset)
  },
}

/** It decodes a message and forgets how many octets it had, which is what the limits are about. */
function rememberOctets(field: (typeof smpp.tlvs)['message_payload']): void {
  const { encode, decode } = field.filter
  field.filter = {
    encode,
    decode(value, skipUdh) {
      const decoded = decode.call(this, value, skipUdh)
      if (Buffer.isBuffer(value) && typeof decoded === 'object' && decoded !== null) (decoded as Message).octets = value.length
      return decoded
    },
  }
}
rememberOctets(smpp.commands.submit_sm.params.short_message)
rememberOctets(smpp.tlvs.message_payload)

export { smpp }
