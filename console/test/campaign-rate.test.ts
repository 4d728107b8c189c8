import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rateOf, withSample } from '../src/pages/campaigns/campaign.ts'

test('the rate is what no longer waits after the last half minute, and unknown at first', () => {
  const at = (seconds: number, processed: number) => ({ atMs: seconds * 1_000, processed })
  assert.equal(rateOf([at(0, 0)]), undefined)
  assert.equal(rateOf([at(0, 0), at(1, 90)]), undefined)
  assert.equal(rateOf([at(0, 100), at(10, 800)]), 70)
  const samples = [at(0, 0), at(20, 1_000), at(40, 1_200)].reduce(withSample, [] as ReturnType<typeof withSample>)
  assert.equal(rateOf(samples), 10)
})
