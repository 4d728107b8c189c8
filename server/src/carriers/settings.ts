import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Static, Type } from 'typebox'
import { HOST_EXPECTED, isHost } from '../config.ts'
import { type OperatorError, type Violation, wrongUsage } from '../errors.ts'
import { createSchemaCompiler } from '../validation.ts'
import type { GoogleRbmSettings } from './google-rbm/settings.ts'
import { isObject } from './json.ts'
import type { SmppSettings } from './smpp/settings.ts'

export type CarrierSettings = { rcs: GoogleRbmSettings[]; sms: SmppSettings | undefined }

// The file named by HERALD_CARRIERS: a JSON object of carriers by name. Agents refer to these names.

const REGIONS = ['us', 'europe', 'asia'] as const
const GOOGLE = 'rcsbusinessmessaging.googleapis.com'

// As downloaded from Google's console. The file has more fields; they are ignored.
const ServiceAccountKey = Type.Object({
  client_email: Type.String({ minLength: 1 }),
  private_key: Type.String({ rules: privateKeyRules }),
  private_key_id: Type.Optional(Type.String()),
  token_uri: Type.String({ rules: addressRules }),
})

const GoogleRbm = Type.Object(
  {
    type: Type.Literal('google-rbm'),
    region: Type.Optional(Type.Enum(REGIONS)),
    address: Type.Optional(Type.String({ rules: hostRules })),
    // Set by the simulator, in the file that it writes.
    simulator: Type.Optional(Type.Boolean()),
    serviceAccount: Type.Optional(ServiceAccountKey),
    serviceAccountFile: Type.Optional(Type.String({ minLength: 1 })),
    // The secret that signs the events; Google accepts any text.
    webhookToken: Type.String({ minLength: 16, maxLength: 1000 }),
    connections: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    messagesPerSecond: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    messagesPerSecondPerAgent: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  },
  { additionalProperties: false, rules: googleRules },
)

const Smpp = Type.Object(
  {
    type: Type.Literal('smpp'),
    host: Type.String({ rules: smppHostRules }),
    port: Type.Integer({ minimum: 1, maximum: 65535 }),
    tls: Type.Optional(Type.Boolean()),
    // The SMPP specification allows 15 and 8 characters, but some networks issue longer ones.
    systemId: Type.String({ minLength: 1, maxLength: 64, pattern: '^[ -~]*$', description: 'printable ASCII' }),
    password: Type.String({ maxLength: 64, pattern: '^[ -~]*$', description: 'printable ASCII' }),
    systemType: Type.Optional(Type.String({ maxLength: 12, pattern: '^[ -~]*$', description: 'printable ASCII' })),
    window: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    enquireLinkSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 })),
    messagesPerSecond: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  },
  { additionalProperties: false },
)

const compile = createSchemaCompiler([])
const checks = new Map<unknown, ReturnType<typeof compile>>([
  ['google-rbm', compile(GoogleRbm)],
  ['smpp', compile(Smpp)],
])
const checkServiceAccount = compile(ServiceAccountKey)

const DEFAULT_CONNECTIONS = 128

/** Reads the carriers file. Throws one OperatorError that lists all problems. */
export function readCarriers(path: string): CarrierSettings {
  const file = readJson(path)
  if (!isObject(file)) throw carriersError(path, [typeof file === 'string' ? file : 'must be a JSON object of carriers by name'])
  const entries = Object.entries(file)
  const smpp = entries.filter(([, entry]) => isObject(entry) && entry.type === 'smpp')
  const problems = entries.flatMap(([name, entry]) => problemsOf(path, name, entry))
  if (smpp.length > 1) problems.push(`has ${smpp.length} carriers of type smpp; at most one is allowed`)
  if (entries.length === 0) problems.push('names no carrier')
  if (problems.length > 0) throw carriersError(path, problems)
  return {
    rcs: entries
      .filter(([, entry]) => (entry as { type: string }).type === 'google-rbm')
      .map(([name, entry]) => googleSettings(path, name, entry as Static<typeof GoogleRbm>)),
    sms: smpp.map(([name, entry]) => ({ name, tls: false, ...(entry as Static<typeof Smpp>) }))[0],
  }
}

/** Returns the files that hold the carriers' secrets: this file and the key files that it names. `readCarriers` checks their content. */
export function carrierFiles(path: string): string[] {
  const file = readJson(path)
  const entries = isObject(file) ? Object.values(file) : []
  const keyFiles = entries
    .map((entry) => (isObject(entry) ? entry.serviceAccountFile : undefined))
    .filter((name) => typeof name === 'string')
  return [path, ...keyFiles.map((name) => resolve(dirname(path), name))]
}

function problemsOf(path: string, name: string, entry: unknown): string[] {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    return [`has a carrier named ${JSON.stringify(name.slice(0, 80))}; names are 1 to 64 letters, digits, ".", "_" or "-"`]
  }
  const check = isObject(entry) ? checks.get(entry.type) : undefined
  if (!isObject(entry) || check === undefined) return [`/${name}/type must be google-rbm or smpp`]
  return [
    ...check(entry).map((violation) => describeProblem(`/${name}`, violation)),
    ...keyFileProblems(path, name, entry.serviceAccountFile),
  ]
}

function describeProblem(place: string, { path, reason }: Violation): string {
  return `${place}${path} ${reason}`
}

function keyFileProblems(path: string, name: string, keyFile: unknown): string[] {
  if (typeof keyFile !== 'string') return []
  const key = readJson(resolve(dirname(path), keyFile))
  if (typeof key === 'string') return [`/${name}/serviceAccountFile ${key}`]
  return checkServiceAccount(key).map((violation) => describeProblem(`/${name}/serviceAccountFile:`, violation))
}

function googleSettings(path: string, name: string, entry: Static<typeof GoogleRbm>): GoogleRbmSettings {
  const { region, address, serviceAccount, serviceAccountFile, webhookToken, connections = DEFAULT_CONNECTIONS } = entry
  return {
    name,
    address: address ?? `https://${region === undefined ? '' : `${region}-`}${GOOGLE}`,
    serviceAccount: serviceAccount ?? (readJson(resolve(dirname(path), serviceAccountFile as string)) as Static<typeof ServiceAccountKey>),
    webhookToken,
    isSimulator: entry.simulator ?? false,
    connections,
    messagesPerSecond: entry.messagesPerSecond,
    messagesPerSecondPerAgent: entry.messagesPerSecondPerAgent,
  }
}

/**
 * Returns the parsed file, or a string that says what is wrong with it. Removes the byte order mark that Windows editors write, which
 * JSON.parse rejects.
 */
function readJson(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, 'utf8').replace(/^\ufeff/, '')
  } catch {
    return 'must be a readable file'
  }
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? 'must be a JSON object' : value
  } catch (error) {
    // The error message quotes the file, which holds secrets; keep only the position.
    const position = /at position (\d+)/.exec((error as Error).message)?.[1]
    return `is not valid JSON${position === undefined ? '' : `: it breaks at character ${Number(position) + 1}`}`
  }
}

function carriersError(path: string, problems: string[]): OperatorError {
  const lines = problems.map((problem, index) => `${index === 0 ? `HERALD_CARRIERS: ${path} ` : '  '}${problem}`)
  const last = lines.pop() ?? ''
  return wrongUsage(...lines.map((line) => `${line};`), last.endsWith('?') ? last : `${last}.`)
}

function googleRules({ region, address, serviceAccount, serviceAccountFile }: Record<string, unknown>): Violation[] {
  return [
    ...(region !== undefined && address !== undefined ? [{ path: '/region', reason: 'must not be set together with address' }] : []),
    ...((serviceAccount === undefined) === (serviceAccountFile === undefined)
      ? [{ path: '', reason: 'must have exactly one of serviceAccount and serviceAccountFile' }]
      : []),
  ]
}

function smppHostRules(text: string): Violation[] {
  return isHost(text) ? [] : [{ path: '', reason: `must be ${HOST_EXPECTED}` }]
}

function privateKeyRules(pem: string): Violation[] {
  try {
    if (createPrivateKey(pem).asymmetricKeyType === 'rsa') return []
  } catch {
    // Not a key at all; reported below.
  }
  return [{ path: '', reason: 'must be an RSA private key in PEM' }]
}

/** Allows plain HTTP only to the same machine: tokens and messages are never sent unencrypted over a network. */
function addressRules(text: string): Violation[] {
  const url = URL.parse(text)
  const isLocal = url?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
  return url?.protocol === 'https:' || isLocal ? [] : [{ path: '', reason: 'must begin with https:// (http:// only for this machine)' }]
}

function hostRules(text: string): Violation[] {
  const url = URL.parse(text)
  const isBare = url !== null && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === ''
  return isBare
    ? addressRules(text)
    : [{ path: '', reason: 'must be a host without a path, such as https://rcsbusinessmessaging.googleapis.com' }]
}
