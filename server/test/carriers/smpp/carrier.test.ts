import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import tls from 'node:tls'
import { createSmppCarrier } from '../../../src/carriers/smpp/carrier.ts'
import { splitText } from '../../../src/sms/parts.ts'
import { until } from '../../support/until.ts'
import { acceptBind, acceptSubmits, startForeignServer } from './foreign.ts'
import { PASSWORD, part, startCarrier } from './support.ts'

const answerWith = (status: number) => (session: any) => {
  acceptBind(session)
  session.on('submit_sm', (pdu: any) => session.send(pdu.response({ command_status: status })))
}

describe('the SMPP carrier, against a server made with the npm package', () => {
  test('binds as a transceiver, submits, and gives the id by which the network knows the message', async () => {
    const seen: any[] = []
    const { port } = await startForeignServer((session) => {
      session.on('pdu', (pdu: any) => seen.push(pdu))
      acceptBind(session)
      acceptSubmits(session)
    })
    const carrier = startCarrier(port, { systemType: 'VMA' })
    assert.deepEqual(await carrier.submit(part({ text: 'Hi €' })), { is: 'sent', carrierMessageId: 'm1' })
    assert.deepEqual(await carrier.submit(part({ encoding: 'UCS2', text: 'żółć', sender: '48600' })), {
      is: 'sent',
      carrierMessageId: 'm2',
    })
    const [bind, first, second] = seen
    assert.deepEqual(
      [bind.command, bind.system_id, bind.password, bind.system_type, bind.interface_version],
      ['bind_transceiver', 'herald', PASSWORD, 'VMA', 0x34],
    )
    assert.deepEqual(
      [first.source_addr, first.source_addr_ton, first.source_addr_npi, first.destination_addr, first.dest_addr_ton, first.dest_addr_npi],
      ['Herald', 5, 0, '48500100200', 1, 1],
    )
    assert.deepEqual([first.data_coding, first.registered_delivery, first.esm_class, first.short_message.message], [0, 1, 0, 'Hi €'])
    assert.deepEqual([second.data_coding, second.short_message.message, second.source_addr_ton], [8, 'żółć', 3])
    assert.ok(Math.abs(first.validity_period.getTime() - Date.now() - 3_600_000) < 10_000)
    assert.equal(carrier.name, 'net')
    assert.equal(carrier.concurrency, 10)
  })

  test('the parts of a long text can be put together again', async () => {
    const seen: any[] = []
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      acceptSubmits(session)
      session.on('submit_sm', (pdu: any) => seen.push(pdu))
    })
    const carrier = startCarrier(port)
    const text = 'Ünïcödé 😀 '.repeat(20)
    await Promise.all(splitText(text, 42).map((piece) => carrier.submit(part(piece))))
    assert.equal(seen.map((pdu) => pdu.short_message.message).join(''), text)
    assert.deepEqual(
      seen.map((pdu) => pdu.short_message.udh[0].toString('hex')),
      seen.map((_, index) => `00032a0${seen.length}0${index + 1}`),
    )
  })

  test('a final status refuses the message, with its reason', async () => {
    for (const [status, reason, detail] of [
      [0x0a, 'INVALID_SENDER', 'ESME_RINVSRCADR (0x0000000a)'],
      [0x0b, 'INVALID_RECIPIENT', 'ESME_RINVDSTADR (0x0000000b)'],
      [0x45, 'REJECTED', 'ESME_RSUBMITFAIL (0x00000045)'],
      [0xfe, 'UNDELIVERABLE', 'ESME_RDELIVERYFAILURE (0x000000fe)'],
      [0x45a, 'REJECTED', 'SMPP status 0x0000045a'],
    ] as const) {
      const { port } = await startForeignServer(answerWith(status))
      assert.deepEqual(await startCarrier(port).submit(part()), { is: 'failed', reason, detail })
    }
  })

  test('a wrong password is an error in the log, once, and is tried on until it is right', async () => {
    let right = false
    let binds = 0
    const { port } = await startForeignServer((session) => {
      session.on('bind_transceiver', (pdu: any) => {
        binds += 1
        session.send(pdu.response(right ? {} : { command_status: 0x0e }))
      })
      acceptSubmits(session)
    })
    const carrier = startCarrier(port, { timings: { waitMs: 50 } })
    const away = await carrier.submit(part())
    assert.ok(away.is === 'retry' && away.afterMs >= 1_000)
    await until('it was tried several times', () => binds >= 4)
    assert.equal(carrier.log().match(/ESME_RINVPASWD/g)?.length, 1)
    assert.equal(JSON.parse(carrier.log().split('\n')[0] as string).level, 50)
    right = true
    await until('it is bound', () => carrier.log().includes('bound to'))
    assert.equal((await carrier.submit(part())).is, 'sent')
  })

  test('a network that is not there yet, goes away and comes back is bound again, and a submit waits for it', async () => {
    const first = await startForeignServer(acceptBind)
    const { port } = first
    first.close()
    const carrier = startCarrier(port)
    const early = carrier.submit(part())
    await until('it was tried', () => carrier.log().includes('ECONNREFUSED'))
    const accept = (session: any) => {
      acceptBind(session)
      acceptSubmits(session)
    }
    const second = await startForeignServer(accept, { port })
    assert.equal((await early).is, 'sent')
    second.close()
    await until('the loss was noticed', () => carrier.log().match(/no connection/g)?.length === 2)
    const between = carrier.submit(part())
    await startForeignServer(accept, { port })
    assert.equal((await between).is, 'sent')
  })

  test('receipts and replies are handed on, and answered once they are safe', async () => {
    const sessions: any[] = []
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      sessions.push(session)
    })
    const kept = Promise.withResolvers<void>()
    const heard: any[] = []
    const carrier = startCarrier(port, {}, async (events) => {
      heard.push(...events)
      await kept.promise
    })
    await until('it is bound', () => carrier.log().includes('bound to'))
    const answers: any[] = []
    sessions[0].deliver_sm(
      { source_addr: '48500100200', destination_addr: 'Herald', esm_class: 4, receipted_message_id: 'zz', message_state: 2 },
      (pdu: any) => answers.push(pdu),
    )
    sessions[0].deliver_sm({ source_addr: '48500100200', destination_addr: '48600', short_message: 'Tak € ok' }, (pdu: any) =>
      answers.push(pdu),
    )
    await until('both are heard', () => heard.length === 2)
    // The link works meanwhile: what is not answered is held back.
    await new Promise((resolve) => sessions[0].enquire_link(resolve))
    assert.deepEqual(answers, [])
    kept.resolve()
    await until('both are answered', () => answers.length === 2)
    assert.deepEqual(
      answers.map(({ command, command_status }) => [command, command_status]),
      [
        ['deliver_sm_resp', 0],
        ['deliver_sm_resp', 0],
      ],
    )
    assert.deepEqual([heard[0].kind, heard[0].carrierMessageIds, heard[0].carrier], ['sms-delivered', ['zz'], 'net'])
    assert.deepEqual([heard[1].kind, heard[1].number, heard[1].phone], ['wrote', '48600', '+48500100200'])
  })

  test('what could not be kept is refused for now, so that the network sends it again', async () => {
    const sessions: any[] = []
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      sessions.push(session)
    })
    let failing = true
    const heard: any[] = []
    const carrier = startCarrier(port, {}, async (events) => {
      if (failing) throw new Error('the database is away')
      heard.push(...events)
    })
    await until('it is bound', () => carrier.log().includes('bound to'))
    const deliver = () =>
      new Promise<any>((resolve) =>
        sessions[0].deliver_sm({ source_addr: '48500100200', esm_class: 4, short_message: 'id:zz stat:DELIVRD' }, resolve),
      )
    assert.equal((await deliver()).command_status, 0x64)
    failing = false
    assert.equal((await deliver()).command_status, 0)
    assert.equal(heard.length, 1)
  })

  test('the log never holds a number, a text, a name or the password', async () => {
    const { port } = await startForeignServer((session) => {
      session.on('bind_transceiver', (pdu: any) => {
        session.send(pdu.response())
        session.deliver_sm({ source_addr: '48500100200', destination_addr: '48600', short_message: 'CANARY' })
      })
      let count = 0
      session.on('submit_sm', (pdu: any) => {
        count += 1
        if (count === 3) session.destroy()
        else session.send(pdu.response({ command_status: count === 1 ? 0x0b : 0x58 }))
      })
    })
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 1 } })
    const outcomes = new Set<string>()
    await until('a refusal, a back-off and a loss were seen', async () => {
      outcomes.add((await carrier.submit(part({ text: 'CANARY' }))).is)
      return outcomes.size === 3
    })
    await carrier.close()
    for (const canary of [PASSWORD, 'CANARY', '48500100200', '48600', 'Herald']) assert.ok(!carrier.log().includes(canary), canary)
    assert.ok(carrier.log().split('\n').length > 3)
  })

  test('with TLS, only a network that can prove its name is spoken to', async (t) => {
    const known = tls.getCACertificates('default')
    t.after(() => tls.setDefaultCACertificates(known))
    const key = readFileSync(new URL('../../support/tls/key.pem', import.meta.url))
    const cert = readFileSync(new URL('../../support/tls/cert.pem', import.meta.url))
    const { port } = await startForeignServer(
      (session) => {
        acceptBind(session)
        acceptSubmits(session)
      },
      { key, cert },
    )
    const wary = startCarrier(port, { tls: true, host: 'localhost', timings: { waitMs: 100 } })
    assert.equal((await wary.submit(part())).is, 'retry')
    await until('the certificate is refused', () => /DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY|SELF_SIGNED/.test(wary.log()))
    await wary.close()
    tls.setDefaultCACertificates([cert.toString()])
    const trusting = startCarrier(port, { tls: true, host: 'localhost' })
    assert.equal((await trusting.submit(part())).is, 'sent')
  })

  test('what has expired is not sent any more', async () => {
    let asked = 0
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      session.on('submit_sm', () => {
        asked += 1
      })
    })
    const outcome = await startCarrier(port).submit(part({ expiresAt: new Date(Date.now() - 1) }))
    assert.deepEqual(outcome, { is: 'expired' })
    assert.equal(asked, 0)
  })

  test('no call takes longer than it says by default: waiting and the answer fit', () => {
    const carrier = createSmppCarrier(
      { name: 'n', host: '127.0.0.1', port: 1, tls: false, systemId: 'a', password: 'b' },
      { onEvents: async () => {}, logger: { info() {}, warn() {}, error() {} } },
    )
    assert.equal(carrier.longestCallMs, 3_000 + 10_000 + 100 + 1_000)
    return carrier.close()
  })
})
