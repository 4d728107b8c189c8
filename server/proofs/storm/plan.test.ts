import assert from 'node:assert/strict'
import { test } from 'node:test'
import { essentialUpsets, planUpsets, VICTIMS } from './plan.ts'

test('what is upset, when, how and for how long is a function of the seed', () => {
  assert.deepEqual(planUpsets(7, 120), planUpsets(7, 120))
  assert.notDeepEqual(planUpsets(7, 120), planUpsets(8, 120))
  assert.deepEqual(new Set(planUpsets(7, 120).map(({ victim }) => victim)), new Set(VICTIMS))
})

test('a longer run begins as a shorter one does', () => {
  const short = planUpsets(7, 60)
  assert.deepEqual(planUpsets(7, 120).slice(0, short.length), short)
})

test('whatever the seed, each essential upset is planned, and its time is long enough', () => {
  for (let seed = 0; seed < 1_000; seed++) {
    for (const seconds of [15, 30, 60, 120]) {
      const plan = planUpsets(seed, seconds)
      for (const { victim, manner, leastFrozenMs } of essentialUpsets(seconds)) {
        const isPlanned = plan.some((one) => {
          const frozenMs = Math.min(one.frozenMs, seconds * 1_000 - one.atMs)
          const done = one.manner === 'hung' ? 'killed' : one.manner
          return one.victim.startsWith(victim) && done === manner && frozenMs >= leastFrozenMs
        })
        assert.ok(isPlanned, `seed ${seed}, ${seconds} s: no ${victim} is ${manner}`)
      }
    }
  }
})

test('of one victim, one upset is over before the next begins', () => {
  for (let seed = 0; seed < 100; seed++) {
    for (const [victim, all] of Map.groupBy(planUpsets(seed, 120), (one) => one.victim)) {
      for (const [n, { atMs }] of all.entries()) {
        const before = all[n - 1]
        assert.ok(before === undefined || before.atMs + before.frozenMs + before.goneMs <= atMs, `seed ${seed}, ${victim}`)
      }
    }
  }
})
