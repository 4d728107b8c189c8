import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { connectEsme, textOf } from './support/esme.ts'
import { startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'

const simulator = await startTestSimulator()
const esme = await connectEsme(simulator.carriers)
await esme.bind()
const faults = (smpp: object) => simulator.faults({ smpp })
const { counts } = simulator
const submitted = () => esme.submitted({ destination_addr: '48500500110' })

beforeEach(() => simulator.faults({}))

test('bindRefused refuses the given number of binds', async () => {
  await faults({ bindRefused: { count: 1 } })
  const other = await connectEsme(simulator.carriers)
  assert.equal((await other.bind('transmitter')).command_status, 0x0d)
  assert.equal((await other.bind('transmitter')).command_status, 0)
  other.session.destroy()
})

test('throttled, queueFull and refused refuse a submit with their status', async () => {
  const before = await counts()
  for (const [fault, status] of [
    [{ throttled: { count: 1 } }, 0x58],
    [{ queueFull: { count: 1 } }, 0x14],
    [{ refused: { count: 1, status: 0x64 } }, 0x64],
  ] as const) {
    await faults(fault)
    assert.equal((await esme.submit({})).command_status, status)
  }
  assert.equal((await counts())['sms-part'], before['sms-part'])
  assert.equal((await esme.submit({})).command_status, 0)
})

test('dropUnanswered drops the connection after the given number of submits without a response, and sends their receipts', async () => {
  const other = await connectEsme(simulator.carriers)
  await other.bind('transmitter')
  await faults({ dropUnanswered: { count: 1, submits: 3 } })
  let responses = 0
  for (let submit = 0; submit < 3; submit++) {
    void other.submit({ destination_addr: '48500500111' }).then(() => {
      responses++
    })
  }
  await until('the connection drops', () => other.state.closed)
  assert.equal(responses, 0)
  assert.equal((await simulator.phone('+48500500111')).length, 3)
  await until('the receipts come', () => esme.received.filter((pdu) => pdu.source_addr === '48500500111').length === 3)
})

test('dropUnanswered counts for each session, and ends with the fault', async () => {
  const first = await connectEsme(simulator.carriers)
  const second = await connectEsme(simulator.carriers)
  await first.bind('transmitter')
  await second.bind('transmitter')
  await faults({ dropUnanswered: { count: 1, submits: 2 } })
  const submitted = async () => (await simulator.phone('+48500500119')).length
  const submit = (from: typeof first) => from.submit({ destination_addr: '48500500119', registered_delivery: 0 })
  void submit(first)
  await until('one is submitted', async () => (await submitted()) === 1)
  void submit(second)
  await until('two are submitted', async () => (await submitted()) === 2)
  assert.deepEqual([first.state.closed, second.state.closed], [false, false])
  const { body } = await simulator.call('GET', '/simulator/faults')
  assert.equal(body.smpp.dropUnanswered.count, 1)
  void submit(first)
  await until('the first is cut', () => first.state.closed)
  assert.equal((await submit(second)).command_status, 0)

  await faults({ dropUnanswered: { count: 1, submits: 2 } })
  void submit(second)
  await until('another is submitted', async () => (await submitted()) === 5)
  await simulator.call('DELETE', '/simulator/faults')
  assert.equal((await submit(second)).command_status, 0)
  second.session.destroy()
})

test('receiptDuplicated and receiptLost send a receipt twice, and never', async () => {
  await faults({ receiptDuplicated: { count: 1 } })
  const twice = await submitted()
  await until('it has come twice', () => esme.receiptsOf(twice).length === 2)
  await faults({ receiptLost: { count: 1 } })
  const lost = await submitted()
  await until('it is lost', async () => (await counts())['receipt-lost'] === 1)
  assert.equal((await counts()).owed.deliverSm, 0)
  assert.deepEqual(esme.receiptsOf(lost), [])
})

test('receiptBeforeAnswer sends a receipt before the response to its submit', async () => {
  await faults({ receiptBeforeAnswer: { count: 1 } })
  const receipts = await esme.submit({ destination_addr: '48500500112' }).then((pdu) => [...esme.receiptsOf(pdu.message_id ?? '')])
  assert.equal(receipts.length, 1)
})

test('hexInReceipt and hexInAnswer write an id in hexadecimal in one place and in decimal in the other', async () => {
  await faults({ hexInReceipt: { count: 1 } })
  const decimal = await submitted()
  await until('its receipt', () => esme.receiptsOf(Number(decimal).toString(16).toUpperCase()).length)
  await faults({ hexInAnswer: { count: 1 } })
  const hexadecimal = await submitted()
  assert.match(hexadecimal, /[0-9A-F]{8}/)
  await until('its receipt', () => esme.receiptsOf(String(Number.parseInt(hexadecimal, 16))).length)
})

test('receiptWithoutTlvs and receiptSpelling change the form of a receipt', async () => {
  await faults({ receiptWithoutTlvs: { count: 1 } })
  const bare = await esme.receipt(await submitted())
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
    assert.match(textOf(await esme.receipt(await submitted())), pattern)
  }
})
