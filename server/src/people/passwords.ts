import { argon2, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import type { Violation } from '../errors.ts'
import { unavailable } from '../http/error-responses.ts'
import { lengthOf } from '../text-length.ts'

const MIN_LENGTH = 12
/** A longer password adds no strength. */
export const MAX_LENGTH = 256

// The parameters that OWASP recommends for argon2id: 19 MiB, two passes, one lane. A hash takes 42 ms of CPU on an ARM server.
const PARAMETERS = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 }
const SALT_BYTES = 16

const derive = promisify(argon2)

type Parameters = typeof PARAMETERS

/** A hash needs 19 MiB and one of Node's four threads. More at once would delay everything else that needs a thread. */
const MAX_AT_ONCE = 2
const MAX_WAITING = 50
let running = 0
const waiting: (() => void)[] = []

async function hashWith(password: string, salt: Buffer, parameters: Parameters): Promise<Buffer> {
  if (waiting.length >= MAX_WAITING) throw unavailable('Too many passwords are being checked; try again later.')
  if (running >= MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
  else running += 1
  try {
    // The same text has several encodings in Unicode, and keyboards differ in which they send.
    return await derive('argon2id', { message: password.normalize('NFC'), nonce: salt, ...parameters })
  } finally {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }
}

/** Returns the hash in the PHC format, which has its parameters: they can change later, and old hashes still work. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  return encode(salt, await hashWith(password, salt, PARAMETERS))
}

function encode(salt: Buffer, hash: Buffer): string {
  const { memory, passes, parallelism } = PARAMETERS
  const [encodedSalt, encodedHash] = [salt, hash].map((bytes) => bytes.toString('base64').replace(/=+$/, ''))
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encodedSalt}$${encodedHash}`
}

const PHC = /^\$argon2id\$v=19\$m=(?<memory>\d+),t=(?<passes>\d+),p=(?<parallelism>\d+)\$(?<salt>[^$]+)\$(?<hash>[^$]+)$/

const DECOY_KEY = randomBytes(32)

/**
 * A hash that no known password has, for a name without one. Each name has its own salt, as stored hashes do: which memory argon2id accesses
 * depends on the salt, so one salt for all these names could tell them apart by time.
 */
function decoyFor(name: string): string {
  const salt = createHmac('sha256', DECOY_KEY).update(name).digest().subarray(0, SALT_BYTES)
  return encode(salt, Buffer.alloc(PARAMETERS.tagLength))
}

/** Whether the password of a name is right. The check takes as long without a stored hash, so that its time does not show which names exist. */
export async function isPassword(name: string, password: string, stored: string | null | undefined): Promise<boolean> {
  // Computed for every name, since this takes time too.
  const decoy = decoyFor(name)
  const { memory, passes, parallelism, salt = '', hash = '' } = PHC.exec(stored ?? decoy)?.groups ?? {}
  const expected = Buffer.from(hash, 'base64')
  const parameters = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism), tagLength: expected.length }
  return timingSafeEqual(await hashWith(password, Buffer.from(salt, 'base64'), parameters), expected)
}

/** What is wrong with a new password. The only rule is its length: others make people choose worse ones. */
export function passwordViolations(password: string): Violation[] {
  const length = lengthOf(password)
  if (length >= MIN_LENGTH && length <= MAX_LENGTH) return []
  return [{ path: '/password', reason: `must have ${MIN_LENGTH} to ${MAX_LENGTH} characters` }]
}
