import { en } from './en.ts'

/** The words of the console. Another language is another object of this type. */
export type Words = typeof en

export const words: Words = en
