import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'
import { BadKeyFile, parseKeys } from './encryption/key-file.ts'
import { OperatorError, wrongUsage } from './errors.ts'
import { isSafeOrigin, type OidcSettings, oidcProblems, parseRoleRules, type RoleRule } from './oidc-settings.ts'
import type { WebhookHosts } from './public-host.ts'
import { readTls, type Tls } from './tls.ts'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export const ENVIRONMENTS = ['development', 'production'] as const

export type Config = {
  /** `production` refuses to start with the settings that production.ts lists. */
  environment: (typeof ENVIRONMENTS)[number]
  host: string
  port: number
  /** Undefined: Herald starts an embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | undefined
  dataDir: string
  /** Whether production may use the embedded database. */
  allowEmbedded: boolean
  /** Undefined: the default file of `encryption/key-file.ts`. */
  encryptionKeyFile: string | undefined
  limits: { store: 'memory' | 'database'; messagesPerSecond: number; eventsPerSecond: number; othersPerMinute: number }
  tls: Tls | undefined
  /** Addresses and networks whose X-Forwarded-For is trusted. */
  trustProxy: string[]
  /** The address of /metrics. Port undefined: the default port, or a free one if that is in use. */
  metrics: { host: string; port: number | undefined }
  publicUrl: string | undefined
  /** Undefined: people sign in with passwords only. */
  oidc: OidcSettings | undefined
  /** Undefined: carriers' webhooks are served on the port of the API. */
  carrierWebhookPort: number | undefined
  carriersFile: string | undefined
  /** How many whole months of messages to keep. Undefined: all. */
  retentionMonths: number | undefined
  simulatorDelayMs: number
  /** Undefined: 8081, or a free port if that is in use. */
  simulatorPort: number | undefined
  /** With the simulated network, webhooks may go to this machine itself. */
  webhookHosts: WebhookHosts
  logLevel: (typeof LOG_LEVELS)[number]
  /** HERALD_ variables that are not settings. They are no error: Kubernetes sets HERALD_SERVICE_HOST and similar ones in every container. */
  unknownVariables: string[]
}

type Environment = Record<string, string | undefined>
type Parser<T> = (value: string) => T

/** Thrown by a parser. The message says what the value must be. */
class Expected extends Error {}

const text: Parser<string> = (value) => value

function integer(min: number, max: number): Parser<number> {
  return (value) => {
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= min && number <= max)) throw new Expected(`a whole number from ${min} to ${max}`)
    return number
  }
}

function oneOf<const T extends string>(...values: readonly T[]): Parser<T> {
  return (value) => {
    const found = values.find((known) => known === value)
    if (found === undefined) throw new Expected(`one of ${values.join(', ')}`)
    return found
  }
}

const boolean: Parser<boolean> = (value) => oneOf('true', 'false')(value) === 'true'

export const HOST_EXPECTED = 'a host name or an address, without a port'

/** A value of digits and dots must be a valid IP address. */
export function isHost(value: string): boolean {
  return isIP(value) !== 0 || /^(?![0-9.]+$)[A-Za-z0-9._-]{1,253}$/.test(value)
}

const host: Parser<string> = (value) => {
  if (!isHost(value)) throw new Expected(HOST_EXPECTED)
  return value
}

function url(...protocols: string[]): Parser<string> {
  return (value) => {
    if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol)) {
      throw new Expected(`an address that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`)
    }
    return value
  }
}

/** A base URL: a host and an optional path. The result is ASCII, since it goes into SMS. */
const publicAddress: Parser<string> = (value) => {
  const parsed = URL.parse(value)
  const isBare = parsed !== null && parsed.search === '' && parsed.hash === '' && parsed.username === '' && parsed.password === ''
  if (!isBare || !/^https?:$/.test(parsed.protocol) || /[?#]/.test(value)) {
    throw new Expected('an address such as https://go.example.com, with no query, fragment or credentials')
  }
  return parsed.href.replace(/\/+$/, '')
}

/** The content is checked where it is used. */
const filePath: Parser<string> = (value) => {
  try {
    readFileSync(value)
  } catch {
    throw new Expected('the path of a file that can be read')
  }
  return resolve(value)
}

/** The file is checked here, so that a wrong line is reported with all other mistakes. The keys are read where they are used. */
const keysFile: Parser<string> = (value) => {
  try {
    parseKeys(readFileSync(filePath(value), 'utf8'))
    return resolve(value)
  } catch (error) {
    throw error instanceof BadKeyFile ? new Expected(`the path of a key file, and ${error.message}`) : error
  }
}

const issuer: Parser<string> = (value) => {
  const parsed = URL.parse(value)
  if (parsed === null || !isSafeOrigin(value) || parsed.search !== '' || parsed.hash !== '' || parsed.username !== '') {
    throw new Expected('an address such as https://login.example.com/realms/main, with no query or fragment; http:// only on this machine')
  }
  return value
}

/** The text of a file, without the line break at its end. */
const secretFile: Parser<{ path: string; secret: string }> = (value) => {
  const path = filePath(value)
  const secret = readFileSync(path, 'utf8').trim()
  if (secret === '') throw new Expected('the path of a file that has the secret')
  return { path, secret }
}

const scopes: Parser<string> = (value) => {
  const list = value.trim().split(/\s+/)
  if (!list.includes('openid')) throw new Expected('scopes separated by spaces, with openid among them, such as openid email profile')
  return list.join(' ')
}

const roleRules: Parser<RoleRule[]> = (value) => {
  const rules = parseRoleRules(value)
  if (rules !== undefined) return rules
  throw new Expected(
    'values of the claim with their roles, separated by commas, such as herald-operators=operator,shop-admins=admin:1,shop-readers=viewer:1 (1 is the id of an account)',
  )
}

const networks: Parser<string[]> = (value) => {
  const list = value.split(',').map((network) => network.trim())
  for (const network of list) {
    const [address = '', prefix] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    try {
      // Not /0, which would trust every client.
      if (prefix !== undefined && !/^[1-9]\d{0,2}$/.test(prefix)) throw new Error('not a prefix length')
      new BlockList().addSubnet(address, prefix === undefined ? 32 : Number(prefix), family)
    } catch {
      throw new Expected('addresses or networks separated by commas, such as 10.0.0.0/8,192.168.1.7')
    }
  }
  return list
}

/** A variable, the value that Herald uses, and whether the variable is set. The password of the database is masked. */
export type Setting = { name: string; value: string | null; isSet: boolean }

/** Reads and checks every setting. Throws one OperatorError that names every wrong variable, so that a start shows all mistakes at once. */
export function loadConfig(env: Environment): Config {
  return readSettings(env).config
}

/** The same, with a list of the settings. */
export function readSettings(env: Environment): { config: Config; settings: Setting[] } {
  const problems: string[] = []
  const settings: Setting[] = []

  function read<T, D>(name: string, parse: Parser<T>, fallback: D): T | D {
    const value = env[name]
    const isSet = value !== undefined && value !== ''
    settings.push({ name, value: isSet ? masked(name, value) : shown(fallback), isSet })
    if (!isSet) return fallback
    try {
      return parse(value)
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      problems.push(`${name} must be ${error.message}.`)
      return fallback
    }
  }

  const databaseUrl = read('HERALD_DATABASE_URL', url('postgres:', 'postgresql:'), undefined)
  const certFile = read('HERALD_TLS_CERT', filePath, undefined)
  const keyFile = read('HERALD_TLS_KEY', filePath, undefined)
  const carriersFile = read('HERALD_CARRIERS', filePath, undefined)
  const config: Config = {
    environment: read('HERALD_ENV', oneOf(...ENVIRONMENTS), 'development'),
    host: read('HERALD_HOST', host, '127.0.0.1'),
    port: read('HERALD_PORT', integer(0, 65535), 8080),
    databaseUrl,
    dataDir: resolve(read('HERALD_DATA_DIR', text, './data')),
    allowEmbedded: read('HERALD_ALLOW_EMBEDDED', boolean, false),
    encryptionKeyFile: read('HERALD_ENCRYPTION_KEY_FILE', keysFile, undefined),
    limits: {
      store: read('HERALD_LIMITS', oneOf('memory', 'database'), databaseUrl === undefined ? 'memory' : 'database'),
      messagesPerSecond: read('HERALD_LIMIT_MESSAGES_PER_SECOND', integer(1, 1_000_000), 35),
      eventsPerSecond: read('HERALD_LIMIT_EVENTS_PER_SECOND', integer(1, 1_000_000), 5),
      othersPerMinute: read('HERALD_LIMIT_OTHERS_PER_MINUTE', integer(1, 1_000_000), 30),
    },
    tls: loadTls(certFile, keyFile, problems),
    trustProxy: read('HERALD_TRUST_PROXY', networks, []),
    metrics: {
      host: read('HERALD_METRICS_HOST', host, '127.0.0.1'),
      port: read('HERALD_METRICS_PORT', integer(0, 65535), undefined),
    },
    publicUrl: read('HERALD_PUBLIC_URL', publicAddress, undefined),
    oidc: undefined,
    carrierWebhookPort: read('HERALD_CARRIER_WEBHOOK_PORT', integer(0, 65535), undefined),
    carriersFile,
    retentionMonths: read('HERALD_RETENTION_MONTHS', integer(1, 1_200), undefined),
    simulatorPort: read('HERALD_SIMULATOR_PORT', integer(0, 65_535), undefined),
    simulatorDelayMs: read('HERALD_SIMULATOR_DELAY_MS', integer(0, 3_600_000), 500),
    webhookHosts: webhookHosts(read('HERALD_WEBHOOK_ALLOW_PRIVATE', boolean, undefined), carriersFile),
    logLevel: read('HERALD_LOG_LEVEL', oneOf(...LOG_LEVELS), 'info'),
    unknownVariables: [],
  }
  config.oidc = loadOidc(read, config, problems)
  config.unknownVariables = unknownVariables(env, settings)
  if (env.HERALD_METRICS_ADDRESS) {
    problems.push('HERALD_METRICS_ADDRESS is no longer a setting: set HERALD_METRICS_HOST and HERALD_METRICS_PORT instead.')
  }
  if (problems.length > 0) throw wrongUsage(...problems)
  return { config, settings }
}

function unknownVariables(env: Environment, settings: Setting[]): string[] {
  return Object.keys(env).filter((name) => name.startsWith('HERALD_') && !settings.some((setting) => setting.name === name))
}

function shown(value: unknown): string | null {
  return value === undefined || (Array.isArray(value) && value.length === 0) ? null : String(value)
}

/** Every secret but these two is in a file. PostgreSQL also takes a password as a parameter. */
function masked(name: string, value: string): string {
  if (name === 'HERALD_OIDC_CLIENT_SECRET') return '***'
  if (!/^postgres(ql)?:/i.test(value) || !URL.canParse(value)) return value
  const url = new URL(value)
  if (url.password !== '') url.password = '***'
  for (const name of url.searchParams.keys()) if (/password/i.test(name)) url.searchParams.set(name, '***')
  return url.href
}

type Read = <T, D>(name: string, parse: Parser<T>, fallback: D) => T | D

function loadOidc(read: Read, config: Config, problems: string[]): OidcSettings | undefined {
  const file = read('HERALD_OIDC_CLIENT_SECRET_FILE', secretFile, undefined)
  const given = {
    issuer: read('HERALD_OIDC_ISSUER', issuer, undefined),
    clientId: read('HERALD_OIDC_CLIENT_ID', text, undefined),
    clientSecret: read('HERALD_OIDC_CLIENT_SECRET', text, undefined),
    clientSecretFile: file?.path,
    scopes: read('HERALD_OIDC_SCOPES', scopes, 'openid email profile'),
    rolesClaim: read('HERALD_OIDC_ROLES_CLAIM', text, 'groups'),
    roles: read('HERALD_OIDC_ROLES', roleRules, undefined),
  }
  // A variable that could not be read would be reported as missing, too.
  if (problems.length === 0) problems.push(...oidcProblems(given, config))
  return given.issuer === undefined ? undefined : ({ ...given, clientSecret: given.clientSecret ?? file?.secret } as OidcSettings)
}

function webhookHosts(allowPrivate: boolean | undefined, carriersFile: string | undefined): WebhookHosts {
  if (allowPrivate) return 'any'
  return allowPrivate === undefined && carriersFile === undefined ? 'loopback' : 'public'
}

function loadTls(certFile: string | undefined, keyFile: string | undefined, problems: string[]): Tls | undefined {
  if (certFile !== undefined && keyFile !== undefined) {
    try {
      return readTls({ certFile, keyFile })
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      problems.push(...error.lines)
    }
  } else if (certFile !== keyFile && problems.length === 0) {
    problems.push('HERALD_TLS_CERT and HERALD_TLS_KEY must be given together.')
  }
  return undefined
}
