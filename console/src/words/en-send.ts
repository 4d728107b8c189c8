// The words of the page Send a message.

export const onlyReads = 'Your role lets you read this account, but not send'
export const suspended = 'The operator has suspended this account'
export const noRcs = 'This account has no RCS module'
export const noAgent = 'This account has no active agent'
export const agent = 'Agent'
export const fields = {
  recipient: 'To',
  sender: 'Sender of the SMS',
  smsText: 'Text of the SMS',
  reference: 'Your reference (optional)',
}
export const content = 'Content'
export const text = 'Text'
export const rich = 'Card, buttons and more'
export const json = 'Content in JSON'
export const wrongJson = 'This is not JSON yet.'
export const template = 'Template'
export const chooseTemplate = 'Choose a template'
export const noTemplate = 'There is no approved template.'
export const sms = 'If RCS does not reach the recipient'
export const noSms = 'RCS only'
export const withSms = 'SMS if RCS fails'
export const submit = 'Send'
export const accepted = 'Herald accepted the message.'
export const follow = 'Follow it'
export const seePhone = 'See the phone'
