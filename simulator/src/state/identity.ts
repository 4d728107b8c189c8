import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from '../options.ts'
import type { Store } from './store.ts'

/** The credentials of callers. They are created once and then stay the same, so that a configured Herald keeps working. */
export type Identity = {
  clientEmail: string
  privateKeyId: string
  privateKey: string
  publicKey: KeyObject
  /** The key of webhook signatures. */
  webhookToken: string
  systemId: string
  smppPassword: string
}

type Secrets = Pick<Identity, 'privateKeyId' | 'privateKey' | 'webhookToken' | 'smppPassword'>

export function loadIdentity(store: Store): Identity {
  const saved = store.state.settings.get('secrets')
  const secrets: Secrets = saved === undefined ? makeSecrets() : JSON.parse(saved)
  if (saved === undefined) store.append({ is: 'setting', name: 'secrets', value: JSON.stringify(secrets) })
  return { ...secrets, publicKey: createPublicKey(secrets.privateKey), clientEmail: 'herald@simulator.invalid', systemId: 'simulator' }
}

function makeSecrets(): Secrets {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  return {
    privateKeyId: randomBytes(20).toString('hex'),
    privateKey,
    webhookToken: randomUUID(),
    // SMPP has room for 8 characters.
    smppPassword: randomBytes(6).toString('base64url'),
  }
}

/** Writes the file for HERALD_CARRIERS. Readers see the old file or the new one, never half of one. */
export function writeCarriersFile(dataDir: string, identity: Identity, at: { url: string; smppHost: string; smppPort: number }): string {
  const path = join(dataDir, 'carriers.json')
  const carriers = {
    simulator: {
      type: 'google-rbm',
      simulator: true,
      address: at.url,
      webhookToken: identity.webhookToken,
      serviceAccount: {
        type: 'service_account',
        project_id: 'simulator',
        private_key_id: identity.privateKeyId,
        private_key: identity.privateKey,
        client_email: identity.clientEmail,
        token_uri: `${at.url}/token`,
      },
    },
    'simulator-sms': { type: 'smpp', host: at.smppHost, port: at.smppPort, systemId: identity.systemId, password: identity.smppPassword },
  }
  try {
    replaceFile(path, `${JSON.stringify(carriers, null, 2)}\n`)
  } catch (error) {
    throw new StartError(`The simulator can't write ${path}: ${(error as Error).message}.`)
  }
  return path
}

function replaceFile(path: string, text: string): void {
  const file = openSync(`${path}.new`, 'w', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.new`, path)
}
