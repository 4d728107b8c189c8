import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CampaignRequest } from '../../src/campaigns/schemas.ts'
import { CONTENT_SCHEMAS } from '../../src/content/content.ts'
import { readJson } from '../../src/http/json-body.ts'
import { buildValidator } from '../../src/http/validation.ts'
import { MessageRequest, TestMessageRequest } from '../../src/messages/schemas.ts'
import { NewTemplate } from '../../src/templates/schemas.ts'
import { quickestMs } from '../support/cpu.ts'

// The CPU time from the bytes of a body to its rejection, for the bodies that cost most.

const LIMIT_BYTES = 256 * 1024
// The costliest take 2.6 ms on an idle core; the rest is for noise that the yardstick does not remove.
const LIMIT_MS = 4

const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))
const fields = (count: number, name: (index: number) => string) => Object.fromEntries(many(count, (index) => [name(index), 1]))
const sending = (inline: unknown, more: object = {}) =>
  JSON.stringify({ agentId: 'x', recipient: '+48500100200', message: { inline }, ...more })
const urlButton = (url: string) => ({ id: 'b', type: 'url', text: 't', url })
const TEXT = { type: 'MESSAGE', content: 'x' }

const BODIES: Record<string, string> = {
  'brackets that are never closed': '['.repeat(LIMIT_BYTES),
  'brackets that are only closed': ']'.repeat(LIMIT_BYTES),
  '24,840 names': JSON.stringify(fields(24_840, (index) => `n${index}`)).slice(0, LIMIT_BYTES),
  '990 unknown names of 93 characters': JSON.stringify(fields(990, (index) => `${'n'.repeat(90)}${index}`)),
  'a name of 128,000 characters': `{"${'n'.repeat(128_000)}":1}`,
  'names that are nothing but colons': `"x"${':'.repeat(LIMIT_BYTES - 3)}`,
  'quotes alone': '"'.repeat(LIMIT_BYTES),
  'escaped quotes': `"${'\\"'.repeat(LIMIT_BYTES / 2 - 1)}"`,
  backslashes: `"${'\\'.repeat(LIMIT_BYTES - 1)}`,
  blanks: ' '.repeat(LIMIT_BYTES),
  'one long number': '1'.repeat(LIMIT_BYTES),
  'numbers without commas': '1 '.repeat(LIMIT_BYTES / 2),
  'one long text': sending({ type: 'MESSAGE', content: 'x'.repeat(250_000) }),
  'one long text beyond ASCII': sending({ type: 'MESSAGE', content: '📦'.repeat(60_000) }),
  'one long text of half characters': sending(TEXT).replace('"x"}', `"${'\\ud800'.repeat(40_000)}"}`),
  'a long number as recipient': sending(TEXT, { recipient: `+${'4'.repeat(250_000)}` }),
  'a long time': sending(TEXT, { expiresAt: '2'.repeat(250_000) }),
  '900 recipients': sending(TEXT, { recipients: many(900, (index) => `${'x'.repeat(200)}${index}`) }),
  '900 phone numbers of a contact': sending({ type: 'CONTACT', data: { name: 'x', phoneNumbers: many(900, (index) => `+48${index}`) } }),
  '99 buttons with addresses beyond ASCII': sending({
    ...TEXT,
    buttons: many(99, () => urlButton(`https://a.example/${'é'.repeat(900)}`)),
  }),
  '60 buttons with hosts beyond ASCII': sending({ ...TEXT, buttons: many(60, () => urlButton(`https://${'é.'.repeat(1_000)}com`)) }),
  '10 cards with long titles and addresses': sending({
    type: 'CAROUSEL',
    data: { cards: many(10, () => ({ title: 't'.repeat(12_000), buttons: many(4, () => urlButton(`https://${'x'.repeat(2_000)}`)) })) },
  }),
  'an SMS of 60,000 letters beyond GSM-7': sending(TEXT, {
    smsFallback: { planParams: { sender: 'S' }, smsMessagesPlan: [{ content: 'ł'.repeat(60_000), multipart: true }] },
  }),
  '950 groups': sending(TEXT, { name: 'x', segmentIds: many(950, (index) => index % 7) }),
  '990 texts that no database stores': JSON.stringify({ x: many(990, () => '\0') }),
}

const validator = buildValidator(Object.fromEntries(CONTENT_SCHEMAS.entries()))
const CHECKS = {
  'POST /messages': MessageRequest,
  'POST /messages/test': TestMessageRequest,
  'POST /campaigns': CampaignRequest,
  'POST /templates': NewTemplate,
}

for (const [route, schema] of Object.entries(CHECKS)) {
  const check = validator({ schema, httpPart: 'body', method: 'POST', url: route }) as (value: unknown) => { error?: Error }

  function reject(body: Buffer): void {
    let value: unknown
    try {
      value = readJson(body)
    } catch {
      return
    }
    assert.ok(check(value).error, 'the body is rejected')
  }

  describe(`${route} rejects a body within 4 ms of CPU:`, () => {
    for (const [name, text] of Object.entries(BODIES)) {
      test(name, () => {
        const body = Buffer.from(text)
        assert.ok(body.length <= LIMIT_BYTES, `${body.length} bytes are not too large for the service to read`)
        const tookMs = quickestMs(() => reject(body), LIMIT_MS)
        assert.ok(tookMs < LIMIT_MS, `${tookMs} ms`)
      })
    }
  })
}
