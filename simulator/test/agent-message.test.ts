import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkAgentMessage } from '../src/rbm/agent-message.ts'

// Each limit of Google's documents: the largest value that is accepted, and the first that is rejected.

const long = (length: number, letter = 'x') => letter.repeat(length)
const message = (contentMessage: object, more: object = {}) => ({ contentMessage, ...more })
const reply = (more: object = {}) => ({ reply: { text: 'Yes', postbackData: 'yes', ...more } })
const action = (more: object) => ({ action: { text: 'Go', postbackData: 'go', ...more } })
const withChip = (suggestion: object) => message({ text: 'Hello', suggestions: [suggestion] })
const media = (more: object = {}) => ({ height: 'MEDIUM', contentInfo: { fileUrl: 'https://example.com/a.png' }, ...more })
const standalone = (cardContent: object, more: object = {}) =>
  message({ richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent, ...more } } })
const carousel = (cardContents: object[], cardWidth = 'MEDIUM') => message({ richCard: { carouselCard: { cardWidth, cardContents } } })
const cards = (count: number, card: object = { title: 'Card' }) => Array.from({ length: count }, () => card)
const chips = (count: number) => Array.from({ length: count }, () => reply())
const calendar = (more: object) =>
  action({ createCalendarEventAction: { startTime: '2026-12-01T10:00:00Z', endTime: '2026-12-01T11:00:00Z', title: 'Visit', ...more } })
const url = (length: number) => `https://example.com/${long(length - 20)}`
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const chip = (more: object) => withChip(action(more))
const hello = (more: object) => message({ text: 'Hello' }, more)
const at = (latitude: number, longitude: number) => ({ latLong: { latitude, longitude } })
const FILE = { fileUrl: url(30) }
const HORIZONTAL = { cardOrientation: 'HORIZONTAL' }
const LEFT = { ...HORIZONTAL, thumbnailImageAlignment: 'LEFT' }

const ACCEPTED: [string, object][] = [
  ['a text of 3072 characters', message({ text: long(3072) })],
  ['a text of 3072 emoji, which are code points', message({ text: long(3072, '😀') })],
  ['11 chips', message({ text: 'Hello', suggestions: chips(11) })],
  ['a label of 25 characters', withChip(reply({ text: long(25, 'ż') }))],
  ['a postback of 2048 characters in a reply', withChip(reply({ postbackData: long(2048) }))],
  ['a postback of 2048 characters in an action', chip({ shareLocationAction: {}, postbackData: long(2048) })],
  ['a URL of 2048 characters', chip({ openUrlAction: { url: url(2048) } })],
  ['a fallback URL of 2048 characters', chip({ shareLocationAction: {}, fallbackUrl: url(2048) })],
  ['a URL opened in a webview', chip({ openUrlAction: { url: url(30), application: 'WEBVIEW', webviewViewMode: 'HALF' } })],
  ['a number that is no E.164', chip({ dialAction: { phoneNumber: '*100#' } })],
  ['a location', chip({ viewLocationAction: { latLong: { latitude: 90, longitude: -180 }, label: 'North' } })],
  ['a location by its name', chip({ viewLocationAction: { query: 'Rynek, Kraków' } })],
  ['a calendar title of 100 characters', withChip(calendar({ title: long(100) }))],
  ['a calendar description of 500 characters', withChip(calendar({ description: long(500) }))],
  ['a card title of 200 characters', standalone({ title: long(200) })],
  ['a card description of 2000 characters', standalone({ description: long(2000) })],
  ['a card with 4 suggestions', standalone({ title: 'Card', suggestions: chips(4) })],
  ['a card with nothing but media', standalone({ media: media({ height: 'TALL' }) })],
  ['a horizontal card with media and a title', standalone({ title: 'Card', media: { contentInfo: FILE } }, LEFT)],
  ['a horizontal card with media and suggestions', standalone({ media: media(), suggestions: chips(1) }, HORIZONTAL)],
  ['2 cards', carousel(cards(2))],
  ['10 cards', carousel(cards(10))],
  ['tall media in a wide carousel', carousel(cards(2, { media: media({ height: 'TALL' }) }))],
  ['a file', message({ contentInfo: { fileUrl: url(30), thumbnailUrl: url(30), forceRefresh: true }, suggestions: chips(1) })],
  ['an uploaded file', message({ uploadedRbmFile: { fileName: 'files/1', thumbnailName: 'files/2' } })],
  ['a null, which counts as absent', message({ text: 'Hello', richCard: null }, { ttl: null })],
  ['a traffic type', hello({ messageTrafficType: 'ACKNOWLEDGEMENT' })],
  ['a ttl of 15 days', hello({ ttl: `${15 * 86_400}s` })],
  ['a ttl with a fraction', hello({ ttl: '10.5s' })],
  ['an expiry 14 days ahead', hello({ expireTime: inDays(14.9) })],
]

const REJECTED: [string, object, string][] = [
  ['no message', {}, 'contentMessage'],
  ['an unknown traffic type', hello({ messageTrafficType: 'SPAM' }), 'messageTrafficType'],
  ['an expiry and a ttl', hello({ ttl: '60s', expireTime: inDays(1) }), 'ttl'],
  ['a ttl over 15 days', hello({ ttl: `${15 * 86_400 + 1}s` }), 'ttl'],
  ['a ttl that is a number', hello({ ttl: 60 }), 'ttl'],
  ['a ttl without its s', hello({ ttl: '60' }), 'ttl'],
  ['a ttl of 0', hello({ ttl: '0s' }), 'ttl'],
  ['an expiry over 15 days ahead', hello({ expireTime: inDays(15.1) }), 'expireTime'],
  ['an expiry in the past', hello({ expireTime: inDays(-1) }), 'expireTime'],
  ['an expiry on 30 February', hello({ expireTime: '2027-02-30T00:00:00Z' }), 'expireTime'],
  ['an expiry at 24:00', hello({ expireTime: '2027-02-01T24:00:00Z' }), 'expireTime'],
  ['an expiry in month 13', hello({ expireTime: '2026-13-01T00:00:00Z' }), 'expireTime'],
  ['a field with the name of an inherited property', hello({ constructor: 'x' }), ''],
  ['1 card', carousel(cards(1)), 'contentMessage.richCard.carouselCard.cardContents'],
  ['11 cards', carousel(cards(11)), 'contentMessage.richCard.carouselCard.cardContents'],
  [
    'tall media in a narrow carousel',
    carousel([{ title: 'Card' }, { media: media({ height: 'TALL' }) }], 'SMALL'),
    'contentMessage.richCard.carouselCard.cardContents[1].media.height',
  ],
  [
    'a card without an orientation',
    message({ richCard: { standaloneCard: { cardContent: { title: 'Card' } } } }),
    'contentMessage.richCard.standaloneCard.cardOrientation',
  ],
]

/** A content message, and the rest of the path after `contentMessage`. */
const REJECTED_CONTENTS: [string, object, string][] = [
  ['a text of 3073 characters', { text: long(3073) }, '.text'],
  ['a text of 3073 emoji', { text: long(3073, '😀') }, '.text'],
  ['an empty text', { text: '' }, '.text'],
  ['half an emoji', { text: '\ud83d' }, '.text'],
  ['a text that is a number', { text: 5 }, '.text'],
  ['no content', {}, ''],
  [
    'a text and a card',
    { text: 'Hello', richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent: { title: 'Card' } } } },
    '',
  ],
  ['a field that Google does not know', { text: 'Hello', caption: 'x' }, ''],
  ['12 chips', { text: 'Hello', suggestions: chips(12) }, '.suggestions'],
]

/** A suggestion, and the rest of the path after it. */
const REJECTED_CHIPS: [string, object, string][] = [
  ['a label of 26 characters', reply({ text: long(26) }), '.reply.text'],
  ['no label', { reply: { postbackData: 'x' } }, '.reply.text'],
  ['no postback', { reply: { text: 'x' } }, '.reply.postbackData'],
  ['a postback of 2049 characters', reply({ postbackData: long(2049) }), '.reply.postbackData'],
  ['a postback of 2049 characters in an action', action({ shareLocationAction: {}, postbackData: long(2049) }), '.action.postbackData'],
  ['a reply and an action at once', { ...reply(), ...action({ shareLocationAction: {} }) }, ''],
  ['an action that does nothing', action({}), '.action'],
  ['an action that does two things', action({ shareLocationAction: {}, dialAction: { phoneNumber: '1' } }), '.action'],
  ['a URL of 2049 characters', action({ openUrlAction: { url: url(2049) } }), '.action.openUrlAction.url'],
  ['a URL with a space', action({ openUrlAction: { url: 'https://example.com/a b' } }), '.action.openUrlAction.url'],
  ['a URL without a scheme', action({ openUrlAction: { url: 'example.com' } }), '.action.openUrlAction.url'],
  ['a URL without a host', action({ openUrlAction: { url: 'https:///x' } }), '.action.openUrlAction.url'],
  ['a URL with port 99999', action({ openUrlAction: { url: 'https://x:99999/' } }), '.action.openUrlAction.url'],
  ['a fallback URL of 2049 characters', action({ shareLocationAction: {}, fallbackUrl: url(2049) }), '.action.fallbackUrl'],
  ['an unknown application', action({ openUrlAction: { url: url(30), application: 'PHONE' } }), '.action.openUrlAction.application'],
  ['letters in a phone number', action({ dialAction: { phoneNumber: '0800-HERALD' } }), '.action.dialAction.phoneNumber'],
  ['a latitude over 90', action({ viewLocationAction: at(90.1, 0) }), '.action.viewLocationAction.latLong.latitude'],
  ['a longitude over 180', action({ viewLocationAction: at(0, 180.1) }), '.action.viewLocationAction.latLong.longitude'],
  ['a location by coordinates and by its name', action({ viewLocationAction: { ...at(0, 0), query: 'x' } }), '.action.viewLocationAction'],
  ['a calendar title of 101 characters', calendar({ title: long(101) }), '.action.createCalendarEventAction.title'],
  ['a calendar description of 501 characters', calendar({ description: long(501) }), '.action.createCalendarEventAction.description'],
  ['a calendar time that is none', calendar({ startTime: 'tomorrow' }), '.action.createCalendarEventAction.startTime'],
  ['the withdrawn compose action', action({ composeAction: {} }), '.action.composeAction'],
  ['a field in a share-location action', action({ shareLocationAction: { label: 'x' } }), '.action.shareLocationAction'],
]

/** The content of a standalone card, the rest of the path after it, and other fields of the card. */
const REJECTED_CARDS: [string, object, string, object?][] = [
  ['a title of 201 characters', { title: long(201) }, '.title'],
  ['a description of 2001 characters', { description: long(2001) }, '.description'],
  ['5 suggestions', { title: 'Card', suggestions: chips(5) }, '.suggestions'],
  ['no content', { suggestions: chips(1) }, ''],
  ['media alone in a horizontal card', { media: media() }, '', HORIZONTAL],
  ['media and no suggestions in a horizontal card', { media: media(), suggestions: [] }, '', HORIZONTAL],
  ['media without a height in a vertical card', { media: { contentInfo: FILE } }, '.media.height'],
  ['media without a file', { media: { height: 'TALL' } }, '.media'],
  ['media with two files', { media: media({ fileName: 'files/1' }) }, '.media'],
  ['a file that is not on the web', { media: media({ contentInfo: { fileUrl: 'file:///etc/passwd' } }) }, '.media.contentInfo.fileUrl'],
]

describe('an agent message', () => {
  for (const [name, value] of ACCEPTED) {
    test(`is accepted with ${name}`, () => assert.deepEqual(checkAgentMessage(value, 100), []))
  }
  for (const [name, value, field] of [
    ...REJECTED,
    ...REJECTED_CONTENTS.map(([name, content, path]) => [name, message(content), `contentMessage${path}`] as const),
    ...REJECTED_CHIPS.map(([name, suggestion, path]) => [name, withChip(suggestion), `contentMessage.suggestions[0]${path}`] as const),
    ...REJECTED_CARDS.map(([name, content, path, more]) => {
      return [`a card with ${name}`, standalone(content, more), `contentMessage.richCard.standaloneCard.cardContent${path}`] as const
    }),
  ]) {
    test(`is rejected with ${name}, and the error names the field`, () => {
      assert.deepEqual(
        checkAgentMessage(value, 100).map((violation) => violation.field),
        [field],
      )
    })
  }
  test('has at most 250,000 bytes of JSON', () => {
    assert.deepEqual(checkAgentMessage(hello({}), 250_000), [])
    assert.equal(checkAgentMessage(hello({}), 250_001).length, 1)
  })
})
