// The words that the tabs of the page Opt-outs and replies share.

export const tabs = { optOuts: 'Opt-outs', automatic: 'Automatic replies', number: 'Everything about a number' }
export const number = 'Phone number'
export const agent = 'Agent'
export const change = 'Change'
export const find = 'Find'
