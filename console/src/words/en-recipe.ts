import { shortDuration } from './numbers.ts'

// The words of the recipe that rotates a key.

export const title = 'Rotate this key without a gap'
export const make = 'Make the second key'
export const other = 'Begin again'
export const ended = 'This key no longer works.'
export const deploy = 'Deploy the second key to your systems'
export const wait = 'Wait until the old key is no longer used'
export const waitHint = 'Think of rare jobs, such as one that runs at night.'
export const stillUsed = 'A system still uses it.'
export const quiet = (ms: number) => `Not used for ${shortDuration(Math.floor(ms / 60_000) * 60_000)}.`
export const revoke = 'Revoke the old key'
export const status = { done: 'done', now: 'now', later: 'later' }
