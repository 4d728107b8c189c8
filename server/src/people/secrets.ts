import { hash, randomBytes } from 'node:crypto'

/** 256 random bits: nobody can find them by trying, so a plain hash is safe. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

export function hashOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}
