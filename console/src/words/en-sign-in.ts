// The words of signing in: the page, the one-time link, and the question for the password.

export const signInTitle = 'Sign in to Herald'
export const email = 'E-mail address'
export const password = 'Password'
export const signIn = 'Sign in'
export const withOrganization = 'Sign in with your organization'
export const forgotten = 'Forgot your password? Ask an operator for a link.'
export const notSetUp = 'Open the link that Herald printed at its start: it creates the first operator.'

export const toSignIn = 'Sign in instead'
export const setUpTitle = 'Welcome to Herald'
export const first = 'Create the first operator, who may do everything.'
export const again = 'Choose your password.'
export const yourName = 'Your name'
export const passwordHint = 'At least 12 characters, such as a few words.'
export const setPassword = 'Set the password and sign in'

export const confirmTitle = 'Confirm that it is you'
export const confirmWhy = 'This step needs your password.'
export const confirm = 'Continue'
export const atProvider = 'Sign in with your organization again. Then repeat the step.'
