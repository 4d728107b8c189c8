import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentMessage } from '../../server/src/carriers/google-rbm/agent-message.ts'
import { Button as ServerButton } from '../../server/src/content/buttons.ts'
import { CONTENT_TYPES, type MessageContent } from '../../server/src/content/content.ts'
import type { Content } from '../src/phone/content.ts'
import type { Drawn } from '../src/phone/drawn.ts'
import { meantOf } from '../src/phone/meant.ts'
import { type AgentMessage, receivedOf } from '../src/phone/received.ts'
import { BUTTONS, CONTENTS, IMAGE, VARIANTS, withButtons } from './support/samples.ts'

// Fail to compile if the console's content differs from the server's.
const toServer = (content: Content): MessageContent => content
const fromServer = (content: MessageContent): Content => content

/** What the phone draws after the server's own translation. A button's key is its id, since the postback holds it. */
function afterTheWire(content: Content): Drawn {
  const message = { messageId: '', agentId: '', recipient: '', traffic: 'TRANSACTION', expiresAt: new Date() } as const
  const wire = JSON.stringify(agentMessage({ ...message, content: toServer(content) }, (buttonId) => buttonId))
  return receivedOf(JSON.parse(wire) as AgentMessage)
}

test('the samples have every type of content and of button', () => {
  assert.deepEqual(Object.keys(CONTENTS), [...CONTENT_TYPES])
  const types = (ServerButton as unknown as { oneOf: { properties: { type: { const: string } } }[] }).oneOf.map(
    ({ properties }) => properties.type.const,
  )
  assert.deepEqual(new Set(Object.values(BUTTONS).map(({ type }) => type)), new Set(types))
  assert.equal(fromServer(toServer(CONTENTS.MESSAGE as Content)), CONTENTS.MESSAGE)
})

test('the phone draws from the wire what was meant, for every type of content and button', () => {
  for (const [name, content] of Object.entries({ ...CONTENTS, ...VARIANTS })) {
    assert.deepEqual(afterTheWire(content), meantOf(content), name)
    for (const [kind, button] of Object.entries(BUTTONS)) {
      const both = withButtons(content, button)
      assert.deepEqual(afterTheWire(both), meantOf(both), `${name} with ${kind}`)
    }
  }
})

test('the phone draws every kind of button by its action', () => {
  const { chips } = afterTheWire(withButtons(CONTENTS.MESSAGE as Content, ...Object.values(BUTTONS)))
  assert.deepEqual(
    chips.map(({ key, kind, text, opens }) => [key, kind, text, opens]),
    [
      ['url', 'url', 'Track the parcel', 'https://example.com/track?id=4711'],
      ['reply', 'reply', 'Another day, please', undefined],
      ['call', 'call', 'Call the courier', '+48500100200'],
      ['calendar', 'calendar', 'Add to my calendar', 'Delivery'],
      ['map', 'map', 'Show the way', 'Shop'],
      ['share', 'share-location', 'Share my location', undefined],
      ['template', 'reply', 'Opening hours', undefined],
    ],
  )
})

test('the phone draws what RCS has no message for as it is sent', () => {
  const contact = afterTheWire(CONTENTS.CONTACT as Content)
  assert.deepEqual(contact, {
    is: 'text',
    text: 'Your courier\n\nAnna Nowak\nCouriers\n+48 500 100 200\nanna@example.com',
    chips: [{ key: '$call-1', kind: 'call', text: '+48500100200', opens: '+48500100200' }],
  })
  const place = afterTheWire(CONTENTS.LOCATION as Content)
  assert.deepEqual(place.chips, [{ key: '$map', kind: 'map', text: 'Our shop in the old town…', opens: 'Our shop in the old town centre' }])
  const video = afterTheWire(VARIANTS['video with a text'] as Content)
  assert.equal(video.is, 'card', 'a file has no caption')
  const file = afterTheWire(CONTENTS.FILE as Content)
  assert.deepEqual(file.is === 'file' && file.file, { kind: 'file', url: 'https://example.com/files/invoice%204711.pdf' })
})

test('the phone draws the media of a card as an image if its address does not say what it is', () => {
  const url = 'https://images.example/photo-1?w=600'
  const cards: Content[] = [
    { type: 'CARD', data: { imageUrl: url } },
    { type: 'CAROUSEL', data: { cards: [{ imageUrl: url }, { title: 'Cactus' }] } },
  ]
  for (const content of cards) {
    const drawn = afterTheWire(content)
    const media = drawn.is === 'card' ? drawn.card.media : drawn.is === 'carousel' && drawn.cards[0]?.media
    assert.deepEqual(media, { kind: 'image', url }, content.type)
    assert.deepEqual(drawn, meantOf(content), content.type)
  }
  const file = afterTheWire({ type: 'FILE', data: { fileUrl: url } })
  assert.equal(file.is === 'file' && file.file.kind, 'file')
  const video = afterTheWire({ type: 'VIDEO', content: 'A tour', data: { videoUrl: url, thumbnailUrl: IMAGE } })
  assert.ok(video.is === 'card' && video.card.media?.kind === 'file', 'its preview is shown')
})

test('the phone draws the layout of cards as it was sent', () => {
  const right = afterTheWire(VARIANTS['card, horizontal, right'] as Content)
  assert.deepEqual(right, {
    is: 'card',
    card: {
      title: 'Your tulips are ready',
      text: 'In the shop until Saturday, six o’clock.',
      media: { kind: 'image', url: IMAGE },
      height: 'MEDIUM',
      buttons: [],
    },
    side: 'RIGHT',
    chips: [],
  })
  const small = afterTheWire(VARIANTS['carousel, small, short'] as Content)
  assert.ok(small.is === 'carousel' && small.width === 'SMALL' && small.cards[0]?.height === 'SHORT')
})
