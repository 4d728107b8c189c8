import { count } from './numbers.ts'

// The words of the pages People and Your profile.

export const roles = { viewer: 'Viewer', admin: 'Admin', operator: 'Operator' }
export const roleHints = {
  viewer: 'Reads, with masked phone numbers, without exports and secrets.',
  admin: 'Does everything in the account, also changes its people.',
  operator: 'Does everything, in all accounts.',
}
export const which = 'Which people'
export const everybody = 'Everybody'
export const person = 'Person'
export const state = 'Sign-in'
export const you = 'you'
export const noRole = 'no role'
export const roleIn = (role: keyof typeof roles, account: string) => `${roles[role]} in ${account}`
export const more = (roles: number) => count(roles, 'more role')
export const states = { active: 'can sign in', waiting: 'has no password', disabled: 'disabled' }
export const search = 'Name or e-mail address'
export const nothingFound = 'Nobody matches this search'
export const empty = 'Nobody has a role in this account yet'
export const emptyHint = 'Add the people who work with it.'
export const add = 'Add a person'
export const added = (name: string) => `${name} is added`
export const hadPassword = 'Their password works here, too.'
export const name = 'Name'
export const role = 'Role'
export const link = 'The link'
export const linkHint = 'It works once, for 24 hours, and is shown only now. Pass it on by a channel that you trust.'
export const newLink = 'New one-time link'
export const sureLink = (name: string) => `${name} sets a new password with it. Earlier links end now; sessions end when it is used.`
export const noLink = 'There is no link yet. Make one on the page of the person.'
export const rolesTitle = 'Roles'
export const isOperator = 'Give operator role'
export const notOperator = 'End operator role'
export const sureOperator = (name: string) => `${name} can then do everything in all accounts, and change all people.`
export const sureNotOperator = (name: string, roles: number) =>
  `${name} keeps ${roles === 0 ? 'no role' : count(roles, 'role')} in single accounts.`
export const setRole = 'Set a role'
export const removeRole = 'Remove'
export const removeRoleIn = (account: string) => `Remove the role in ${account}`
export const sureRemove = (name: string, account: string) => `${name} can no longer use the account ${account}. Other roles stay.`
export const noRoles = 'Without a role, the person can sign in, but sees nothing.'
export const rename = 'Rename'
export const lockOut = 'Disable'
export const sureLockOut = (name: string) => `All sessions and one-time links of ${name} end at once. Tokens of programs stay valid.`
export const letIn = 'Enable'
export const sureLetIn = (name: string) => `${name} can sign in again.`
export const aboutYou = 'This is you. Your password is on'
export const noPassword = 'None: you sign in with your organization.'
export const changePassword = 'Change the password'
export const currentPassword = 'Current password'
export const newPassword = 'New password'
export const newPasswordHint = 'At least 12 characters. Your other sessions end.'
export const passwordChanged = 'The password is changed.'
