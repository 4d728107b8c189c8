import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Failover } from './failover.ts'
import { judgeAway, judgeComebacks, judgeFailovers, judgeMisled, judgeShares, judgeStops, judgeUnconfirmed } from './lines.ts'
import type { Beat } from './pulse.ts'

// Each line of the verdict says "ok" of a run that was right, and "WRONG" where one thing about it is not.

function beat(fields: Partial<Beat> = {}): Beat {
  return { key: 'key', sentAt: 0, answeredAt: 1, status: 202, messageId: 'id', ...fields }
}

describe('a node that is stopped', () => {
  const stop = { node: 'api-1', tookMs: 400, beats: [beat(), beat({ key: 'refused', status: 0, messageId: undefined })] }

  test('may refuse what it has not begun', () => {
    assert.deepEqual(judgeStops([stop], { keys: [{ key: 'key' }] }).wrong, [])
  })

  test('must not leave unanswered what it has taken', () => {
    const { wrong } = judgeStops([stop], { keys: [{ key: 'refused' }] })
    assert.deepEqual(wrong, ['key refused was taken, and not answered'])
  })

  test('must not take longer than 10 s', () => {
    assert.deepEqual(judgeStops([{ ...stop, tookMs: 10_001 }], { keys: [] }).wrong, ['api-1 took 10.0 s to stop'])
  })

  test('must have been asked something', () => {
    assert.equal(judgeStops([{ ...stop, beats: [] }], { keys: [] }).wrong.length, 1)
  })
})

test('a node that does nothing is found', () => {
  const shares = (done: number) =>
    new Map([
      ['api-1', { role: 'api' as const, done: 100 }],
      ['api-2', { role: 'api' as const, done }],
    ])
  assert.deepEqual(judgeShares(shares(80)).wrong, [])
  assert.deepEqual(judgeShares(shares(3)).wrong, ['api-2 did next to nothing'])
})

const FAILOVER: Failover = {
  manner: 'frozen',
  withoutServiceMs: 4_000,
  resumedMs: 300,
  comeback: { visible: new Set(['id']), lateWrites: 2, newConnections: 0, newMessages: 0 },
}

test('a service that does not go on after a failover is found', () => {
  assert.deepEqual(judgeFailovers([FAILOVER]).wrong, [])
  assert.equal(judgeFailovers([{ ...FAILOVER, resumedMs: 11_000 }]).wrong.length, 1)
  assert.equal(judgeFailovers([{ ...FAILOVER, resumedMs: Number.NaN }]).wrong.length, 1)
})

describe('an old primary', () => {
  const known = { messages: [{ id: 'id' }] }
  const back = (fields: object) =>
    judgeComebacks([{ ...FAILOVER, comeback: { ...(FAILOVER.comeback as object), ...fields } as never }], known).wrong

  test('that shows what the new one has is right', () => assert.deepEqual(back({}), []))
  test('must not have what the new one has not', () => assert.equal(back({ visible: new Set(['id', 'lost']) }).length, 1))
  test('must not be connected to', () => assert.equal(back({ newConnections: 1 }).length, 1))
  test('must not be written to', () => assert.equal(back({ newMessages: 1 }).length, 1))
})

describe('while the standby hangs', () => {
  const away = { beats: [beat({ status: 503 })], resumedMs: 300 }

  test('503 is right', () => assert.deepEqual(judgeAway(away).wrong, []))
  test('202 is not, nor 500, nor to stay away', () => {
    assert.equal(judgeAway({ ...away, beats: [beat()] }).wrong.length, 1)
    assert.equal(judgeAway({ ...away, beats: [beat({ status: 500 })] }).wrong.length, 1)
    assert.equal(judgeAway({ ...away, resumedMs: 11_000 }).wrong.length, 1)
  })
  test('something has to be asked', () => assert.equal(judgeAway({ ...away, beats: [] }).wrong.length, 1))
})

describe('what only the primary has', () => {
  const unconfirmed = { meanwhile: [beat({ status: 503 })], wasOnPrimary: true, isOnStandby: true }

  test('is not accepted before both have it', () => assert.deepEqual(judgeUnconfirmed(unconfirmed).wrong, []))
  test('must not be accepted', () => assert.equal(judgeUnconfirmed({ ...unconfirmed, meanwhile: [beat()] }).wrong.length, 1))
  test('must not stay there alone', () => assert.equal(judgeUnconfirmed({ ...unconfirmed, isOnStandby: false }).wrong.length, 1))
  test('must be something', () => assert.equal(judgeUnconfirmed({ ...unconfirmed, wasOnPrimary: false }).wrong.length, 1))
})

describe('at a standby', () => {
  const misled = { beats: [beat({ status: 503 })], ready: [], resumedMs: 300 }

  test('503 is right', () => assert.deepEqual(judgeMisled(misled).wrong, []))
  test('202 is not, nor 500, nor being ready', () => {
    assert.equal(judgeMisled({ ...misled, beats: [beat()] }).wrong.length, 1)
    assert.equal(judgeMisled({ ...misled, beats: [beat({ status: 500 })] }).wrong.length, 1)
    assert.equal(judgeMisled({ ...misled, ready: ['api-1'] }).wrong.length, 1)
    assert.equal(judgeMisled({ ...misled, resumedMs: 11_000 }).wrong.length, 1)
  })
})
