import type { Config } from '../config.ts'

/** The names of the RCS carriers. Without HERALD_CARRIERS, there is only the simulator. */
export async function carrierNames({ carriersFile }: Pick<Config, 'carriersFile'>): Promise<string[]> {
  if (carriersFile === undefined) return ['simulator']
  // Imported here, since the schemas of carriers take as long to load as the rest of a command.
  const { readCarriers } = await import('./settings.ts')
  return readCarriers(carriersFile).rcs.map(({ name }) => name)
}
