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
const global = { type: 'google-rbm', serviceAccount, webhookToken: 'a-token-of-16-characters' }
const google = { ...global, region: 'europe' }
const { serviceAccount: _, ...keyless } = google
const smpp = { type: 'smpp', host: 'smsc.example.com', port: 2775, systemId: 'herald', password: 'secret' }

function read(carriers: unknown) {
  writeFileSync(path, typeof carriers === 'string' ? carriers : JSON.stringify(carriers))
  return readCarriers(path)
}

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
  test('sets an RBM carrier of a region, and an SMPP carrier', () => {
    const rates = { messagesPerSecond: 100, messagesPerSecondPerAgent: 20 }
    const address = 'https://europe-rcsbusinessmessaging.googleapis.com'
    const { webhookToken } = google
    assert.deepEqual(read({ google: { ...google, ...rates }, smsc: { ...smpp, window: 20, tls: true } }), {
      rcs: [{ name: 'google', address, serviceAccount, webhookToken, isSimulator: false, connections: 128, ...rates }],
      sms: { name: 'smsc', ...smpp, window: 20, tls: true },
    })
  })

  test('sets an address instead of a region, and the global one without either', () => {
    const [first, second] = read({ one: global, two: { ...global, address: 'http://127.0.0.1:8090', connections: 5 } }).rcs
    assert.equal(first?.address, 'https://rcsbusinessmessaging.googleapis.com')
    assert.deepEqual([second?.address, second?.connections], ['http://127.0.0.1:8090', 5])
  })

  test('may begin with a byte order mark', () => {
    assert.equal(read(`\ufeff${JSON.stringify({ smsc: smpp })}`).sms?.name, 'smsc')
  })

  test('may name the key file from Google, relative to itself', () => {
    writeFileSync(join(dir, 'key.json'), JSON.stringify(serviceAccount))
    const withKeyFile = (serviceAccountFile: string) => ({ google: { ...keyless, serviceAccountFile } })
    assert.deepEqual(read(withKeyFile('key.json')).rcs[0]?.serviceAccount, serviceAccount)
    assert.equal(problems(withKeyFile('nowhere.json')), '/google/serviceAccountFile must be a readable file.')
    writeFileSync(join(dir, 'key.json'), '{}')
    assert.match(problems(withKeyFile('key.json')), /^\/google\/serviceAccountFile:\/client_email is required/)
  })
})

describe('a carriers’ file is rejected with the setting and the reason for', () => {
  const withKey = (changes: object) => ({ a: { ...google, serviceAccount: { ...serviceAccount, ...changes } } })
  const withAddress = (address: string) => ({ a: { ...global, address } })
  const cases: [string, unknown, RegExp][] = [
    ['invalid JSON', '{"a": {"password": "CANARY",}}', /^is not valid JSON: it breaks at character 29\.$/],
    ['an empty file', '', /^is not valid JSON\.$/],
    ['a list', [], /^must be a JSON object of carriers by name\.$/],
    ['a text', '"carriers"', /^must be a JSON object\.$/],
    ['a URL as the host', { a: { ...smpp, host: 'smpp://smsc.example.com' } }, /^\/a\/host must be a host name or an address/],
    ['no carrier', {}, /^names no carrier\.$/],
    ['an unknown type', { a: { type: 'pigeon' } }, /^\/a\/type must be google-rbm or smpp\.$/],
    ['a name that a URL cannot hold', { 'a b': smpp }, /^has a carrier named "a b"; names are/],
    ['a misspelt field', { a: { ...smpp, pasword: 'CANARY' } }, /^\/a\/pasword is not a field of type smpp; is it misspelt\?$/],
    ['two SMPP carriers', { a: smpp, b: smpp }, /^has 2 carriers of type smpp; at most one is allowed\.$/],
    ['a password that SMPP cannot hold', { a: { ...smpp, password: 'CANARY-ä' } }, /^\/a\/password must be printable ASCII/],
    ['port 0', { a: { ...smpp, port: 0 } }, /^\/a\/port /],
    ['no key', { a: keyless }, /^\/a must have exactly one of serviceAccount and serviceAccountFile\.$/],
    ['an invalid key', withKey({ private_key: 'CANARY' }), /private_key must be an RSA/],
    ['a token address with plain HTTP', withKey({ token_uri: 'http://example.com' }), /token_uri must begin/],
    ['a region and an address', { a: { ...google, address: 'https://example.com' } }, /^\/a\/region must not be set together with address/],
    ['plain HTTP to another machine', withAddress('http://example.com'), /^\/a\/address must begin with https/],
    ['an address with a path', withAddress('https://example.com/v1'), /^\/a\/address must be a host without/],
    ['a short webhook token', { a: { ...google, webhookToken: 'short' } }, /^\/a\/webhookToken must have at least 16/],
  ]
  for (const [what, carriers, expected] of cases) test(what, () => assert.match(problems(carriers), expected))

  test('all mistakes at once, a missing key file included', () => {
    const said = problems({
      a: { ...smpp, port: 0, window: 0 },
      b: { type: 'pigeon' },
      c: { ...keyless, region: 'mars', serviceAccountFile: 'nowhere.json' },
    })
    assert.equal(said.split(';\n').length, 5, said)
  })
})
