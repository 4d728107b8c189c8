import { parseArgs } from 'node:util'

/** An option of a command; undefined if it is not given. */
export function wholeNumber(name: string, value: string | undefined, least: number): number | undefined {
  if (value === undefined) return undefined
  if (!/^\d{1,10}$/.test(value) || Number(value) < least) throw new Error(`${name} must be a whole number from ${least} on.`)
  return Number(value)
}

/** `numbers`: the least and the default value of each. `texts` and `flags`: names. */
type Spec<N extends string, T extends string, F extends string> = {
  help: string
  numbers?: Record<N, readonly [least: number, usual: number]>
  texts?: readonly T[]
  flags?: readonly F[]
}
type Options<N extends string, T extends string, F extends string> = Record<N, number> & Record<T, string | undefined> & Record<F, boolean>

/** Reads the options of a kind. Prints the help and exits with 0 if that is asked for, and with 2 if an option is wrong. */
export function readOptions<N extends string = never, T extends string = never, F extends string = never>(
  args: string[],
  { help, numbers = {} as never, texts = [], flags = [] }: Spec<N, T, F>,
): Options<N, T, F> {
  try {
    const ranges = Object.entries(numbers) as [N, readonly [number, number]][]
    const withValue = [...ranges.map(([name]) => name), ...texts].map((name) => [name, { type: 'string' }] as const)
    const withoutValue = [...flags, 'help'].map((name) => [name, { type: 'boolean' }] as const)
    const parsed = parseArgs({ args, options: Object.fromEntries([...withValue, ...withoutValue]) })
    const values = parsed.values as Record<string, string | boolean | undefined>
    if (values.help === true) {
      process.stdout.write(help)
      process.exit(0)
    }
    const read = ranges.map(([name, [least, usual]]) => [
      name,
      wholeNumber(`--${name}`, values[name] as string | undefined, least) ?? usual,
    ])
    return Object.fromEntries([
      ...read,
      ...texts.map((name) => [name, values[name]]),
      ...flags.map((name) => [name, values[name] === true]),
    ])
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help}`)
    process.exit(2)
  }
}
