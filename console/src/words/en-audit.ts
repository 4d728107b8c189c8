// The words of the audit log.

/** `setPersonRole` is `Set person role`. */
export function action(name: string): string {
  const text = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

export const which = 'Which changes'
export const all = 'All'
export const allOf = (fact: string) => `All with the same value: ${fact}`
export const download = 'CSV'
export const examples = { actor: 'anna@example.com', action: 'Create key', subject: 'an id, a number' }
export const times = {
  from: 'From',
  to: 'Before',
}
export const clear = 'Clear all filters'
export const nothingFound = 'No such change'
export const nothingFoundHint = 'Names and subjects must be exactly as in the log.'
export const kinds = { person: 'person', token: 'token', command: 'command line' }
export const facts = {
  change: 'Values',
  action: 'Change',
  at: 'When',
  actor: 'By',
  kind: 'By a',
  address: 'Address',
  account: 'Account',
  subject: 'Subject',
  request: 'Request',
  entry: 'Entry',
}
export const field = 'Field'
export const before = 'Before'
export const after = 'After'
