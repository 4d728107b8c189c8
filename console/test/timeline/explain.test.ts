import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/timeline/explain.ts'
import { FALLEN_BACK, heldBack, item, message, time } from './cases.ts'

const stepsOf = (...given: Parameters<typeof explain>) => explain(...given).steps
const only = (...given: Parameters<typeof explain>) => stepsOf(...given)[0] as ReturnType<typeof stepsOf>[number]

test('explains why RCS failed, with the words of the network and the codes of the API', () => {
  const failed = stepsOf(FALLEN_BACK.message, FALLEN_BACK.items)[1]
  assert.equal(failed?.title, 'Failed: the number has no RCS')
  assert.deepEqual(failed?.codes, ['FAILED', 'NOT_REACHABLE'])
  assert.match(failed?.why ?? '', /agent is not launched on the recipient’s network/)
  assert.equal(failed?.network, '404 NOT_FOUND The phone number is not reachable by RCS.')
})

test('lists every rule of the SMS with its result and facts', () => {
  const checked = stepsOf(FALLEN_BACK.message, FALLEN_BACK.items)[3]
  assert.deepEqual(
    checked?.rules.map(({ name, result }) => `${name}: ${result}`),
    ['Due: passed', 'Blocked: passed', 'Opted out: passed', 'Campaign cancelled: not-required', 'Consents: passed', 'Quarantine: passed'],
  )
  const facts = checked?.rules.slice(1).map((rule) => rule.facts)
  assert.deepEqual(facts, ['no', 'no', 'does not apply', 'required: 1 and 12; given: 1, 2, and 12', '24 hours; there was no SMS before'])
})

test('puts the attempts of a webhook under the step that emitted the event', () => {
  const { steps, others } = explain(FALLEN_BACK.message, FALLEN_BACK.items)
  const [call, ...more] = steps[1]?.webhooks ?? []
  assert.deepEqual([call?.type, call?.attempts.map(({ status }) => status), more], ['message.failed', [500, 200], []])
  assert.deepEqual([steps.flatMap(({ webhooks }) => webhooks).length, others], [1, []])
})

test('puts each reply’s webhook under its own reply, and a call without a step aside', () => {
  const called = (seconds: number, eventId: string, type: string) =>
    item(seconds, 'webhook-attempt', { data: { eventId, type, endpointId: 1, attempt: 1, status: 200, durationMs: 5 } })
  const { steps, others } = explain(message({ status: 'READ' }), [
    item(1, 'tapped', { data: { buttonId: 'yes' } }),
    item(1.01, 'wrote', { data: { text: 'Hello' } }),
    called(1.2, 'tap', 'message.replied'),
    called(1.3, 'text', 'message.replied'),
    called(2, 'other', 'webhook.test'),
  ])
  assert.deepEqual(
    steps.map(({ webhooks }) => webhooks.map(({ eventId }) => eventId)),
    [['tap'], ['text']],
  )
  assert.deepEqual(
    others.map(({ eventId }) => eventId),
    ['other'],
  )
})

test('names the rule that holds an SMS back, and its facts', () => {
  const { message: skipped, items } = heldBack('CONSENT', { rule: 'consents', result: 'failed', required: [12], given: [] })
  const [, , , checked, held] = stepsOf(skipped, items)
  assert.deepEqual([checked?.title, checked?.tone], ['A rule holds the SMS back: Consents', 'bad'])
  assert.equal(checked?.rules.find(({ result }) => result === 'failed')?.facts, 'required: 12; given: none')
  assert.deepEqual([held?.title, held?.codes], ['SMS held back', ['SKIPPED', 'CONSENT']])
  assert.match(held?.why ?? '', /^Herald does not send the SMS\. The recipient has not given/)
})

test('says which attempt failed, and with which response', () => {
  const step = only(message(), [item(1, 'attempt-failed', { data: { attempt: 2, response: '503 UNAVAILABLE' } })])
  assert.match(step.why, /This was attempt 2\.$/)
  assert.equal(step.network, '503 UNAVAILABLE')
})

test('an attempt after the end of a message is one to revoke it', () => {
  const items = [item(1, 'attempt-failed'), item(2, 'failed', { reason: 'CANCELLED' }), item(3, 'attempt-failed')]
  const titles = stepsOf(message({ status: 'FAILED' }), items).map(({ title }) => title)
  assert.deepEqual([titles[0], titles[2]], ['The network did not accept it', 'Not revoked yet'])
})

test('takes the words of an SMS receipt, and not Herald’s own sentences', () => {
  const words = (description: string) => only(message(), [item(1, 'sms-failed', { reason: 'UNDELIVERABLE', description })]).network
  assert.equal(words('UNDELIV, error 001'), 'UNDELIV, error 001')
  assert.equal(words('The network refused the message. The network said: ESME_RSUBMITFAIL'), 'ESME_RSUBMITFAIL')
  assert.equal(words('The SMS failed permanently.'), undefined)
})

test('quotes what the recipient wrote, and names buttons, links and places', () => {
  const why = (data: Record<string, unknown>) => only(message(), [item(1, 'wrote', { data })]).why
  assert.match(why({ text: 'Thank you', channel: 'sms' }), /“Thank you” By SMS\.$/)
  assert.match(why({ buttonId: 'yes' }), /id yes\.$/)
  assert.match(why({ url: 'https://example.com' }), /leads to https:\/\/example\.com\.$/)
  assert.match(why({ latitude: 52.2, longitude: 21 }), /52\.2, 21\.$/)
})

test('says of an accepted message until when it lives, and what it is', () => {
  const why = (more: Parameters<typeof message>[0]) => only(message(more), [item(0, 'accepted')]).why
  assert.match(why({}), /until 18 November at .* The request has no SMS/)
  assert.match(why({ smsFallback: { status: 'WAITING', segments: 1 } }), /has an SMS to fall back to\./)
  assert.match(why({ test: true }), /test message, which no report counts/)
})

test('says when a late receipt was reported', () => {
  assert.match(only(message(), [item(1, 'delivered-late', { data: { reportedAt: time(90) } })]).why, /reported it on 16 November/)
})

test('uses the server’s description for a code that it does not know', () => {
  const step = only(message(), [item(1, 'failed', { reason: 'NEW_REASON', description: 'Something new. The network said: no' })])
  assert.deepEqual([step.title, step.why, step.network], ['Failed', 'Something new.', 'no'])
})
