import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext, type Server, type TlsOptions } from 'node:tls'
import type { Logger } from 'pino'
import { wrongUsage } from './errors.ts'
import { isReadableByOthers } from './files.ts'

type TlsFiles = { certFile: string; keyFile: string }
export type Tls = TlsFiles & { cert: Buffer; key: Buffer }

// Forward secrecy and authenticated encryption only. Node's default list adds static RSA and CBC suites to TLS 1.2.
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** Valid for one year, as is usual, and only for this host, since Herald does not know the other hosts of its domain. */
export const HSTS = { name: 'Strict-Transport-Security', value: 'max-age=31536000' }

/** Node's options for every TLS listener of the service, and for `setSecureContext`, which resets every option it is not given. */
export function tlsOptions({ cert, key }: Pick<Tls, 'cert' | 'key'>): TlsOptions {
  return { cert, key, minVersion: 'TLSv1.2', ciphers: CIPHERS.join(':'), honorCipherOrder: true }
}

/** Reads and checks both files. Throws an OperatorError that names every problem. */
export function readTls({ certFile, keyFile }: TlsFiles): Tls {
  const tls = { certFile, keyFile, cert: readPem('HERALD_TLS_CERT', certFile), key: readPem('HERALD_TLS_KEY', keyFile) }
  const problems: string[] = []
  if (isReadableByOthers(keyFile)) {
    problems.push(
      `HERALD_TLS_KEY must be a file that other users can't read: its mode is ${modeOf(keyFile)}. Run chmod 600 on it, or chmod 640 to share it with its group.`,
    )
  }
  if (!isPair(tls)) problems.push('HERALD_TLS_CERT and HERALD_TLS_KEY must be a certificate and its private key, both in PEM.')
  if (problems.length > 0) throw wrongUsage(...problems)
  return tls
}

/** Uses the current certificate of the files for new connections. Open connections keep theirs. Invalid files change nothing. */
export function reloadCertificate(files: TlsFiles, listeners: readonly Server[], logger: Logger): void {
  try {
    const options = tlsOptions(readTls(files))
    for (const listener of listeners) listener.setSecureContext(options)
    logger.info('TLS certificate reloaded')
  } catch (error) {
    logger.error({ reason: (error as Error).message }, 'failed to reload the TLS certificate; the previous one stays in use')
  }
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    throw wrongUsage(`${name} must be the path of a file that can be read.`)
  }
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8).padStart(4, '0')
}

function isPair({ cert, key }: Tls): boolean {
  try {
    createSecureContext(tlsOptions({ cert, key }))
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
