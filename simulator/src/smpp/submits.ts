import { randomInt } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../phones/ledger.ts'
import type { Message, Messages } from '../phones/messages.ts'
import type { SmsEnd, Steps } from '../phones/steps.ts'
import type { Store } from '../state/store.ts'
import type { Outbox } from './outbox.ts'
import { type ReceiptNotes, receiptPdu, wantsIntermediate, wantsReceipt } from './receipts.ts'
import type { Connection, OnSubmit } from './server.ts'
import { STATUS } from './status.ts'
import type { Submission } from './submission.ts'

// Long enough for a receipt to overtake the response.
const OVERTAKEN_MS = 100

/** Schedules the receipt of an SMS, if its sender requested one. */
export function createReceipts(ledger: Ledger, faults: Faults, outbox: Outbox) {
  return (message: Message, end: SmsEnd): void => {
    if (!wantsReceipt(message.smpp?.registered ?? 0, end)) return
    const about = { phone: message.phone, messageId: message.messageId, dueAt: Date.now() + (faults.strikes('smpp.receiptLate')?.ms ?? 0) }
    if (faults.strikes('smpp.receiptLost')) {
      ledger.write({ kind: 'receipt-lost', channel: 'sms', ...about, origin: message.origin })
      return
    }
    const pdu = receiptPdu(message, end, faults)
    outbox.owe(about, pdu)
    if (faults.strikes('smpp.receiptDuplicated')) outbox.owe(about, pdu)
  }
}

type Counter = {
  store: Store
  ledger: Ledger
  messages: Messages
  faults: Faults
  steps: Steps
  outbox: Outbox
  firstNumber: number
}

export function createSubmits(parts: Omit<Counter, 'firstNumber'>): OnSubmit {
  const { store } = parts
  // Ids start at another number in each simulator, and continue with the unique numbers of the ledger.
  const base = Number(store.state.settings.get('smpp-ids') ?? randomInt(1_000_000_000, 2_000_000_000))
  store.append({ is: 'setting', name: 'smpp-ids', value: String(base) })
  const counter: Counter = { ...parts, firstNumber: base }

  return (pdu, submission, connection, respond) => {
    const outcome = outcomeOf(counter, submission)
    if (typeof outcome === 'number') {
      const phone = `+${pdu.destination_addr ?? ''}`
      parts.ledger.write({
        kind: 'sms-refused',
        channel: 'sms',
        phone,
        messageId: '',
        origin: pdu.source_addr ?? '',
        detail: { status: outcome },
      })
      void store.committed().then(() => respond(outcome))
      return
    }
    const { messageId, overtaken } = accept(counter, outcome)
    const withheld = withholdResponse(parts.faults, connection)
    void store.committed().then(() => {
      if (withheld?.closes) connection.drop()
      else if (withheld === undefined && overtaken) setTimeout(respond, OVERTAKEN_MS, STATUS.OK, messageId)
      else if (withheld === undefined) respond(STATUS.OK, messageId)
    })
  }
}

/** The submission, or the command_status that refuses it. */
function outcomeOf({ faults }: Counter, submission: Submission | number): Submission | number {
  if (faults.strikes('smpp.throttled')) return STATUS.THROTTLED
  if (faults.strikes('smpp.queueFull')) return STATUS.MSGQFUL
  return faults.strikes('smpp.refused')?.status ?? submission
}

/** Records the SMS and schedules its steps. `overtaken`: its receipt comes before its response. */
function accept(counter: Counter, submission: Submission): { messageId: string; overtaken: boolean } {
  const { store, messages, faults, steps } = counter
  const number = counter.firstNumber + store.state.lastSeq
  const messageId = faults.strikes('smpp.hexInAnswer') ? number.toString(16).toUpperCase() : String(number)
  const { phone, sender, text, segment, expiresAt, scheduledAt, registered, addresses } = submission
  const smpp: ReceiptNotes = { number, registered, beginning: text.slice(0, 20), addresses }
  const entry = { kind: 'sms-part', channel: 'sms', phone, messageId, origin: sender, detail: segment } as const
  const message = messages.add(entry, { body: text, expiresAt, segment, smpp })
  sendIntermediateReceipt(counter, message, registered)
  const overtaken = faults.strikes('smpp.receiptBeforeAnswer') !== undefined
  if (overtaken) steps.deliver(message)
  else steps.begin(message, scheduledAt)
  return { messageId, overtaken }
}

function sendIntermediateReceipt({ faults, outbox }: Counter, message: Message, registered: number): void {
  if (!wantsIntermediate(registered)) return
  const about = { phone: message.phone, messageId: message.messageId, dueAt: Date.now() }
  outbox.owe(about, receiptPdu(message, 'ENROUTE', faults))
}

/** Returns a value if the response is withheld. `closes`: the connection is closed too; only then does it use the fault's `count`. */
function withholdResponse(faults: Faults, connection: Connection): { closes: boolean } | undefined {
  const fault = connection.withoutResponse > 0 ? faults.armed('smpp.dropUnanswered') : faults.drawn('smpp.dropUnanswered')
  if (fault === undefined) {
    connection.withoutResponse = 0
    return undefined
  }
  connection.withoutResponse++
  const closes = connection.withoutResponse >= fault.submits
  if (closes) faults.useUp('smpp.dropUnanswered')
  return { closes }
}
