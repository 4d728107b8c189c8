import type { Config } from '../config.ts'
import { noSuch, wrongUsage } from '../errors.ts'
import { nearest } from './nearest.ts'

const SIMULATOR = 'simulator'

/**
 * The RCS carrier of an agent: the named one or, without a name, the only one. A name that HERALD_CARRIERS does not have is refused. Without that
 * setting, only the service knows its carriers, so a name that is not misspelt is accepted.
 */
export async function carrierNamed(wanted: string | undefined, { carriersFile }: Pick<Config, 'carriersFile'>): Promise<string> {
  const known = carriersFile === undefined ? [SIMULATOR] : await carriersIn(carriersFile)
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

/** Imported here, since the schemas of carriers take as long to load as the rest of a command. */
async function carriersIn(file: string): Promise<string[]> {
  const { readCarriers } = await import('../carriers/settings.ts')
  return readCarriers(file).rcs.map(({ name }) => name)
}
