import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planFaults, requiredFaults, TARGETS } from './plan.ts'

test('a plan depends on the seed alone', () => {
  assert.deepEqual(planFaults(7, 120), planFaults(7, 120))
  assert.notDeepEqual(planFaults(7, 120), planFaults(8, 120))
  assert.deepEqual(new Set(planFaults(7, 120).map(({ target }) => target)), new Set(TARGETS))
})

test('a longer run begins with the faults of a shorter one', () => {
  const short = planFaults(7, 60)
  assert.deepEqual(planFaults(7, 120).slice(0, short.length), short)
})

test('a plan has every required fault, for long enough, whatever the seed', () => {
  for (let seed = 0; seed < 1_000; seed++) {
    for (const seconds of [15, 30, 60, 120]) {
      const plan = planFaults(seed, seconds)
      for (const { target, manner, leastFrozenMs } of requiredFaults(seconds)) {
        const isPlanned = plan.some((one) => {
          const frozenMs = Math.min(one.frozenMs, seconds * 1_000 - one.atMs)
          const done = one.manner === 'hung' ? 'killed' : one.manner
          return one.target.startsWith(target) && done === manner && frozenMs >= leastFrozenMs
        })
        assert.ok(isPlanned, `seed ${seed}, ${seconds} s: no ${target} is ${manner}`)
      }
    }
  }
})

test('a fault of a target ends before the next fault of that target begins', () => {
  for (let seed = 0; seed < 100; seed++) {
    for (const [target, all] of Map.groupBy(planFaults(seed, 120), (one) => one.target)) {
      for (const [n, { atMs }] of all.entries()) {
        const before = all[n - 1]
        assert.ok(before === undefined || before.atMs + before.frozenMs + before.goneMs <= atMs, `seed ${seed}, ${target}`)
      }
    }
  }
})
