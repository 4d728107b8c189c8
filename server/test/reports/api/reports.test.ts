import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAllCounted } from '../../support/counted.ts'
import './requests.ts'
import './summary.ts'
import './aggregations.ts'
import './lists.ts'
import './cursors.ts'
import './paging.ts'
import './model.ts'
import { pool } from './scene.ts'

// The reports from outside, over HTTP, held against the contract. What they have in common is in `requests.ts`; the rest is by report.

test('all of it is a past that can be: every counter is what the rows say', async () => {
  assert.ok((await assertAllCounted(pool)) > 0)
})
