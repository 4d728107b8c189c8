import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { readCarriers } from '../../src/carriers/settings.ts'
import { OperatorError } from '../../src/errors.ts'
import { KEYS } from '../support/network.ts'

const dir = mkdtempSync(join(tmpdir(), 'herald-carriers-'))
after(() => rmSync(dir, { recursive: true }))
const path = join(dir, 'carriers.json')

const serviceAccount = {
  type: 'service_account',
  project_id: 'example',
  client_email: 'herald@example.iam.gserviceaccount.com',
  private_key: KEYS.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  private_key_id: 'key-1',
  token_uri: 'https://oauth2.googleapis.com/token',
}
const google = { type: 'google-rbm', region: 'europe', serviceAccount, webhookToken: 'a-token-of-16-characters' }
const smpp = { type: 'smpp', host: 'smsc.example.com', port: 2775, systemId: 'herald', password: 'secret' }

function read(carriers: unknown) {
  writeFileSync(path, typeof carriers === 'string' ? carriers : JSON.stringify(carriers))
  return readCarriers(path)
}

/** Everything that is said to be wrong. */
function problems(carriers: unknown): string {
  try {
    read(carriers)
  } catch (error) {
    assert.ok(error instanceof OperatorError)
    assert.ok(error.message.startsWith(`HERALD_CARRIERS: ${path} `))
    assert.ok(!error.message.includes('BEGIN PRIVATE KEY') && !error.message.includes('CANARY'), 'secrets stay out of messages')
    return error.message.slice(`HERALD_CARRIERS: ${path} `.length)
  }
  throw new Error('nothing was wrong')
}

describe('the carriers’ file', () => {
  test('names an RBM carrier by its region, and an SMPP carrier', () => {
    const rates = { messagesPerSecond: 100, messagesPerSecondPerAgent: 20 }
    assert.deepEqual(read({ google: { ...google, ...rates }, smsc: { ...smpp, window: 20, tls: true } }), {
      rcs: [
        {
          name: 'google',
          address: 'https://europe-rcsbusinessmessaging.googleapis.com',
          serviceAccount,
          webhookToken: 'a-token-of-16-characters',
          connections: 128,
          ...rates,
        },
      ],
      sms: { name: 'smsc', ...smpp, window: 20, tls: true },
    })
  })

  test('takes an address instead, and the global one where there is neither', () => {
    const { region, ...global } = google
    const [first, second] = read({ one: global, two: { ...global, address: 'http://127.0.0.1:8090', connections: 5 } }).rcs
    assert.equal(first?.address, 'https://rcsbusinessmessaging.googleapis.com')
    assert.deepEqual([second?.address, second?.connections], ['http://127.0.0.1:8090', 5])
  })

  test('may begin with the mark that editors on Windows put there', () => {
    assert.equal(read(`\ufeff${JSON.stringify({ smsc: smpp })}`).sms?.name, 'smsc')
  })

  test('may name the key file that Google gives out, beside itself', () => {
    writeFileSync(join(dir, 'key.json'), JSON.stringify(serviceAccount))
    const { serviceAccount: _, ...rest } = google
    assert.deepEqual(read({ google: { ...rest, serviceAccountFile: 'key.json' } }).rcs[0]?.serviceAccount, serviceAccount)
    const missing = problems({ google: { ...rest, serviceAccountFile: 'nowhere.json' } })
    assert.equal(missing, '/google/serviceAccountFile must be a readable file.')
    writeFileSync(join(dir, 'key.json'), '{}')
    const empty = problems({ google: { ...rest, serviceAccountFile: 'key.json' } })
    assert.match(empty, /^\/google\/serviceAccountFile:\/client_email is required/)
  })
})

describe('what is wrong with it is told in a sentence that names the setting and the place', () => {
  const cases: [string, unknown, RegExp][] = [
    ['not JSON', '{"a": {"password": "CANARY",}}', /^is not valid JSON: it breaks at character 29\.$/],
    ['nothing', '', /^is not valid JSON\.$/],
    ['no object', [], /^must be a JSON object of carriers by name\.$/],
    ['a text', '"carriers"', /^must be a JSON object\.$/],
    ['an address for a host', { a: { ...smpp, host: 'smpp://smsc.example.com' } }, /^\/a\/host must be a host name or an address/],
    ['nobody', {}, /^names no carrier\.$/],
    ['a type that there is not', { a: { type: 'pigeon' } }, /^\/a\/type must be google-rbm or smpp\.$/],
    ['a name that an address can’t hold', { 'a b': smpp }, /^has a carrier named "a b"; names are/],
    ['a misspelt field', { a: { ...smpp, pasword: 'CANARY' } }, /^\/a\/pasword is not a field of type smpp; is it misspelt\?$/],
    ['two SMPP carriers', { a: smpp, b: smpp }, /^has 2 carriers of type smpp; at most one is allowed\.$/],
    ['a password that SMPP can’t carry', { a: { ...smpp, password: 'CANARY-ä' } }, /^\/a\/password must be printable ASCII/],
    ['a port that is none', { a: { ...smpp, port: 0 } }, /^\/a\/port /],
    ['no key', { a: { ...google, serviceAccount: undefined } }, /^\/a must have exactly one of serviceAccount and serviceAccountFile\.$/],
    [
      'a key that is none',
      { a: { ...google, serviceAccount: { ...serviceAccount, private_key: 'CANARY' } } },
      /private_key must be an RSA/,
    ],
    ['a region and an address', { a: { ...google, address: 'https://example.com' } }, /^\/a\/region must not be set together with address/],
    [
      'plain HTTP to another machine',
      { a: { ...google, region: undefined, address: 'http://example.com' } },
      /^\/a\/address must begin with https/,
    ],
    [
      'an address with a path',
      { a: { ...google, region: undefined, address: 'https://example.com/v1' } },
      /^\/a\/address must be a host without/,
    ],
    [
      'tokens in the clear',
      { a: { ...google, serviceAccount: { ...serviceAccount, token_uri: 'http://example.com' } } },
      /token_uri must begin/,
    ],
    ['a short webhook token', { a: { ...google, webhookToken: 'short' } }, /^\/a\/webhookToken must have at least 16/],
  ]
  for (const [what, carriers, expected] of cases) test(what, () => assert.match(problems(carriers), expected))

  test('all of it at once, a key file that is not there included', () => {
    const { serviceAccount: _, ...rest } = google
    const said = problems({
      a: { ...smpp, port: 0, window: 0 },
      b: { type: 'pigeon' },
      c: { ...rest, region: 'mars', serviceAccountFile: 'nowhere.json' },
    })
    assert.equal(said.split(';\n').length, 5, said)
  })
})
