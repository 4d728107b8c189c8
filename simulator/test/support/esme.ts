import { after } from 'node:test'
import smpp, { type Pdu, type Session } from 'smpp'
import type { Carriers } from './simulator.ts'
import { until } from './until.ts'

export type Esme = Awaited<ReturnType<typeof connectEsme>>

/**
 * A client of the package `smpp`. `statuses`: the command_status of its responses to deliver_sm, one after the other, then 0; with `none`, it
 * does not respond.
 */
export async function connectEsme(carriers: Carriers, statuses: number[] | 'none' = []) {
  const { host, port, systemId, password } = carriers['simulator-sms']
  const session: Session = smpp.connect({ host, port })
  const received: Pdu[] = []
  const state = { closed: false }
  session.on('error', () => {})
  session.on('close', () => {
    state.closed = true
  })
  session.on('deliver_sm', (pdu: Pdu) => {
    received.push(pdu)
    if (statuses !== 'none') session.send(pdu.response({ command_status: statuses.shift() ?? 0 }))
  })
  session.on('enquire_link', (pdu: Pdu) => session.send(pdu.response()))
  after(() => session.destroy())
  await new Promise<void>((resolve) => session.on('connect', resolve))
  session.socket.setNoDelay(true)

  type Command = 'bind_transceiver' | 'bind_transmitter' | 'bind_receiver' | 'submit_sm' | 'unbind' | 'enquire_link'
  const ask = (command: Command, fields: Record<string, unknown> = {}) =>
    new Promise<Pdu>((resolve) => {
      session[command](fields, resolve)
    })
  const submit = (fields: Record<string, unknown>) =>
    ask('submit_sm', {
      source_addr_ton: 5,
      source_addr_npi: 0,
      source_addr: 'Herald',
      dest_addr_ton: 1,
      dest_addr_npi: 1,
      destination_addr: '48500100110',
      registered_delivery: 1,
      data_coding: 0,
      short_message: 'Hello',
      ...fields,
    })
  return {
    session,
    received,
    state,
    ask,
    bind: (kind: 'transceiver' | 'transmitter' | 'receiver' = 'transceiver', credentials: Record<string, unknown> = {}) =>
      ask(`bind_${kind}`, { system_id: systemId, password, ...credentials }),
    submit,
    /** Submits, and returns the message id. */
    submitted: async (fields: Record<string, unknown>) => (await submit(fields)).message_id ?? '',
    receiptsOf: (messageId: string) => received.filter((pdu) => pdu.receipted_message_id === messageId),
    /** Ends the connection, and waits until the simulator has noticed. */
    end: async () => {
      session.destroy()
      await until('the connection is closed', () => state.closed)
    },
    receipt: (messageId: string) =>
      until('the receipt comes', () =>
        received.find((pdu) => pdu.receipted_message_id === messageId || textOf(pdu).includes(`id:${messageId} `)),
      ),
  }
}

export const textOf = (pdu: Pdu): string => String(pdu.short_message?.message ?? '')
