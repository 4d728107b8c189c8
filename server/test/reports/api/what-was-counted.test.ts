import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAllCounted } from '../../support/counted.ts'
import { pool } from './shared.ts'

test('all of it is a past that can be: every counter is what the rows say', async () => {
  assert.ok((await assertAllCounted(pool)) > 0)
})
