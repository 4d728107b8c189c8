import { en } from './en.ts'

/**
 * The words of the console. Another language is another object of this type. The words of phones and of timelines are modules of their own, since
 * the bundler then shortens their names: other languages are modules with the same names.
 */
export type Words = typeof en

export const words: Words = en
