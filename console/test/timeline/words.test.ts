import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  FAILURES,
  FALLBACK_TRIGGERS,
  NOT_NEEDED_REASONS,
  NETWORK_SAID as SERVER_SAYS,
  SKIP_REASONS,
  SMS_FAILURES,
  SMS_RULES,
} from '../../../server/src/delivery/failures.ts'
import { FALLBACK_STATUSES, STATUSES } from '../../../server/src/messages/states.ts'
import { STEPS } from '../../../server/src/timeline/steps.ts'
import { NETWORK_SAID } from '../../src/timeline/explain.ts'
import { LOOKS } from '../../src/timeline/looks.ts'
import { smsStatuses, statuses } from '../../src/words/en-messages.ts'
import * as say from '../../src/words/en-timeline.ts'

const LISTS: [what: string, codes: readonly string[], dictionary: Record<string, unknown>][] = [
  ['step', Object.keys(STEPS), say.steps],
  ['look of a step', Object.keys(STEPS), LOOKS],
  ['failure', Object.keys(FAILURES), say.failures],
  ['reason of a fallback', Object.keys({ ...FALLBACK_TRIGGERS, ...NOT_NEEDED_REASONS, ...SKIP_REASONS }), say.fallback],
  ['failure of an SMS', Object.keys(SMS_FAILURES), say.smsFailures],
  ['rule of the SMS', SMS_RULES, say.rules],
  ['status', STATUSES, statuses],
  ['status of an SMS', FALLBACK_STATUSES, smsStatuses],
]

for (const [what, codes, dictionary] of LISTS) {
  test(`has words for every ${what} that the server knows, and for no other`, () => {
    assert.deepEqual(new Set(Object.keys(dictionary)), new Set(codes))
  })
}

test('separates the words of a network as the server does', () => {
  assert.equal(NETWORK_SAID, SERVER_SAYS)
})
