import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Pool, transaction } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { unavailable } from '../http/error-responses.ts'
import { isPassword } from './passwords.ts'
import { normalizedEmail } from './people.ts'

const MAX_TRIES = 10
const WINDOW_MINUTES = 15
const WINDOW = `interval '${WINDOW_MINUTES} minutes'`
/** The attempts that count: wrong ones and, for 30 s, unfinished ones. A process that was killed never finishes its attempts. */
const COUNTS = `(has_failed and tried_at >= now() - ${WINDOW} or tried_at >= now() - interval '30 seconds')`
/**
 * A check that takes longer is refused: after 30 s, its attempt no longer counts, so the limit could be exceeded. The other 10 s are for the
 * statement that stores the result.
 */
const IN_TIME = `tried_at >= now() - interval '20 seconds'`

/** The delay before an attempt, by the recent attempts for the same name. It is short, so that others cannot lock a person out. */
const DELAYS_MS = [0, 0, 0, 250, 500, 1_000, 2_000]
const LONGEST_DELAY_MS = 4_000

const delayAfter = (failures: number) => DELAYS_MS[failures] ?? LONGEST_DELAY_MS

type Checked = { personId: number; passwordHash: string }

/**
 * Checks an e-mail address and a password, and returns the person's id and hash. An attempt is recorded before the check, so that concurrent
 * attempts count too, and deleted if the password was right, or if the check ended with an error. A wrong attempt takes the same time whether the name exists or not.
 */
export async function checkPassword(pool: Pool, email: string, password: string, address: string): Promise<Checked> {
  const name = normalizedEmail(email)
  const nameHash = createHash('sha256').update(name).digest()
  const { tryId, failures } = await noteTry(pool, address, nameHash)
  let checked: Checked | undefined
  try {
    await sleep(delayAfter(failures))
    checked = await findByPassword(pool, name, password)
    const { rowCount } = await pool.query(checked === undefined ? NOTE_WRONG : NOTE_RIGHT, [tryId])
    if (rowCount === 0) throw unavailable('The check of the password took too long; try again.')
  } catch (error) {
    // The caller learns nothing about the password. If the database is out of reach, the attempt counts for 30 s.
    await pool.query('delete from sign_in_tries where id = $1', [tryId]).catch(() => undefined)
    throw error
  }
  if (checked === undefined) throw wrongPassword()
  return checked
}

async function findByPassword(pool: Pool, name: string, password: string): Promise<Checked | undefined> {
  const { rows } = await pool.query<{ id: number; hash: string | null }>(
    'select id, password_hash as hash from people where email = $1 and disabled_at is null',
    [name],
  )
  const [person] = rows
  const isRight = await isPassword(name, password, person?.hash)
  return isRight && person !== undefined ? { personId: person.id, passwordHash: person.hash as string } : undefined
}

const NOTE_WRONG = `update sign_in_tries set has_failed = true where id = $1 and ${IN_TIME}`

// A right password proves that the earlier failures were the person's own.
const NOTE_RIGHT = `
  delete from sign_in_tries t using (select * from sign_in_tries where id = $1 and ${IN_TIME}) as own
  where t.id = own.id or t.has_failed and t.name_hash = own.name_hash and t.address = own.address`

function wrongPassword(): ApiError {
  return new ApiError('RCS_UNAUTHORIZED', { details: [{ path: '', reason: 'The e-mail address or the password is wrong.' }] })
}

type Noted = { tryId: number | null; failures: number; retryAfter: number }

/** Counts and adds under a lock for the address: of twenty concurrent attempts, ten pass. */
async function noteTry(pool: Pool, address: string, nameHash: Buffer): Promise<{ tryId: number; failures: number }> {
  const { tryId, failures, retryAfter } = await transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`sign-in ${address}`])
    return (await tx.query<Noted>(NOTE_TRY, [address, nameHash])).rows[0] as Noted
  })
  if (tryId !== null) return { tryId, failures }
  const seconds = Math.max(1, Math.ceil(retryAfter))
  const reason = `At most ${MAX_TRIES} wrong attempts in ${WINDOW_MINUTES} minutes from one address; try again in ${seconds} s.`
  throw new ApiError('RCS_RATE_LIMITED', { headers: { 'Retry-After': String(seconds) }, details: [{ path: '', reason }] })
}

const NOTE_TRY = `
  with old as (
    delete from sign_in_tries where tried_at < now() - ${WINDOW}
  ), lately as materialized (
    select count(*) as count,
      -- Attempts in progress may be right, and end in a moment.
      case when count(*) filter (where has_failed) < ${MAX_TRIES} then 1
        else extract(epoch from min(tried_at) filter (where has_failed) + ${WINDOW} - now()) end::float8 as retry_after
    from sign_in_tries where address = $1 and ${COUNTS}
  ), noted as (
    insert into sign_in_tries (address, name_hash) select $1, $2 from lately where count < ${MAX_TRIES} returning id
  )
  select (select id from noted) as "tryId", (select retry_after from lately) as "retryAfter", (
    select count(*) from sign_in_tries where name_hash = $2 and ${COUNTS}
  ) as failures`
