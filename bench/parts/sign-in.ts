import { randomBytes } from 'node:crypto'
import { hashPassword } from '../../server/src/people/passwords.ts'
import { atMost, median, once } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import { createDatabase, startPostgres } from '../setup/postgres.ts'
import { startHerald } from '../setup/processes.ts'

// Whether the time of a wrong sign-in tells if the name exists. Each pair of a known and an unknown name has an address of its own, so that neither
// the limit of an address nor the delay of a name comes into play.

const TRIES = 2_000
const QUICK_TRIES = 100

export async function measureSignIn({ quick, report, say }: Bench): Promise<void> {
  const pairs = (quick ? QUICK_TRIES : TRIES) / 2
  const database = await createDatabase(await startPostgres())
  const herald = await startHerald(['--only', 'api'], { HERALD_DATABASE_URL: database.url, HERALD_TRUST_PROXY: '127.0.0.1,::1' })
  const template = await hashPassword('the right password')
  // Each with its own salt.
  const hashes = Array.from({ length: pairs }, () => template.replace(/[^$]+(?=\$[^$]+$)/, randomBytes(16).toString('base64').slice(0, 22)))
  await database.pool.query(
    `insert into people (email, name, password_hash)
     select 'known-' || n || '@example.com', 'Known', hash from unnest($1::text[]) with ordinality as h (hash, n)`,
    [hashes],
  )
  const times: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] }
  for (let pair = 1; pair <= pairs; pair += 1) {
    // In a random order: in a fixed one, what the service does each second would fall on the same kind again and again.
    for (const kind of Math.random() < 0.5 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const))
      times[kind].push(await tryToSignIn(herald.url, `${kind}-${pair}@example.com`, pair))
    if (pair % 250 === 0) say(`${2 * pair} tries`)
  }
  report({
    what: 'a wrong password for a known name',
    unit: 'ms',
    measured: once(median(times.known)),
    limit: { what: 'for an unknown name', ...once(median(times.unknown)) },
  })
  report({
    what: 'standard deviations between known and unknown names (Mann-Whitney)',
    unit: '',
    measured: once(separation(times)),
    target: atMost(3),
  })
}

async function tryToSignIn(url: string, email: string, number: number): Promise<number> {
  const address = `198.18.${number >> 8}.${number & 255}`
  const headers = {
    'content-type': 'application/json',
    'sec-fetch-site': 'same-origin',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': address,
  }
  const before = performance.now()
  const response = await fetch(`${url}/admin/v1/session`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ email, password: 'a wrong password' }),
  })
  await response.text()
  const took = performance.now() - before
  if (response.status !== 401) throw new Error(`a wrong password got ${response.status}`)
  return took
}

/** How far the ranks of both samples are from what chance gives, in standard deviations. Above 3 is chance in one of 370 runs. */
function separation({ known, unknown }: { known: number[]; unknown: number[] }): number {
  const all = [...known.map((ms) => ({ ms, isKnown: true })), ...unknown.map((ms) => ({ ms, isKnown: false }))].sort((a, b) => a.ms - b.ms)
  const rankSum = all.reduce((sum, { isKnown }, index) => sum + (isKnown ? index + 1 : 0), 0)
  const [n, m] = [known.length, unknown.length]
  const expected = (n * (n + m + 1)) / 2
  const deviation = Math.sqrt((n * m * (n + m + 1)) / 12)
  return Math.abs(rankSum - expected) / deviation
}
