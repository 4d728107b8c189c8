/** `setPersonRole` is `Set person role`. */
function actionInWords(action: string): string {
  const text = action.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** The words of the page. */
export const audit = {
  action: actionInWords,
  which: 'Which changes',
  all: 'All',
  allOf: (fact: string) => `All with the same value: ${fact}`,
  download: 'CSV',
  examples: { actor: 'anna@example.com', action: 'Create key', subject: 'an id, a number' },
  from: 'From',
  to: 'Until',
  clear: 'Clear all filters',
  nothingFound: 'No such change',
  nothingFoundHint: 'Names and subjects must be exactly as in the log.',
  kinds: { person: 'person', token: 'token', command: 'command line' },
  facts: {
    change: 'Values',
    action: 'Change',
    at: 'When',
    actor: 'By',
    kind: 'By a',
    address: 'From',
    account: 'Account',
    subject: 'Subject',
    request: 'Request',
    entry: 'Entry',
  },
  field: 'Field',
  before: 'Before',
  after: 'After',
}
