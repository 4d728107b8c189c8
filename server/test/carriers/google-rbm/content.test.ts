import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Traffic } from '../../../src/carriers/carrier.ts'
import type { MessageContent } from '../../../src/content/content.ts'
import { startSimulator } from '../../support/simulator.ts'
import { connect, newAgent, POSTBACK_KEY, send, times } from './support.ts'

// What the network is sent, to the letter. The simulator, which was written from the network's documents and shares no code with the
// connector, must accept it too.

const simulator = await startSimulator()
const carrier = connect(simulator.rcs)
const messageId = '019a83b4-6f5e-7c1d-8e2f-0123456789ab'
const expiresAt = new Date(Date.now() + 3_600_000)
let phones = 0

/** Written out here, so that a change of the format shows. */
function postback(buttonId: string): string {
  const signed = `1:AZqDtG9efB2OLwEjRWeJqw:${buttonId}`
  const signature = createHmac('sha256', POSTBACK_KEY).update(signed).digest('hex').slice(0, 32)
  return `${signed}:${Buffer.from(signature, 'hex').toString('base64url')}`
}

const reply = (text: string, id: string) => ({ reply: { text, postbackData: postback(id) } })
const action = (text: string, id: string, what: object) => ({ action: { text, postbackData: postback(id), ...what } })
const quickReply = (id: string, text: string) => ({ id, type: 'quick_reply', text, payload: id }) as const
const file = (name: string) => ({ contentInfo: { fileUrl: `https://example.com/${name}` } })
const upright = (cardContent: object) => ({ richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent } } })

/** Sends a message to a new phone and returns what arrived there. */
async function arrived(content: MessageContent, traffic: Traffic): Promise<any> {
  phones += 1
  const recipient = `+4850010${String(phones).padStart(2, '0')}10`
  const agentId = newAgent()
  const outcome = await send(carrier, { messageId, agentId, recipient, content, traffic, expiresAt })
  assert.deepEqual(outcome, { is: 'sent', carrierMessageId: messageId })
  const { messages } = await simulator.ask(`phones/${recipient}`)
  assert.equal(messages.length, 1)
  assert.deepEqual([messages[0].messageId, messages[0].agentId], [messageId, agentId])
  return messages[0].agentMessage
}

describe('the network receives', () => {
  const cases: [string, MessageContent, object][] = [
    ['MESSAGE as a text', { type: 'MESSAGE', content: 'Your order is on its way. 📦' }, { text: 'Your order is on its way. 📦' }],
    ['AUDIO as a file', { type: 'AUDIO', data: { audioUrl: 'https://example.com/a.mp3' } }, file('a.mp3')],
    [
      'VIDEO as a file',
      { type: 'VIDEO', data: { videoUrl: 'https://example.com/a.mp4', thumbnailUrl: 'https://example.com/a.jpg' } },
      { contentInfo: { fileUrl: 'https://example.com/a.mp4', thumbnailUrl: 'https://example.com/a.jpg' } },
    ],
    [
      'VIDEO with a text as a card, since files have no caption',
      { type: 'VIDEO', content: 'Watch', data: { videoUrl: 'https://example.com/a.mp4' }, buttons: [quickReply('more', 'More')] },
      { ...upright({ description: 'Watch', media: { height: 'MEDIUM', ...file('a.mp4') } }), suggestions: [reply('More', 'more')] },
    ],
    [
      'FILE as a file, its address percent-encoded',
      {
        type: 'FILE',
        data: { fileUrl: 'https://example.com/Rechnung März|1.pdf', fileName: 'R.pdf', thumbnailUrl: 'https://example.com/t.png' },
      },
      { contentInfo: { fileUrl: 'https://example.com/Rechnung%20M%C3%A4rz%7C1.pdf', thumbnailUrl: 'https://example.com/t.png' } },
    ],
    [
      'a vertical CARD',
      {
        type: 'CARD',
        content: 'Until Friday.',
        data: { title: 'Sale', imageUrl: 'https://example.com/a.png', height: 'TALL' },
        buttons: [{ id: 'shop', type: 'url', text: 'To the shop', url: 'https://example.com/shop?a=1#b' }],
      },
      upright({
        title: 'Sale',
        description: 'Until Friday.',
        media: { height: 'TALL', ...file('a.png') },
        suggestions: [action('To the shop', 'shop', { openUrlAction: { url: 'https://example.com/shop?a=1#b' } })],
      }),
    ],
    [
      'a horizontal CARD',
      {
        type: 'CARD',
        data: { title: 'Sale', imageUrl: 'https://example.com/a.png', orientation: 'HORIZONTAL', imageAlignment: 'RIGHT' },
      },
      {
        richCard: {
          standaloneCard: {
            cardOrientation: 'HORIZONTAL',
            thumbnailImageAlignment: 'RIGHT',
            cardContent: { title: 'Sale', media: file('a.png') },
          },
        },
      },
    ],
    ['a CARD with a text alone', { type: 'CARD', content: 'Only this.' }, upright({ description: 'Only this.' })],
    [
      'a CAROUSEL with buttons on its cards and beside it',
      {
        type: 'CAROUSEL',
        data: {
          cardWidth: 'SMALL',
          cards: [
            { title: 'One', imageUrl: 'https://example.com/1.png', height: 'SHORT', buttons: [quickReply('one', 'This')] },
            { content: 'Two', imageUrl: 'https://example.com/2.png' },
          ],
        },
        buttons: [quickReply('none', 'None')],
      },
      {
        richCard: {
          carouselCard: {
            cardWidth: 'SMALL',
            cardContents: [
              { title: 'One', media: { height: 'SHORT', ...file('1.png') }, suggestions: [reply('This', 'one')] },
              { description: 'Two', media: { height: 'MEDIUM', ...file('2.png') } },
            ],
          },
        },
        suggestions: [reply('None', 'none')],
      },
    ],
    [
      'CONTACT as a text with a button to call each number, before those of the message',
      {
        type: 'CONTACT',
        content: 'Ask for:',
        data: {
          name: 'Example Shop',
          organization: 'Example Ltd',
          phoneNumbers: ['+48 500 100 200', '48500100300'],
          email: 'shop@example.com',
          url: 'https://example.com',
        },
        buttons: [quickReply('later', 'Later')],
      },
      {
        text: 'Ask for:\n\nExample Shop\nExample Ltd\n+48 500 100 200\n48500100300\nshop@example.com\nhttps://example.com',
        suggestions: [
          action('+48500100200', '$call-1', { dialAction: { phoneNumber: '+48500100200' } }),
          action('+48500100300', '$call-2', { dialAction: { phoneNumber: '+48500100300' } }),
          reply('Later', 'later'),
        ],
      },
    ],
    [
      'LOCATION as a text with a button that opens the map',
      {
        type: 'LOCATION',
        content: 'We are here.',
        data: { latitude: 52.2297, longitude: 21.0122, label: 'The Example Shop in the middle of the town' },
      },
      {
        text: 'We are here.',
        suggestions: [
          action('The Example Shop in the…', '$map', {
            viewLocationAction: {
              latLong: { latitude: 52.2297, longitude: 21.0122 },
              label: 'The Example Shop in the middle of the town',
            },
          }),
        ],
      },
    ],
    [
      'LOCATION without a text as its coordinates',
      { type: 'LOCATION', data: { latitude: -90, longitude: -179.999999 } },
      {
        text: '-90.00000, -180.00000',
        suggestions: [
          action('-90.00000, -180.00000', '$map', { viewLocationAction: { latLong: { latitude: -90, longitude: -179.999999 } } }),
        ],
      },
    ],
    [
      'each type of button',
      {
        type: 'MESSAGE',
        content: 'Choose.',
        buttons: [
          { id: 'page', type: 'url', text: 'Page', url: 'https://example.com/ä' },
          { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes'.repeat(600) },
          { id: 'call', type: 'call', text: 'Call', phoneNumber: '48500100200' },
          {
            id: 'date',
            type: 'calendar',
            text: 'Remember',
            title: 'Visit',
            startTime: '2027-01-31T09:00+01:00',
            endTime: '2027-01-31T09:30:00.5Z',
            description: 'At the shop',
          },
          { id: 'map', type: 'location', text: 'Map', latitude: 0, longitude: 21.5, label: 'Shop' },
          { id: 'where', type: 'location', text: 'Where are you?' },
          { id: 'template', type: 'trigger_template', text: 'Opening hours', templateId: 7 },
        ],
      },
      {
        text: 'Choose.',
        suggestions: [
          action('Page', 'page', { openUrlAction: { url: 'https://example.com/%C3%A4' } }),
          reply('Yes', 'yes'),
          action('Call', 'call', { dialAction: { phoneNumber: '+48500100200' } }),
          action('Remember', 'date', {
            createCalendarEventAction: {
              startTime: '2027-01-31T08:00:00.000Z',
              endTime: '2027-01-31T09:30:00.500Z',
              title: 'Visit',
              description: 'At the shop',
            },
          }),
          action('Map', 'map', { viewLocationAction: { latLong: { latitude: 0, longitude: 21.5 }, label: 'Shop' } }),
          action('Where are you?', 'where', { shareLocationAction: {} }),
          reply('Opening hours', 'template'),
        ],
      },
    ],
  ]
  for (const [what, content, contentMessage] of cases) {
    const traffic = content.type === 'MESSAGE' ? 'PROMOTION' : 'TRANSACTION'
    test(what, async () => {
      const expected = { contentMessage, messageTrafficType: traffic, expireTime: expiresAt.toISOString() }
      assert.deepEqual(await arrived(content, traffic), expected)
    })
  }
})

test('accepts a lifetime of 15 days if the network’s clock is some seconds behind', async () => {
  const recipient = '+48500109810'
  const inFifteenDays = new Date(Date.now() + 15 * 86_400_000 + 5_000)
  assert.equal((await send(carrier, { recipient, expiresAt: inFifteenDays })).is, 'sent')
  const [{ agentMessage }] = (await simulator.ask(`phones/${recipient}`)).messages
  assert.ok(inFifteenDays.getTime() - Date.parse(agentMessage.expireTime) < 120_000)
})

test('refuses a message of over 250,000 bytes without sending it', async () => {
  const recipient = '+48500109910'
  /** Each of these characters takes six bytes in JSON. */
  const bulky = (length: number) => '\u0001'.repeat(length)
  const event = { type: 'calendar', text: 'Remember', startTime: '2027-01-31T08:00:00Z', endTime: '2027-01-31T09:00:00Z' } as const
  const carousel = (buttonsOnACard: number): MessageContent => {
    const buttonsOf = (card: number) =>
      times(buttonsOnACard, (index) => ({ id: `${card}-${index}`, ...event, title: bulky(100), description: bulky(500) }))
    return {
      type: 'CAROUSEL',
      data: { cards: times(10, (card) => ({ title: bulky(200), content: bulky(2000), buttons: buttonsOf(card) })) },
    }
  }
  assert.equal((await send(carrier, { recipient, content: carousel(3) })).is, 'sent')
  const refused = { is: 'failed', reason: 'REJECTED', detail: 'the message exceeds 250000 bytes as JSON' }
  assert.deepEqual(await send(carrier, { recipient, content: carousel(4) }), refused)
  assert.equal((await simulator.ask(`phones/${recipient}`)).messages.length, 1)
})
