import { oneOf, type Random } from '../chaos/support/random.ts'
import { isOfAdmin, type Operation } from './document.ts'
import { type Context, isChance, wholeBetween } from './values.ts'
import type { World } from './world.ts'

// With which credentials a request is sent. Most are valid, since most of the service requires them.

/** For /v1. `withoutModule`: of an account without modules. */
const CALLERS = ['own', 'other', 'withoutModule', 'wrong', 'broken', 'none'] as const
/**
 * For /admin/v1: tokens of an operator, of an admin and a viewer of the own account, and of an admin of the `other` account. `page`: the session of
 * an operator, as a page of Herald sends it. `crossSite`: the same session, but the request does not prove that it comes from Herald.
 */
const ADMINS = ['operator', 'admin', 'viewer', 'other', 'page', 'crossSite', 'wrong', 'broken', 'none'] as const

export const CREDENTIALS = [...new Set([...CALLERS, ...ADMINS])]
export type Credentials = (typeof CREDENTIALS)[number]

const SHARES: Record<'callers' | 'admins', Credentials[]> = {
  callers: [...Array<'own'>(6).fill('own'), ...CALLERS],
  admins: [...Array<'operator'>(5).fill('operator'), 'admin', 'admin', 'viewer', ...ADMINS],
}

export function credentialsFor(random: Random, operation: Operation): Credentials {
  return oneOf(random, isOfAdmin(operation) ? SHARES.admins : SHARES.callers)
}

/** The account that the credentials belong to. `any`: they are those of an operator. */
export function accountOf(credentials: Credentials): 'own' | 'other' | 'any' | undefined {
  if (credentials === 'own' || credentials === 'admin' || credentials === 'viewer') return 'own'
  if (credentials === 'operator' || credentials === 'page' || credentials === 'crossSite') return 'any'
  return credentials === 'other' ? 'other' : undefined
}

/** The client's address, undefined for the usual one. Wrong credentials and sign-ins are limited by address, so each of them has its own. */
export function addressFor(random: Random, { path, isPublic }: Operation, credentials: Credentials): string | undefined {
  const isApi = /^(\/admin)?\/v1\//.test(path)
  if (isApi && !isPublic && accountOf(credentials) !== undefined) return undefined
  return `127.${wholeBetween(random, 1, 254)}.${wholeBetween(random, 0, 255)}.${wholeBetween(random, 1, 254)}`
}

type Headers = [name: string, value: string][]

const SAME_SITE: Headers = [['Sec-Fetch-Site', 'same-origin']]
const OTHER_SITES: Headers[] = [
  [],
  [['Sec-Fetch-Site', 'cross-site']],
  [['Sec-Fetch-Site', 'none']],
  [['Origin', 'https://elsewhere.example']],
  [['Origin', 'null']],
]

export function headersFor({ random, world }: Context, operation: Operation, credentials: Credentials): Headers {
  if (!isOfAdmin(operation)) return authorization(valueFor(random, world.keys, credentials))
  // A sign-in must come from a page of Herald, though it has no session.
  const site = operation.isPublic && operation.method !== 'GET' && isChance(random, 0.8) ? SAME_SITE : []
  if (credentials === 'page') return [...SAME_SITE, ['Cookie', oneOf(random, world.cookies)]]
  if (credentials === 'crossSite') return [...oneOf(random, OTHER_SITES), ['Cookie', oneOf(random, world.cookies)]]
  const isCookie = (credentials === 'wrong' || credentials === 'broken') && isChance(random, 0.3)
  if (isCookie) return [...SAME_SITE, ['Cookie', oneOf(random, credentials === 'wrong' ? WRONG_COOKIES : BROKEN_COOKIES)]]
  return [...site, ...authorization(valueFor(random, world.tokens, credentials))]
}

function authorization(value: string | undefined): Headers {
  return value === undefined ? [] : [['Authorization', value]]
}

/** `known`: the values of Authorization by credentials. Wrong ones are like those that are first in it. */
function valueFor(random: Random, known: World['keys'] | World['tokens'], credentials: Credentials): string | undefined {
  if (credentials === 'none') return undefined
  const [first = ''] = Object.values(known)
  if (credentials === 'wrong') return oneOf(random, wrongLike(first))
  return (known as Record<string, string>)[credentials] ?? oneOf(random, brokenLike(first))
}

function wrongLike(valid: string): string[] {
  const [name = '', secret = ''] = valid.replace('Bearer ', '').split(':')
  const tokens = ['Bearer ho_wrong', `Bearer ${name}x`, `Bearer ${name.slice(0, -1)}`, `Bearer ${name.toUpperCase()}`]
  return secret === ''
    ? [...tokens, 'Bearer hk_unknown:hs_unknown']
    : [`Bearer ${name}:hs_wrong`, `Bearer hk_unknown:${secret}`, `Bearer ${name}:${name}`, `Bearer ${name}:${secret}x`, 'Bearer ho_wrong']
}

function brokenLike(valid: string): string[] {
  const [name = ''] = valid.replace('Bearer ', '').split(':')
  return [
    'Bearer',
    'Bearer :',
    `Bearer ${name} ${name}`,
    `Bearer ${name}:`,
    `Bearer :${name}`,
    name,
    `Basic ${Buffer.from(`${name}:x`).toString('base64')}`,
    `Bearer ${'x'.repeat(8_000)}`,
    `Bearer ${':'.repeat(1_000)}`,
    'Bearer \xe9\xff:\xfe',
    'Digest username="x"',
    '',
  ]
}

const WRONG_COOKIES = ['herald-local=wrong', '__Host-herald=wrong', `herald-local=${'A'.repeat(43)}`]
const BROKEN_COOKIES = [
  '',
  '=',
  ';;;',
  'herald-local',
  'herald-local=',
  `herald-local=${'x'.repeat(8_000)}`,
  'herald-local=\xe9\xff',
  'a='.repeat(2_000),
]
