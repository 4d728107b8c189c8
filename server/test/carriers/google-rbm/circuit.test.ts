import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCircuit, type Pass } from '../../../src/carriers/google-rbm/circuit.ts'
import { retryAfterMs } from '../../../src/outbound/retry-after.ts'
import { assertWithin, times } from './support.ts'

const HOUR_MS = 3_600_000

function startCircuit() {
  const clock = { ms: 1_000 }
  /** What the circuit reported: the length of each pause, and 0 for its end. */
  const changes: number[] = []
  const circuit = createCircuit(
    (pauseMs) => changes.push(pauseMs),
    () => clock.ms,
  )

  function pass(): Pass {
    const entry = circuit.enter()
    return entry.is === 'free' ? entry.pass : assert.fail(`paused for another ${entry.waitMs} ms`)
  }

  function pausedWaitMs(): number {
    const entry = circuit.enter()
    return entry.is === 'paused' ? entry.waitMs : assert.fail('it is not paused')
  }

  function fail(count: number): void {
    for (let index = 0; index < count; index += 1) pass().failed()
  }

  /** Moves the clock to the end of the pause. */
  function waitOut(): void {
    clock.ms = Math.ceil(clock.ms + circuit.pausedForMs())
  }

  return { clock, changes, circuit, pass, pausedWaitMs, fail, waitOut }
}

describe('a circuit', () => {
  test('pauses after five failures without a success between them, for 250 to 500 ms', () => {
    const { changes, circuit, pass, fail } = startCircuit()
    fail(4)
    pass().succeeded()
    fail(4)
    assert.deepEqual([circuit.pausedForMs(), changes.length], [0, 0])
    const retryAfter = pass().failed()
    assert.equal(changes.length, 1)
    assertWithin(changes[0], 250, 500)
    assert.equal(Math.round(circuit.pausedForMs()), Math.round(changes[0] as number))
    assertWithin(retryAfter, circuit.pausedForMs(), 500)
  })

  for (const [askedMs, least, most] of [
    [30_000, 30_000, 30_000],
    [1, 250, 500],
    [HOUR_MS + 1, HOUR_MS, HOUR_MS],
    [Number.POSITIVE_INFINITY, HOUR_MS, HOUR_MS],
  ] as const) {
    test(`pauses at once for ${least} to ${most} ms if the network asks for ${askedMs} ms`, () => {
      const { changes, circuit, pass } = startCircuit()
      assertWithin(pass().failed(askedMs), least, most)
      assertWithin(changes[0], least, most)
      assert.equal(Math.round(circuit.pausedForMs()), Math.round(changes[0] as number))
    })
  }

  test('waits between half and all of its pause, at random for each caller', () => {
    const waits = times(500, () => startCircuit().pass().failed())
    assertWithin(Math.min(...waits), 250, 290)
    assertWithin(Math.max(...waits), 460, 500)
  })
})

describe('a paused circuit', () => {
  test('lets no request pass, and delays each until 250 to 500 ms after the pause', () => {
    const { clock, circuit, pass, pausedWaitMs } = startCircuit()
    pass().failed(30_000)
    for (const elapsedMs of [0, 10_000, 29_999]) {
      clock.ms = 1_000 + elapsedMs
      assert.equal(circuit.pausedForMs(), 30_000 - elapsedMs)
      assertWithin(pausedWaitMs(), 30_000 - elapsedMs + 250, 30_000 - elapsedMs + 500)
    }
    clock.ms = 32_000
    assert.equal(circuit.pausedForMs(), 0)
  })

  test('ignores the results of requests from before the pause, whether they come in it, during the probe or after it', () => {
    const { changes, circuit, pass, pausedWaitMs, waitOut } = startCircuit()
    const before = times(10, pass)
    const [first, second] = before as [Pass, Pass]
    pass().failed(30_000)
    first.succeeded()
    for (const earlier of before) assert.equal(earlier.failed(), 30_000)
    assert.equal(first.failed(90_000), 90_000)
    assert.equal(circuit.pausedForMs(), 30_000)
    pausedWaitMs()
    waitOut()
    const probe = pass()
    first.succeeded()
    pausedWaitMs()
    second.failed(90_000)
    assert.deepEqual(changes, [30_000])
    probe.succeeded()
    for (const earlier of before) assertWithin(earlier.failed(), 250, 500)
    assert.deepEqual(changes, [30_000, 0])
  })
})

describe('after its pause, a circuit', () => {
  test('lets one request probe the network, and the others pass once it succeeds', () => {
    const { circuit, pass, pausedWaitMs, fail, waitOut } = startCircuit()
    fail(5)
    waitOut()
    const probe = pass()
    // The probe is usually back by then, however long the pauses have become.
    for (let index = 0; index < 3; index += 1) assertWithin(pausedWaitMs(), 250, 500)
    assert.equal(circuit.pausedForMs(), 250)
    probe.succeeded()
    times(3, pass)
  })

  test('doubles the pause up to a minute each time the probe fails, and starts anew after a success', () => {
    const { changes, circuit, pass, pausedWaitMs, fail, waitOut } = startCircuit()
    fail(5)
    for (let failed = 1; failed <= 20; failed += 1) {
      waitOut()
      const retryAfter = pass().failed()
      const longestMs = Math.min(60_000, 500 * 2 ** failed)
      assert.equal(changes.length, failed + 1)
      assertWithin(changes.at(-1), longestMs / 2, longestMs)
      assertWithin(retryAfter, circuit.pausedForMs(), 60_000)
      pausedWaitMs()
    }
    waitOut()
    pass().succeeded()
    assert.equal(changes.at(-1), 0)
    fail(4)
    assert.equal(changes.at(-1), 0)
    fail(1)
    assertWithin(changes.at(-1), 250, 500)
  })

  test('pauses again after one failed probe, for as long as the network asks', () => {
    const { changes, circuit, pass, waitOut } = startCircuit()
    pass().failed(30_000)
    waitOut()
    pass().failed()
    assertWithin(changes[1], 500, 1_000)
    waitOut()
    assert.equal(pass().failed(120_000), 120_000)
    assert.equal(circuit.pausedForMs(), 120_000)
  })
})

describe('Retry-After', () => {
  test('is a number of seconds, or a date', () => {
    for (const [header, ms] of [
      ['7', 7_000],
      [' 7\t', 7_000],
      ['0', 0],
      ['9'.repeat(20), Number.MAX_SAFE_INTEGER],
      [['5', '12'], 5_000],
      ['Thu, 01 Jan 2015 00:00:00 GMT', 0],
    ] as [string | string[], number][]) {
      assert.equal(retryAfterMs(header), ms)
    }
    assertWithin(retryAfterMs(` ${new Date(Date.now() + HOUR_MS).toUTCString()} `), HOUR_MS / 2, HOUR_MS)
  })

  test('is ignored if it is neither', () => {
    const dates = ['2099-01-01T00:00:00Z', 'Xyz, 99 Abc 2099 00:00:00 GMT']
    for (const header of [undefined, '', '-5', '120.5', '5,12,40', '1e3', '0x10', 'soon', ...dates]) {
      assert.equal(retryAfterMs(header), undefined, `${header}`)
    }
  })
})
