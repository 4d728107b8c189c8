import { count } from './numbers.ts'

// The words of everything that is stored about a number.

export const onlyAdmins = 'Only admins see what is stored about a number'
export const where = 'Where'
export const places = { here: 'This account', all: 'All accounts' }
export const start = 'Which number?'
export const startHint = 'See, export or erase what Herald stores about a person.'
export const searching = 'In a large account, this takes up to a minute.'
export const total = (rows: number) => `Herald stores ${rows === 0 ? 'nothing' : count(rows, 'row')} about this number.`
export const exportJson = 'Export as JSON'
export const changes = {
  erase: 'Erase',
  allow: 'Allow messages again',
}
export const sure = {
  erase: (where: string, rows: number) =>
    `${where}: this erases ${count(rows, 'row')} about one person; waiting messages fail. Nothing more is sent to the number. This can’t be undone, and takes up to two minutes.`,
  allow: (where: string) => `${where}: Herald can write to one person again. Do this only if the owner of the number has asked for it.`,
}
export const done = { erase: 'The data is erased.', allow: 'Herald may write to the number again.' }
export const erasedIn = (where: string) => `${where}: erased`
export const erasedHint = 'Nothing is sent to the number.'
export const onlyOperator = 'Only an operator can end an erasure in all accounts.'
