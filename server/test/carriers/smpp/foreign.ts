import { createRequire } from 'node:module'

/** The npm package `smpp`: an implementation of SMPP that is not ours. It has no types. */
export const foreign: any = createRequire(import.meta.url)('smpp')
