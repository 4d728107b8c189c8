import { type Command, InvalidArgumentError } from 'commander'
import { isNetwork, MAX_ADDRESSES, type Restrictions } from '../accounts/keys.ts'
import { SCOPES, type Scope } from '../scopes.ts'
import { listArgument, timeArgument } from './command.ts'

const UNIT_MS: Record<string, number> = { h: 3_600_000, d: 86_400_000 }
const scopesArgument = listArgument(SCOPES, 1)

// These options can be repeated: each adds to the list. "No restriction" is a word, since Commander would replace null by true.

function scopes(value: string, before: Scope[] | 'all' = []): Scope[] | 'all' {
  return value === 'all' || before === 'all' ? 'all' : [...new Set([...before, ...scopesArgument(value)])]
}

const expiry = (value: string) => (value === 'never' ? value : expiryArgument(value))

/** Parses a time in the future: a time with its zone, or a number of days or hours from now. */
export function expiryArgument(value: string): Date {
  const [, count, unit] = /^([1-9]\d{0,4})([hd])$/.exec(value) ?? []
  const time = unit === undefined ? timeArgument(value) : new Date(Date.now() + Number(count) * (UNIT_MS[unit] as number))
  if (time.getTime() <= Date.now()) throw new InvalidArgumentError('It must be in the future; "revoke" ends it at once.')
  return time
}

function addresses(value: string, before: string[] | 'any' = []): string[] | 'any' {
  if (value === 'any' || before === 'any') return 'any'
  const given = value.split(',').map((text) => text.trim())
  if (!given.every(isNetwork))
    throw new InvalidArgumentError('It must be addresses or networks, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32.')
  const all = [...before, ...given]
  if (all.length > MAX_ADDRESSES) throw new InvalidArgumentError(`A key has at most ${MAX_ADDRESSES} addresses and networks.`)
  return all
}

/** Adds the options for restrictions. `none`: whether they can also remove a restriction. */
export function withRestrictions(command: Command, { none }: { none: boolean }): Command {
  const or = (word: string) => (none ? `, or "${word}"` : '')
  return command
    .option('--scope <list>', `what it may do: ${SCOPES.join(', ')}${or('all')}`, scopes)
    .option('--expires <time>', `when it expires: a time such as 2027-01-31T08:00:00Z, or 90d or 12h from now${or('never')}`, expiry)
    .option('--address <list>', `where it may be used from: addresses and networks, IPv4 or IPv6${or('any')}`, addresses)
}

type Options = { scope?: Scope[] | 'all'; expires?: Date | 'never'; address?: string[] | 'any' }

/** The restrictions that the options name. */
export function restrictionsOf({ scope, expires, address }: Options): Partial<Restrictions> {
  return {
    ...(scope !== undefined && { scopes: scope === 'all' ? null : scope }),
    ...(expires !== undefined && { expiresAt: expires === 'never' ? null : expires }),
    ...(address !== undefined && { addresses: address === 'any' ? null : address }),
  }
}

/** Each restriction in words, also where there is none. */
export function restrictionsInWords({ scopes, expiresAt, addresses }: Partial<Restrictions>): string[] {
  return [
    ...(scopes === undefined ? [] : [`scopes: ${scopes?.join(', ') ?? 'all'}`]),
    ...(expiresAt === undefined ? [] : [`expires: ${expiresAt?.toISOString() ?? 'never'}`]),
    ...(addresses === undefined ? [] : [`addresses: ${addresses?.join(', ') ?? 'any'}`]),
  ]
}
