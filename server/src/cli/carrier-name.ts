import { readCarriers } from '../carriers/settings.ts'
import type { Config } from '../config.ts'
import { noSuch, wrongUsage } from '../errors.ts'
import { nearest } from './nearest.ts'

const SIMULATOR = 'simulator'

/**
 * The RCS carrier of an agent: the named one or, without a name, the only one. A name that HERALD_CARRIERS does not have is refused. Without that
 * setting, only the service knows its carriers, so a name that is not misspelt is accepted.
 */
export function carrierNamed(wanted: string | undefined, { carriersFile }: Pick<Config, 'carriersFile'>): string {
  const known = carriersFile === undefined ? [SIMULATOR] : readCarriers(carriersFile).rcs.map(({ name }) => name)
  if (wanted === undefined) {
    const [first, ...others] = known
    if (first === undefined || others.length > 0) throw wrongUsage(`Name a carrier of HERALD_CARRIERS by --carrier: ${known.join(', ')}.`)
    return first
  }
  if (known.includes(wanted)) return wanted
  const meant = nearest(wanted, known)
  if (carriersFile === undefined && meant === undefined) return wanted
  const suggestion = meant === undefined ? `It has ${known.join(', ')}` : `Did you mean ${meant}`
  throw noSuch(`HERALD_CARRIERS has no RCS carrier ${wanted}. ${suggestion}${meant === undefined ? '.' : '?'}`)
}
