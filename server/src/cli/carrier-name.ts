import type { Config } from '../config.ts'
import { noSuch, wrongUsage } from '../errors.ts'
import { nearest } from './nearest.ts'

const SIMULATOR = 'simulator'

/** The RCS carrier of an agent: the named one or, without a name, the only one. Without HERALD_CARRIERS, that is the simulator. */
export async function carrierNamed(wanted: string | undefined, { carriersFile }: Pick<Config, 'carriersFile'>): Promise<string> {
  const known = carriersFile === undefined ? [SIMULATOR] : await carriersIn(carriersFile)
  if (wanted === undefined) {
    const [first, ...others] = known
    if (first === undefined || others.length > 0) throw wrongUsage(`Name a carrier of HERALD_CARRIERS by --carrier: ${known.join(', ')}.`)
    return first
  }
  if (known.includes(wanted)) return wanted
  const meant = nearest(wanted, known)
  if (meant !== undefined) throw noSuch(`There is no RCS carrier ${wanted}. Did you mean ${meant}?`)
  const reason =
    carriersFile === undefined ? `HERALD_CARRIERS is not set, so the only one is ${SIMULATOR}` : `HERALD_CARRIERS has ${known.join(', ')}`
  throw noSuch(`There is no RCS carrier ${wanted}: ${reason}.`)
}

/** Imported here, since the schemas of carriers take as long to load as the rest of a command. */
async function carriersIn(file: string): Promise<string[]> {
  const { readCarriers } = await import('../carriers/settings.ts')
  return readCarriers(file).rcs.map(({ name }) => name)
}
