import { carrierNames } from '../carriers/names.ts'
import type { Config } from '../config.ts'
import { noSuch, wrongUsage } from '../errors.ts'
import { nearest } from './nearest.ts'

/** The RCS carrier of an agent: the named one or, without a name, the only one. */
export async function carrierNamed(wanted: string | undefined, { carriersFile }: Pick<Config, 'carriersFile'>): Promise<string> {
  const known = await carrierNames({ carriersFile })
  if (wanted === undefined) {
    const [first, ...others] = known
    if (first === undefined || others.length > 0) throw wrongUsage(`Name a carrier of HERALD_CARRIERS by --carrier: ${known.join(', ')}.`)
    return first
  }
  if (known.includes(wanted)) return wanted
  const meant = nearest(wanted, known)
  if (meant !== undefined) throw noSuch(`There is no RCS carrier ${wanted}. Did you mean ${meant}?`)
  const reason =
    carriersFile === undefined ? `HERALD_CARRIERS is not set, so the only one is ${known[0]}` : `HERALD_CARRIERS has ${known.join(', ')}`
  throw noSuch(`There is no RCS carrier ${wanted}: ${reason}.`)
}
