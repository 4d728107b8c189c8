import pg from 'pg'
import { carrierFiles } from './carriers/settings.ts'
import type { Config } from './config.ts'
import type { Executor } from './db/pool.ts'
import { keyFilePath } from './encryption/key-file.ts'
import { OperatorError } from './errors.ts'
import { isReadableByOthers } from './files.ts'
import { isLoopback } from './loopback.ts'
import type { Role } from './roles.ts'

/** Facts that the settings do not contain. */
export type Facts = {
  roles: readonly Role[]
  isRoot: boolean
  /** NODE_TLS_REJECT_UNAUTHORIZED=0: Node accepts any certificate, from databases, carriers and webhook endpoints. */
  acceptsAnyCertificate: boolean
  /** Files of HERALD_CARRIERS that other users of the machine can read. */
  exposedCarrierFiles: string[]
  /** Whether other users can read the encryption keys. */
  isKeyFileExposed: boolean
}

type Rule = (config: Config, facts: Facts) => string | undefined | false

/** Every reason not to serve in production. Each sentence names the variable and what would be right. */
const RULES: Rule[] = [
  // A node that only posts events to callers needs no carriers, and none of their secrets.
  ({ carriersFile }, { roles }) =>
    carriersFile === undefined &&
    roles.some((role) => role !== 'webhooks') &&
    'HERALD_CARRIERS must name the file of your carriers: without it, messages go to a simulated network and reach no phone.',
  ({ databaseUrl, allowEmbedded }) =>
    databaseUrl === undefined &&
    !allowEmbedded &&
    'HERALD_DATABASE_URL must name a PostgreSQL server of your own; to use the embedded database, set HERALD_ALLOW_EMBEDDED=true.',
  ({ databaseUrl }) => databaseUrl !== undefined && databaseProblem(databaseUrl),
  ({ host, tls }) =>
    tls === undefined &&
    !isLoopback(host) &&
    'HERALD_TLS_CERT and HERALD_TLS_KEY must be set, or HERALD_HOST must be a loopback address such as 127.0.0.1: otherwise credentials cross the network unencrypted.',
  ({ webhookHosts }) =>
    webhookHosts === 'any' &&
    'HERALD_WEBHOOK_ALLOW_PRIVATE must be false: otherwise webhooks can reach this machine and its network, and use plain http.',
  (_config, { exposedCarrierFiles }) =>
    exposedCarrierFiles.length > 0 &&
    `HERALD_CARRIERS must name files that other users can't read. Run chmod 600 on ${exposedCarrierFiles.join(' and ')}.`,
  ({ databaseUrl, encryptionKeyFile }) =>
    databaseUrl !== undefined &&
    encryptionKeyFile === undefined &&
    'HERALD_ENCRYPTION_KEY_FILE must name a key file that you back up and that all nodes share. "npx herald encryption create-key" prints a line for it.',
  (config, { isKeyFileExposed }) =>
    isKeyFileExposed && `HERALD_ENCRYPTION_KEY_FILE must name a file that other users can't read. Run chmod 600 on ${keyFilePath(config)}.`,
  (_config, { acceptsAnyCertificate }) =>
    acceptsAnyCertificate && 'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: Node would accept any certificate from carriers and databases.',
  (_config, { isRoot }) =>
    isRoot && 'Herald must not run as root: start it as a user of its own, for example with User=herald in a unit file.',
]

export function productionProblems(config: Config, facts: Facts): string[] {
  return RULES.map((rule) => rule(config, facts)).filter((problem) => typeof problem === 'string')
}

/** Throws one OperatorError with every reason, before the start changes anything. Development has no such rules. */
export function checkProduction(config: Config, roles: readonly Role[]): void {
  if (config.environment !== 'production') return
  const problems = productionProblems(config, {
    roles,
    isRoot: process.getuid?.() === 0,
    acceptsAnyCertificate: process.env.NODE_TLS_REJECT_UNAUTHORIZED === '0',
    exposedCarrierFiles: config.carriersFile === undefined ? [] : carrierFiles(config.carriersFile).filter(isReadableByOthers),
    isKeyFileExposed: isReadableByOthers(keyFilePath(config)),
  })
  if (problems.length > 0) throw new OperatorError('HERALD_ENV=production refuses to start:', ...problems)
}

/**
 * Checks the TLS settings as the driver reads them, PGSSLMODE and similar variables included. The driver never falls back to plain text. It
 * verifies the certificate unless the mode is no-verify, or the address requests libpq's meaning of the weaker modes.
 */
function databaseProblem(databaseUrl: string): string | undefined {
  let client: pg.Client
  try {
    client = new pg.Client({ connectionString: databaseUrl })
  } catch {
    // The driver can't read the address, or its sslrootcert is missing: opening the database reports that.
    return undefined
  }
  const { host, ssl } = client as { host: string; ssl: boolean | { rejectUnauthorized?: boolean } }
  if (host.startsWith('/') || isLoopback(host)) return undefined
  const isVerified = typeof ssl === 'object' ? ssl.rejectUnauthorized !== false : ssl
  return isVerified
    ? undefined
    : 'HERALD_DATABASE_URL must use TLS and check the certificate of a server on another machine: add sslmode=verify-full, and sslrootcert=PATH for a certificate authority of your own.'
}

/**
 * Refuses a database whose demo account still has a valid key, for example after a trial: the file demo.json has that key. No lock is needed,
 * since a key that is created meanwhile is the operator's own.
 */
export async function refuseDemoAccount(db: Executor): Promise<void> {
  const { rows } = await db.query<{ id: number }>(
    `select id from accounts a
     where name = 'Demo'
       and exists (select from agent_assignments where account_id = a.id and agent_id = 'demo-single')
       and exists (select from integration_keys where account_id = a.id and revoked_at is null)
     order by id limit 1`,
  )
  const [demo] = rows
  if (demo === undefined) return
  throw new OperatorError(
    `HERALD_ENV=production refuses to start with the demo account: revoke the keys that "herald key list ${demo.id}" shows with "herald key revoke".`,
  )
}
