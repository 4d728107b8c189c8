import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { Traffic } from '../../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import type { Button } from '../../../src/content/buttons.ts'
import type { MessageContent } from '../../../src/content/content.ts'
import { createLogger } from '../../../src/http/log.ts'
import { startSimulator } from '../../support/simulator.ts'

// What the network is sent, to the letter. The simulator, which was written from the network's documents and knows nothing of the
// connector, must have taken it too.

const simulator = await startSimulator()
const postbackKey = Buffer.alloc(32, 7)
const carrier = createGoogleRbm(simulator.rcs, { postbackKey, logger: createLogger('silent') })
after(() => carrier.close())

const messageId = '019a83b4-6f5e-7c1d-8e2f-0123456789ab'
const expiresAt = new Date(Date.now() + 3_600_000)
let phones = 0

/** By hand, so that a change of the form is seen. */
function postback(buttonId: string): string {
  const signed = `1:AZqDtG9efB2OLwEjRWeJqw:${buttonId}`
  const signature = createHmac('sha256', postbackKey).update(signed).digest('hex').slice(0, 32)
  return `${signed}:${Buffer.from(signature, 'hex').toString('base64url')}`
}

/** Sends it, and returns what arrived. */
async function arrived(content: MessageContent, traffic: Traffic = 'TRANSACTION'): Promise<any> {
  phones += 1
  const recipient = `+4850010${String(phones).padStart(2, '0')}10`
  const agentId = `agent-${phones}`
  assert.deepEqual(await carrier.send({ messageId, agentId, recipient, content, traffic, expiresAt }), {
    is: 'sent',
    carrierMessageId: messageId,
  })
  const { messages } = await simulator.ask(`phones/${recipient}`)
  assert.equal(messages.length, 1)
  assert.deepEqual([messages[0].messageId, messages[0].agentId], [messageId, agentId])
  return messages[0].agentMessage
}

async function contentArrived(content: MessageContent): Promise<any> {
  const { contentMessage, ...rest } = await arrived(content)
  assert.deepEqual(rest, { messageTrafficType: 'TRANSACTION', expireTime: expiresAt.toISOString() })
  return contentMessage
}

describe('each content type arrives as the network has it', () => {
  test('MESSAGE, with its traffic type and its expiry', async () => {
    assert.deepEqual(await arrived({ type: 'MESSAGE', content: 'Your order is on its way. 📦' }, 'PROMOTION'), {
      contentMessage: { text: 'Your order is on its way. 📦' },
      messageTrafficType: 'PROMOTION',
      expireTime: expiresAt.toISOString(),
    })
  })

  test('AUDIO: a file', async () => {
    assert.deepEqual(await contentArrived({ type: 'AUDIO', data: { audioUrl: 'https://example.com/a.mp3' } }), {
      contentInfo: { fileUrl: 'https://example.com/a.mp3' },
    })
  })

  test('VIDEO: a file', async () => {
    const data = { videoUrl: 'https://example.com/a.mp4', thumbnailUrl: 'https://example.com/a.jpg' }
    assert.deepEqual(await contentArrived({ type: 'VIDEO', data }), {
      contentInfo: { fileUrl: 'https://example.com/a.mp4', thumbnailUrl: 'https://example.com/a.jpg' },
    })
  })

  test('VIDEO with a text: a card, since files carry no caption', async () => {
    const buttons: Button[] = [{ id: 'more', type: 'quick_reply', text: 'More', payload: 'more' }]
    const content: MessageContent = { type: 'VIDEO', content: 'Watch', data: { videoUrl: 'https://example.com/a.mp4' }, buttons }
    assert.deepEqual(await contentArrived(content), {
      richCard: {
        standaloneCard: {
          cardOrientation: 'VERTICAL',
          cardContent: { description: 'Watch', media: { height: 'MEDIUM', contentInfo: { fileUrl: 'https://example.com/a.mp4' } } },
        },
      },
      suggestions: [{ reply: { text: 'More', postbackData: postback('more') } }],
    })
  })

  test('FILE: a file, its address encoded as the network demands', async () => {
    const data = { fileUrl: 'https://example.com/Rechnung März|1.pdf', fileName: 'Rechnung.pdf', thumbnailUrl: 'https://example.com/t.png' }
    assert.deepEqual(await contentArrived({ type: 'FILE', data }), {
      contentInfo: { fileUrl: 'https://example.com/Rechnung%20M%C3%A4rz%7C1.pdf', thumbnailUrl: 'https://example.com/t.png' },
    })
  })

  test('CARD, upright', async () => {
    const content: MessageContent = {
      type: 'CARD',
      content: 'Until Friday.',
      data: { title: 'Sale', imageUrl: 'https://example.com/a.png', height: 'TALL' },
      buttons: [{ id: 'shop', type: 'url', text: 'To the shop', url: 'https://example.com/shop?a=1#b' }],
    }
    assert.deepEqual(await contentArrived(content), {
      richCard: {
        standaloneCard: {
          cardOrientation: 'VERTICAL',
          cardContent: {
            title: 'Sale',
            description: 'Until Friday.',
            media: { height: 'TALL', contentInfo: { fileUrl: 'https://example.com/a.png' } },
            suggestions: [
              {
                action: {
                  text: 'To the shop',
                  postbackData: postback('shop'),
                  openUrlAction: { url: 'https://example.com/shop?a=1#b' },
                },
              },
            ],
          },
        },
      },
    })
  })

  test('CARD, lying', async () => {
    const data = { title: 'Sale', imageUrl: 'https://example.com/a.png', orientation: 'HORIZONTAL', imageAlignment: 'RIGHT' } as const
    assert.deepEqual(await contentArrived({ type: 'CARD', data }), {
      richCard: {
        standaloneCard: {
          cardOrientation: 'HORIZONTAL',
          thumbnailImageAlignment: 'RIGHT',
          cardContent: { title: 'Sale', media: { contentInfo: { fileUrl: 'https://example.com/a.png' } } },
        },
      },
    })
  })

  test('CARD of a text alone', async () => {
    assert.deepEqual(await contentArrived({ type: 'CARD', content: 'Only this.' }), {
      richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent: { description: 'Only this.' } } },
    })
  })

  test('CAROUSEL, with buttons on its cards and beside it', async () => {
    const content: MessageContent = {
      type: 'CAROUSEL',
      data: {
        cardWidth: 'SMALL',
        cards: [
          {
            title: 'One',
            imageUrl: 'https://example.com/1.png',
            height: 'SHORT',
            buttons: [{ id: 'one', type: 'quick_reply', text: 'This', payload: 'one' }],
          },
          { content: 'Two', imageUrl: 'https://example.com/2.png' },
        ],
      },
      buttons: [{ id: 'none', type: 'quick_reply', text: 'None', payload: 'none' }],
    }
    assert.deepEqual(await contentArrived(content), {
      richCard: {
        carouselCard: {
          cardWidth: 'SMALL',
          cardContents: [
            {
              title: 'One',
              media: { height: 'SHORT', contentInfo: { fileUrl: 'https://example.com/1.png' } },
              suggestions: [{ reply: { text: 'This', postbackData: postback('one') } }],
            },
            { description: 'Two', media: { height: 'MEDIUM', contentInfo: { fileUrl: 'https://example.com/2.png' } } },
          ],
        },
      },
      suggestions: [{ reply: { text: 'None', postbackData: postback('none') } }],
    })
  })

  test('CONTACT: a text, and a button to call each number, before those of the message', async () => {
    const content: MessageContent = {
      type: 'CONTACT',
      content: 'Ask for:',
      data: {
        name: 'Example Shop',
        organization: 'Example Ltd',
        phoneNumbers: ['+48 500 100 200', '48500100300'],
        email: 'shop@example.com',
        url: 'https://example.com',
      },
      buttons: [{ id: 'later', type: 'quick_reply', text: 'Later', payload: 'later' }],
    }
    assert.deepEqual(await contentArrived(content), {
      text: 'Ask for:\n\nExample Shop\nExample Ltd\n+48 500 100 200\n48500100300\nshop@example.com\nhttps://example.com',
      suggestions: [
        { action: { text: '+48500100200', postbackData: postback('$call-1'), dialAction: { phoneNumber: '+48500100200' } } },
        { action: { text: '+48500100300', postbackData: postback('$call-2'), dialAction: { phoneNumber: '+48500100300' } } },
        { reply: { text: 'Later', postbackData: postback('later') } },
      ],
    })
  })

  test('LOCATION: a text, and a button that opens the map', async () => {
    const data = { latitude: 52.2297, longitude: 21.0122, label: 'The Example Shop in the middle of the town' }
    assert.deepEqual(await contentArrived({ type: 'LOCATION', content: 'We are here.', data }), {
      text: 'We are here.',
      suggestions: [
        {
          action: {
            text: 'The Example Shop in the…',
            postbackData: postback('$map'),
            viewLocationAction: {
              latLong: { latitude: 52.2297, longitude: 21.0122 },
              label: 'The Example Shop in the middle of the town',
            },
          },
        },
      ],
    })
  })

  test('LOCATION of coordinates alone: they are the text', async () => {
    assert.deepEqual(await contentArrived({ type: 'LOCATION', data: { latitude: -90, longitude: -179.999999 } }), {
      text: '-90.00000, -180.00000',
      suggestions: [
        {
          action: {
            text: '-90.00000, -180.00000',
            postbackData: postback('$map'),
            viewLocationAction: { latLong: { latitude: -90, longitude: -179.999999 } },
          },
        },
      ],
    })
  })
})

test('each button type arrives as the network has it', async () => {
  const content: MessageContent = {
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
  }
  assert.deepEqual(await contentArrived(content), {
    text: 'Choose.',
    suggestions: [
      { action: { text: 'Page', postbackData: postback('page'), openUrlAction: { url: 'https://example.com/%C3%A4' } } },
      { reply: { text: 'Yes', postbackData: postback('yes') } },
      { action: { text: 'Call', postbackData: postback('call'), dialAction: { phoneNumber: '+48500100200' } } },
      {
        action: {
          text: 'Remember',
          postbackData: postback('date'),
          createCalendarEventAction: {
            startTime: '2027-01-31T08:00:00.000Z',
            endTime: '2027-01-31T09:30:00.500Z',
            title: 'Visit',
            description: 'At the shop',
          },
        },
      },
      {
        action: {
          text: 'Map',
          postbackData: postback('map'),
          viewLocationAction: { latLong: { latitude: 0, longitude: 21.5 }, label: 'Shop' },
        },
      },
      { action: { text: 'Where are you?', postbackData: postback('where'), shareLocationAction: {} } },
      { reply: { text: 'Opening hours', postbackData: postback('template') } },
    ],
  })
})

test('a message that lives for 15 days is taken by a network whose clock is some seconds behind', async () => {
  const content = { type: 'MESSAGE', content: 'Hello' } as const
  const message = { messageId: randomUUID(), agentId: 'a', recipient: '+48500109810', content, traffic: 'TRANSACTION' } as const
  const inFifteenDays = new Date(Date.now() + 15 * 86_400_000 + 5_000)
  assert.equal((await carrier.send({ ...message, expiresAt: inFifteenDays })).is, 'sent')
  const [{ agentMessage }] = (await simulator.ask(`phones/${message.recipient}`)).messages
  assert.ok(inFifteenDays.getTime() - Date.parse(agentMessage.expireTime) < 120_000)
})

test('a message of over 250,000 bytes is refused before it is sent', async () => {
  const recipient = '+48500109910'
  /** Each of these characters is six in JSON. */
  const bulky = (length: number) => '\u0001'.repeat(length)
  const times = { startTime: '2027-01-31T08:00:00Z', endTime: '2027-01-31T09:00:00Z' }
  function carousel(buttonsOnACard: number): MessageContent {
    const cards = Array.from({ length: 10 }, (_, card) => ({
      title: bulky(200),
      content: bulky(2000),
      buttons: Array.from({ length: buttonsOnACard }, (_, index) => ({
        id: `${card}-${index}`,
        type: 'calendar' as const,
        text: 'Remember',
        title: bulky(100),
        description: bulky(500),
        ...times,
      })),
    }))
    return { type: 'CAROUSEL', data: { cards } }
  }
  async function send(content: MessageContent) {
    return await carrier.send({ messageId: randomUUID(), agentId: 'a', recipient, content, traffic: 'TRANSACTION', expiresAt })
  }
  assert.equal((await send(carousel(3))).is, 'sent')
  assert.deepEqual(await send(carousel(4)), { is: 'failed', reason: 'REJECTED', detail: 'the message exceeds 250000 bytes as JSON' })
  assert.equal((await simulator.ask(`phones/${recipient}`)).messages.length, 1)
})
