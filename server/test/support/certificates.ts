import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'

export type Kind = 'ec' | 'rsa'

const PREFIXES: Record<Kind, string> = { ec: '', rsa: 'rsa-' }

function sourceOf(kind: Kind, file: 'cert' | 'key'): string {
  return fileURLToPath(new URL(`tls/${PREFIXES[kind]}${file}.pem`, import.meta.url))
}

export function certificateOf(kind: Kind): Buffer {
  return readFileSync(sourceOf(kind, 'cert'))
}

/** A certificate and its key in a directory, the key readable for its owner only. `replace` replaces both. */
export function installCertificate(kind: Kind) {
  const dir = mkdtempSync(join(tmpdir(), 'herald-tls-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  const settings = { HERALD_TLS_CERT: join(dir, 'cert.pem'), HERALD_TLS_KEY: join(dir, 'key.pem') }
  function replace(next: Kind): void {
    copyFileSync(sourceOf(next, 'cert'), settings.HERALD_TLS_CERT)
    copyFileSync(sourceOf(next, 'key'), settings.HERALD_TLS_KEY)
    chmodSync(settings.HERALD_TLS_KEY, 0o600)
  }
  replace(kind)
  return { ...settings, settings, replace }
}

/** A TLS connection that trusts both test certificates. Fails if the handshake fails. */
export async function connectTls(url: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const { hostname, port } = new URL(url)
  const ca = [certificateOf('ec'), certificateOf('rsa')]
  return await new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), servername: 'localhost', ca, ...options })
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Which certificate a new connection gets. */
export async function presentedBy(url: string): Promise<Kind> {
  const socket = await connectTls(url)
  const { asn1Curve } = socket.getPeerCertificate()
  socket.destroy()
  return asn1Curve === undefined ? 'rsa' : 'ec'
}

/** Sends these bytes and returns everything that arrives until the server closes. */
export async function exchange(url: string, request: string): Promise<string> {
  const socket = await connectTls(url)
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString('utf8')
  })
  socket.on('error', () => {})
  const ended = new Promise<string>((resolve) => socket.once('close', () => resolve(received)))
  socket.write(request)
  return await ended
}
