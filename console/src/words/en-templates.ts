import { count, number } from './numbers.ts'

// The words of the page Templates.

const size = (bytes: number) =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${number.format(Math.round(bytes / 100_000) / 10)} MB`

export const add = 'New template'
export const none = 'No template yet'
export const noneHint = 'Write content once, and send it in messages and campaigns.'
export const template = 'Template'
export const content = 'Content'
export const status = 'Status'
export const preview = 'Preview'
export const updated = 'Saved'
export const anyContent = 'Any content'
export const show = (template: string) => `Preview ${template}`
export const statuses = { DRAFT: 'Draft', APPROVED: 'Approved' }
export const types = {
  MESSAGE: 'Text',
  CARD: 'Card',
  CAROUSEL: 'Carousel',
  FILE: 'File',
  VIDEO: 'Video',
  AUDIO: 'Audio',
  CONTACT: 'Contact',
  LOCATION: 'Location',
}
export const saved = 'saved'
export const changed = 'Unsaved changes'
export const elsewhere = 'It was saved elsewhere since you began. Saving replaces that version: see “Changes”.'
export const gone = 'It was deleted elsewhere. Saving creates it again.'
export const save = 'Save'
export const approve = 'Approve'
export const actions = {
  changes: 'Changes',
  discard: 'Discard the changes',
  remove: 'Delete',
}
export const isSaved = 'The template is saved.'
export const isApproved = 'The template is approved.'
export const brokenJson = 'Nothing is saved: the JSON can’t be read yet.'
export const notSaved = 'Nothing is saved: somebody else has saved it meanwhile.'
export const brokenTest = 'Nothing is sent: the JSON can’t be read yet.'
export const lines = {
  added: 'added',
  removed: 'removed',
}
export const approvesAtOnce = 'New messages get this content at once. Accepted messages keep the old one.'
export const asks = {
  discard: (lines: number) => `${count(lines, 'changed line')} will be lost. This can’t be undone.`,
  remove: () => 'This deletes one template. Accepted messages keep its content. This can’t be undone.',
}
export const editor = 'The template'
export const view = 'View'
export const form = 'Form'
export const json = 'JSON'
export const notJson = (message: string) => `This is not JSON yet: ${message}`
export const formOfBroken = 'The JSON can’t be read. A change here replaces it.'
export const noForm = 'The type is unknown. Choose one, or change the JSON.'
export const what = 'What it is'
export const name = 'Name'
export const description = 'Description (optional)'
export const service = 'Service'
export const rcs = 'RCS'
export const rcsBasic = 'RCS Basic'
export const fields = {
  content: 'Text',
  title: 'Title',
  imageUrl: 'Picture',
  fileUrl: 'File',
  fileName: 'Name of the file (optional)',
  thumbnailUrl: 'Preview picture (optional)',
  videoUrl: 'Video',
  audioUrl: 'Audio',
  orientation: 'Layout',
  height: 'Height of the picture',
  imageAlignment: 'Side of the picture',
  cardWidth: 'Width of the cards',
  name: 'Name of the contact',
  phoneNumbers: 'Phone numbers, one per line',
  email: 'E-mail address (optional)',
  organization: 'Organization (optional)',
  url: 'Web address',
  label: 'Name of the location (optional)',
  latitude: 'Latitude',
  longitude: 'Longitude',
  text: 'Label',
  payload: 'Data that you get with a tap',
  phoneNumber: 'Phone number',
  startTime: 'Start',
  endTime: 'End',
  templateId: 'Template',
  id: 'Id of the button',
  buttons: 'Buttons',
  cards: 'Cards',
  description: 'Description',
  status,
  message: content,
} as Record<string, string>
export const options = {
  VERTICAL: 'Picture above',
  HORIZONTAL: 'Picture beside',
  SHORT: 'Short (112 dp)',
  MEDIUM: 'Medium (168 dp)',
  TALL: 'Tall (264 dp)',
  LEFT: 'Left',
  RIGHT: 'Right',
} as Record<string, string>
export const widths = { SMALL: 'Small (180 dp)', MEDIUM: 'Medium (296 dp)' } as Record<string, string>
export const parts = {
  card: (index: number) => `Card ${index}`,
  button: (index: number) => `Button ${index}`,
}
export const addPart = { card: 'Add a card', button: 'Add a button' }
export const does = 'What it does'
export const buttonTypes = {
  quick_reply: 'replies',
  url: 'opens a page',
  call: 'calls',
  calendar: 'adds a date',
  location: 'shows or asks for a location',
  trigger_template: 'sends a template',
}
export const up = 'Move up'
export const down = 'Move down'
export const remove = 'Remove'
export const imageFacts = (width: number, height: number, bytes: number) => `${width} × ${height} · ${size(bytes)}`
export const lookAgain = 'Look again'
export const phones = 'As phones show it'
export const checkTitle = 'Check'
export const valid = 'Herald accepts this content'
export const wrong = (value: number) => `${count(value, 'thing')} to correct`
export const limits = 'Limits'
export const contact = 'Contact as a text'
export const bytes = (where: string) => `${where}, in bytes`
export const wholeOnIphone = 'Shown whole on iPhones'
export const samples = 'Variables'
export const samplesHint = 'The phones, the limits and test messages use these values. They are not stored.'
export const space = (where: string, characters?: number, bytes?: number) => {
  const spaces = [
    ...(characters === undefined ? [] : [count(characters, 'character')]),
    ...(bytes === undefined ? [] : [count(bytes, 'byte')]),
  ]
  return `${where}: ${spaces.join(' and ')} in total.`
}
export const billing = 'Billing class'
export const features = 'Phones must support'
export const differences = 'Differences on iPhones'
export const noDifferences = 'None.'
export const testTitle = 'Send a test'
export const testHint = 'Sends what you see now, saved or not.'
