import { count, number } from './numbers.ts'

// The words of the components that all pages share.

export const copy = 'Copy'
export const copied = 'Copied'
export const notCopied = 'Not copied: select the text'
export const copyText = (text: string) => `Copy ${text}`
export const loading = 'Loading…'
export const now = 'now'
export const request = 'Request'
export const retry = 'Try again'
export const close = 'Close'
export const cancel = 'Cancel'
export const typeToConfirm = (text: string) => `Type ${text} to confirm`
export const ofLimit = (value: number, max: number) => `${number.format(value)} of ${number.format(max)}`
export const smsSize = (segments: number, units: number, encoding: 'GSM7' | 'UCS2') =>
  `${count(segments, 'SMS', 'SMS')}, ${count(units, 'character')} in ${encoding === 'GSM7' ? 'GSM-7' : 'UCS-2: some are not in GSM-7'}`
export const nothingFound = 'Nothing matches these filters'
export const older = 'Older'
export const asTable = 'as a table'
export const time = 'Time'
export const newest = 'Back to the newest'
export const failed = (code: string) => `The request failed: ${code}.`
export const ofAccount = 'Of this account'
export const asCurl = 'As curl'
export const curlTitle = 'The same request to the API'
export const curlHint = 'Replace the dots with a key of the account and its secret.'
export const adminCurlHint = 'Replace the dots with a token of the admin API.'
