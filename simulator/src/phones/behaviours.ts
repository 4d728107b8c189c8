/** How a phone behaves. Its last two digits decide. */
type Behaviour = {
  /** How the network responds to an RCS message to it. */
  rcs: 'accepted' | 'not-found' | 'refused' | 'busy-twice'
  delivers: boolean
  reads: boolean
  replies?: 'text' | 'tap' | 'stop'
  smsFails: boolean
}

const USUAL: Behaviour = { rcs: 'accepted', delivers: true, reads: true, smsFails: false }

const BEHAVIOURS = new Map<string, Behaviour>([
  ['01', { ...USUAL, reads: false }],
  ['02', { ...USUAL, rcs: 'not-found' }],
  ['03', { ...USUAL, rcs: 'refused' }],
  ['04', { ...USUAL, delivers: false }],
  ['05', { ...USUAL, rcs: 'busy-twice' }],
  ['06', { ...USUAL, replies: 'text' }],
  ['07', { ...USUAL, replies: 'tap' }],
  ['08', { ...USUAL, rcs: 'not-found', smsFails: true }],
  ['09', { ...USUAL, reads: false, replies: 'stop' }],
])

export function behaviourOf(phone: string): Behaviour {
  return BEHAVIOURS.get(phone.slice(-2)) ?? USUAL
}

export const hasRcs = (phone: string): boolean => behaviourOf(phone).rcs !== 'not-found'

const E164 = /^\+[1-9]\d{6,14}$/
export const isPhone = (value: unknown): value is string => typeof value === 'string' && E164.test(value)
