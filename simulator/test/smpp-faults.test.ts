import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { connectEsme, textOf } from './support/esme.ts'
import { startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'

const simulator = await startTestSimulator()
const esme = await connectEsme(simulator.carriers)
await esme.bind()
const faults = (smpp: object) => simulator.faults({ smpp })
const idOf = async (destination = '48500500110') => (await esme.submit({ destination_addr: destination })).message_id ?? ''
const counts = async () => (await simulator.call('GET', '/simulator/counts')).body

beforeEach(() => simulator.faults({}))

test('a bind is refused as often as it was asked for', async () => {
  await faults({ bindRefused: { count: 1 } })
  const other = await connectEsme(simulator.carriers)
  assert.equal((await other.bind('transmitter')).command_status, 0x0d)
  assert.equal((await other.bind('transmitter')).command_status, 0)
  other.session.destroy()
})

test('a submit is throttled, finds the queue full, or gets any status, and is not taken', async () => {
  const before = await counts()
  await faults({ throttled: { count: 1 } })
  assert.equal((await esme.submit({})).command_status, 0x58)
  await faults({ queueFull: { count: 1 } })
  assert.equal((await esme.submit({})).command_status, 0x14)
  await faults({ refused: { count: 1, status: 0x64 } })
  assert.equal((await esme.submit({})).command_status, 0x64)
  assert.equal((await counts())['sms-part'], before['sms-part'])
  assert.equal((await esme.submit({})).command_status, 0)
})

test('the connection drops after so many submits were taken and none answered; their receipts come all the same', async () => {
  const other = await connectEsme(simulator.carriers)
  await other.bind('transmitter')
  await faults({ dropUnanswered: { count: 1, submits: 3 } })
  let answered = 0
  for (let submit = 0; submit < 3; submit++) {
    void other.submit({ destination_addr: '48500500111' }).then(() => {
      answered++
    })
  }
  await until('the connection drops', () => other.state.closed)
  assert.equal(answered, 0)
  assert.equal((await simulator.phone('+48500500111')).length, 3)
  await until('the receipts come', () => esme.received.filter((pdu) => pdu.source_addr === '48500500111').length === 3)
})

test('submits go unanswered for each session by itself, and no longer than the fault is there', async () => {
  const first = await connectEsme(simulator.carriers)
  const second = await connectEsme(simulator.carriers)
  await first.bind('transmitter')
  await second.bind('transmitter')
  await faults({ dropUnanswered: { count: 1, submits: 2 } })
  const taken = async () => (await simulator.phone('+48500500119')).length
  const submit = (from: typeof first) => from.submit({ destination_addr: '48500500119', registered_delivery: 0 })
  void submit(first)
  await until('one is taken', async () => (await taken()) === 1)
  void submit(second)
  await until('two are taken', async () => (await taken()) === 2)
  assert.deepEqual([first.state.closed, second.state.closed], [false, false])
  const { body } = await simulator.call('GET', '/simulator/faults')
  assert.equal(body.smpp.dropUnanswered.count, 1)
  void submit(first)
  await until('the first is cut', () => first.state.closed)
  assert.equal((await submit(second)).command_status, 0)

  await faults({ dropUnanswered: { count: 1, submits: 2 } })
  void submit(second)
  await until('another is taken', async () => (await taken()) === 5)
  await simulator.call('DELETE', '/simulator/faults')
  assert.equal((await submit(second)).command_status, 0)
  second.session.destroy()
})

test('a receipt comes twice, or never', async () => {
  await faults({ receiptDuplicated: { count: 1 } })
  const twice = await idOf()
  await until('it has come twice', () => esme.received.filter((pdu) => pdu.receipted_message_id === twice).length === 2)
  await faults({ receiptLost: { count: 1 } })
  const lost = await idOf()
  await until('it is lost', async () => (await counts())['receipt-lost'] === 1)
  assert.equal((await counts()).owed.deliverSm, 0)
  assert.equal(
    esme.received.some((pdu) => pdu.receipted_message_id === lost),
    false,
  )
})

test('a receipt comes before the answer to its submit', async () => {
  await faults({ receiptBeforeAnswer: { count: 1 } })
  const receiptsThen = await esme
    .submit({ destination_addr: '48500500112' })
    .then((pdu) => ({ id: pdu.message_id, received: [...esme.received] }))
  assert.ok(receiptsThen.received.some((pdu) => pdu.receipted_message_id === receiptsThen.id))
})

test('an id is hexadecimal in the receipt and decimal in the answer, and the other way round', async () => {
  await faults({ hexInReceipt: { count: 1 } })
  const decimal = await idOf()
  await until('it is told of in hexadecimal', () =>
    esme.received.find((pdu) => pdu.receipted_message_id === Number(decimal).toString(16).toUpperCase()),
  )
  await faults({ hexInAnswer: { count: 1 } })
  const hexadecimal = await idOf()
  assert.match(hexadecimal, /[0-9A-F]{8}/)
  await until('it is told of in decimal', () =>
    esme.received.find((pdu) => pdu.receipted_message_id === String(Number.parseInt(hexadecimal, 16))),
  )
})

test('a receipt comes without TLVs, and in other spellings', async () => {
  await faults({ receiptWithoutTlvs: { count: 1 } })
  const bare = await esme.receipt(await idOf())
  assert.deepEqual([bare.receipted_message_id, bare.message_state], [undefined, undefined])
  const spellings: [string, RegExp][] = [
    ['capital-text', / err:000 Text:Hello$/],
    ['seconds', /submit date:\d{12} done date:\d{12} /],
    ['brief', /^id:\d+ stat:DELIVRD$/],
    ['lower-case', / stat:delivrd /],
    ['padded', /^id:\d+ {2,}sub:001 dlvrd:001 {2}submit date/],
  ]
  for (const [spelling, pattern] of spellings) {
    await faults({ receiptSpelling: { count: 1, spelling } })
    assert.match(textOf(await esme.receipt(await idOf())), pattern)
  }
})
