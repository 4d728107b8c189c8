// The words of the automatic replies.

export const hint = 'The longest matching keyword wins. A number gets at most one automatic reply in a minute.'
export const add = 'Add an automatic reply'
export const edit = 'Edit'
export const save = 'Save'
export const remove = 'Remove'
export const keyword = 'Keyword'
export const keywordHint = 'One or more words. Case does not matter.'
export const template = 'Template'
export const choose = 'Choose an approved template'
export const noTemplate = 'No template is approved yet.'
export const templateName = (id: number) => `Template ${id}`
export const sure = (keyword: string, agent: string) => `Recipients who write “${keyword}” to ${agent} get no reply from then on.`
export const saved = (keyword: string) => `Recipients who write “${keyword}” get the reply from now on.`
export const removed = 'The automatic reply is removed.'
export const empty = 'No automatic reply yet'
export const emptyHint = 'Recipients write “hours” or “price”, and Herald replies with a template.'
