// The part of the package `split-sms` that is used here. It brings no types of its own.
declare module 'split-sms' {
  type Split = { characterSet: 'GSM' | 'Unicode'; parts: { content: string; length: number; bytes: number }[]; bytes: number }
  const splitSms: { split: (message: string, options?: { characterset?: 'GSM' | 'Unicode' }) => Split }
  export = splitSms
}
