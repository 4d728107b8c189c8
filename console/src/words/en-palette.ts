// The words of the palette, which Ctrl-K opens.

export const open = 'Find a message, number, page, action…'
export const label = 'Find'
export const nothing = 'Nothing found.'
export const message = (id: string) => `Message ${id}`
export const numberOf = (text: string) => `Messages to ${text}`
export const campaignOf = (id: string) => `Messages of the campaign ${id}`
export const referenceOf = (text: string) => `Messages with the reference ${text}`
export const kinds = {
  campaigns: 'Campaign',
  templates: 'Template',
  groups: 'Group',
  people: 'Person',
  webhooks: 'Webhook endpoint',
  agents: 'Agent',
  accounts: 'Account',
}
export const key = (id: string) => `Key ${id}`
export const eventAt = (id: string, url: string) => `Event ${id}, as posted to ${url}`
