import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCircuit, type Pass } from '../../../src/carriers/google-rbm/circuit.ts'
import { retryAfterMs } from '../../../src/outbound/retry-after.ts'

const HOUR_MS = 3_600_000

function startCircuit() {
  const clock = { ms: 1_000 }
  /** All that the circuit told: how long each pause is, and 0 for the end of one. */
  const changes: number[] = []
  const circuit = createCircuit(
    (pauseMs) => changes.push(pauseMs),
    () => clock.ms,
  )

  function pass(): Pass {
    const way = circuit.enter()
    return way.is === 'open' ? way.pass : assert.fail(`closed for another ${way.waitMs} ms`)
  }

  function closedWaitMs(): number {
    const way = circuit.enter()
    return way.is === 'closed' ? way.waitMs : assert.fail('it is open')
  }

  function fail(count: number): void {
    for (let index = 0; index < count; index += 1) pass().failed()
  }

  /** To the end of the pause, when one may go ahead. */
  function waitOut(): void {
    clock.ms = Math.ceil(clock.ms + circuit.closedForMs())
  }

  return { clock, changes, circuit, pass, closedWaitMs, fail, waitOut }
}

function assertWithin(ms: number | undefined, least: number, most: number): void {
  assert.ok(ms !== undefined && ms >= least && ms <= most, `${ms} is not within ${least} and ${most}`)
}

describe('it closes', () => {
  test('after five failures in a row, for 250 to 500 ms', () => {
    const { changes, circuit, pass, fail } = startCircuit()
    fail(4)
    assert.equal(circuit.closedForMs(), 0)
    assert.equal(changes.length, 0)
    const againAfterMs = pass().failed()
    assert.equal(changes.length, 1)
    assertWithin(changes[0], 250, 500)
    assert.equal(Math.round(circuit.closedForMs()), Math.round(changes[0] as number))
    assertWithin(againAfterMs, circuit.closedForMs(), 500)
  })

  test('only where no success was among them', () => {
    const { changes, pass, fail } = startCircuit()
    fail(4)
    pass().succeeded()
    fail(4)
    assert.equal(changes.length, 0)
    fail(1)
    assert.equal(changes.length, 1)
  })

  test('at once where the network asks for it, and for as long as it asks', () => {
    const { changes, circuit, pass } = startCircuit()
    assert.equal(pass().failed(30_000), 30_000)
    assert.deepEqual(changes, [30_000])
    assert.equal(circuit.closedForMs(), 30_000)
  })

  test('for no less than it would have, where the network asks for less', () => {
    const { changes, pass } = startCircuit()
    pass().failed(1)
    assertWithin(changes[0], 250, 500)
  })

  test('for an hour where the network asks for more', () => {
    for (const askedMs of [HOUR_MS + 1, 7 * 24 * HOUR_MS, Number.POSITIVE_INFINITY]) {
      const { circuit, pass } = startCircuit()
      assert.equal(pass().failed(askedMs), HOUR_MS)
      assert.equal(circuit.closedForMs(), HOUR_MS)
    }
  })

  test('for twice as long every time the one that goes ahead fails, up to a minute, and for the first time again after a success', () => {
    const { changes, pass, fail, waitOut } = startCircuit()
    fail(5)
    for (let failed = 1; failed <= 20; failed += 1) {
      waitOut()
      pass().failed()
      const longestMs = Math.min(60_000, 500 * 2 ** failed)
      assert.equal(changes.length, failed + 1)
      assertWithin(changes.at(-1), longestMs / 2, longestMs)
    }
    waitOut()
    pass().succeeded()
    assert.equal(changes.at(-1), 0)
    fail(4)
    assert.equal(changes.at(-1), 0)
    fail(1)
    assertWithin(changes.at(-1), 250, 500)
  })
})

describe('while it is closed', () => {
  test('nobody gets in, and each is told to wait for its end and up to half a second more', () => {
    const { clock, circuit, pass, closedWaitMs } = startCircuit()
    pass().failed(30_000)
    for (const elapsedMs of [0, 10_000, 29_999]) {
      clock.ms = 1_000 + elapsedMs
      assert.equal(circuit.closedForMs(), 30_000 - elapsedMs)
      assertWithin(closedWaitMs(), 30_000 - elapsedMs + 250, 30_000 - elapsedMs + 500)
    }
    clock.ms = 32_000
    assert.equal(circuit.closedForMs(), 0)
  })

  test('a success from before changes nothing', () => {
    const { changes, circuit, pass, closedWaitMs } = startCircuit()
    const before = pass()
    pass().failed(30_000)
    before.succeeded()
    assert.equal(circuit.closedForMs(), 30_000)
    closedWaitMs()
    assert.deepEqual(changes, [30_000])
  })

  test('failures from before make it no longer, whatever they ask for; they are to wait for its end', () => {
    const { changes, circuit, pass } = startCircuit()
    const before = Array.from({ length: 10 }, pass)
    pass().failed(30_000)
    for (const one of before) assert.equal(one.failed(), 30_000)
    assert.equal(before[0]?.failed(90_000), 90_000)
    assert.equal(circuit.closedForMs(), 30_000)
    assert.deepEqual(changes, [30_000])
  })
})

describe('when its time is over', () => {
  test('one goes ahead, and the others wait until it is back', () => {
    const { circuit, pass, closedWaitMs, fail, waitOut } = startCircuit()
    fail(5)
    waitOut()
    const ahead = pass()
    // Shortly, since it most often is back by then; however long the pauses have become.
    for (let index = 0; index < 3; index += 1) assertWithin(closedWaitMs(), 250, 500)
    assert.equal(circuit.closedForMs(), 250)
    ahead.succeeded()
    for (let index = 0; index < 3; index += 1) pass()
  })

  test('one that fails is followed by another after the next pause, however often', () => {
    const { circuit, pass, closedWaitMs, fail, waitOut } = startCircuit()
    fail(5)
    for (let index = 0; index < 5; index += 1) {
      waitOut()
      const againAfterMs = pass().failed()
      assertWithin(againAfterMs, circuit.closedForMs(), 60_000)
      assert.ok(circuit.closedForMs() > 0)
      closedWaitMs()
    }
    waitOut()
    pass().succeeded()
    pass()
  })

  test('one that fails may ask for a longer pause', () => {
    const { circuit, pass, fail, waitOut } = startCircuit()
    fail(5)
    waitOut()
    assert.equal(pass().failed(120_000), 120_000)
    assert.equal(circuit.closedForMs(), 120_000)
  })

  test('one that fails is enough to close it again, also where one failure was enough before', () => {
    const { changes, pass, closedWaitMs, waitOut } = startCircuit()
    pass().failed(30_000)
    waitOut()
    pass().failed()
    assert.equal(changes.length, 2)
    assertWithin(changes.at(-1), 500, 1_000)
    closedWaitMs()
  })

  test('those from before decide nothing for the one that is ahead', () => {
    const { changes, pass, closedWaitMs, waitOut } = startCircuit()
    const [success, failure] = [pass(), pass()]
    pass().failed(30_000)
    waitOut()
    const ahead = pass()
    success.succeeded()
    closedWaitMs()
    failure.failed(90_000)
    assert.deepEqual(changes, [30_000])
    ahead.succeeded()
    assert.deepEqual(changes, [30_000, 0])
  })

  test('failures from before the pause do not close it again', () => {
    const { changes, pass, waitOut } = startCircuit()
    const before = Array.from({ length: 10 }, pass)
    pass().failed(30_000)
    waitOut()
    pass().succeeded()
    for (const one of before) assertWithin(one.failed(), 250, 500)
    assert.deepEqual(changes, [30_000, 0])
  })
})

test('waits are spread over half of their length, so that many do not come back at one moment', () => {
  const waits = Array.from({ length: 500 }, () => startCircuit().pass().failed())
  for (const waitMs of waits) assertWithin(waitMs, 250, 500)
  assertWithin(Math.min(...waits), 250, 290)
  assertWithin(Math.max(...waits), 460, 500)
})

describe('Retry-After', () => {
  for (const [header, ms] of [
    ['7', 7_000],
    [' 7\t', 7_000],
    ['0', 0],
    ['86400', 86_400_000],
    ['9'.repeat(20), 1e23],
    [['5', '12'], 5_000],
    [undefined, undefined],
    ['', undefined],
    ['-5', undefined],
    ['120.5', undefined],
    ['5,12,40', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['soon', undefined],
    ['2099-01-01T00:00:00Z', undefined],
    ['Thu, 01 Jan 2015 00:00:00 GMT', 0],
    ['Xyz, 99 Abc 2099 00:00:00 GMT', undefined],
  ] as [string | string[] | undefined, number | undefined][]) {
    test(`${JSON.stringify(header)} is ${ms}`, () => {
      assert.equal(retryAfterMs(header), ms)
    })
  }

  test('may be a date', () => {
    assertWithin(retryAfterMs(` ${new Date(Date.now() + 90_000).toUTCString()} `), 80_000, 90_000)
  })
})
