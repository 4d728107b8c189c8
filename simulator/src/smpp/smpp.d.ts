// The part of the package `smpp` that is used here. It brings no types of its own.
declare module 'smpp' {
  import type { EventEmitter } from 'node:events'
  import type { Server as NetServer, Socket } from 'node:net'

  export type Message = { message: string | Buffer; udh?: Buffer[]; octets?: number; headerIsBroken?: boolean }

  /** A received PDU. A field that the sender omitted at the end is undefined. */
  export type Pdu = {
    command: string
    command_status: number
    sequence_number: number
    isResponse: () => boolean
    response: (fields?: Record<string, unknown>) => Pdu
    system_id?: string
    password?: string
    source_addr_ton?: number
    source_addr_npi?: number
    source_addr?: string
    dest_addr_ton?: number
    dest_addr_npi?: number
    destination_addr?: string
    esm_class?: number
    schedule_delivery_time?: string
    validity_period?: string
    registered_delivery?: number
    data_coding?: number
    short_message?: Message
    message_payload?: Message
    sar_msg_ref_num?: number
    sar_total_segments?: number
    sar_segment_seqnum?: number
    message_id?: string
    receipted_message_id?: string
    message_state?: number
  }

  type Send = (fields: Record<string, unknown>, onResponse?: (response: Pdu) => void) => boolean

  export type Session = EventEmitter & {
    socket: Socket
    send: (pdu: Pdu) => boolean
    /** Reads no more, until `resume`. */
    pause: () => void
    resume: () => void
    deliver_sm: Send
    enquire_link: Send
    submit_sm: Send
    bind_transceiver: Send
    bind_transmitter: Send
    bind_receiver: Send
    unbind: Send
    close: () => void
    destroy: () => void
  }

  type Filter = {
    encode: (this: unknown, value: unknown) => unknown
    decode: (this: unknown, value: unknown, skipUdh?: unknown) => unknown
  }
  type FieldType = { read: (buffer: Buffer, offset: number) => Buffer }

  const smpp: {
    createServer: (listener: (session: Session) => void) => NetServer
    connect: (options: { host: string; port: number }, listener?: () => void) => Session
    PDU: { commandLength: (stream: Socket) => number | false }
    commands: {
      submit_sm: {
        params: {
          short_message: { type: FieldType; filter: Filter }
          schedule_delivery_time: { filter: Filter }
          validity_period: { filter: Filter }
        }
      }
    }
    tlvs: { message_payload: { filter: Filter } }
  }
  // biome-ignore lint/style/noDefaultExport: the package is an object, and most of its names are put into it by a loop.
  export default smpp
}
