import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkAgentMessage } from '../src/rbm/agent-message.ts'

// Each limit of Google's documents at its edge, and one beyond it.

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
const CHIP = 'contentMessage.suggestions[0]'
const CARD = 'contentMessage.richCard.standaloneCard.cardContent'
const CAROUSEL = 'contentMessage.richCard.carouselCard.cardContents'

const taken: [string, object][] = [
  ['a text of 3072 characters', message({ text: long(3072) })],
  ['a text of 3072 emoji, which are code points', message({ text: long(3072, '😀') })],
  ['11 chips', message({ text: 'Hello', suggestions: chips(11) })],
  ['a label of 25 characters', withChip(reply({ text: long(25, 'ż') }))],
  ['a postback of 2048 characters in a reply', withChip(reply({ postbackData: long(2048) }))],
  ['a postback of 2048 characters in an action', withChip(action({ shareLocationAction: {}, postbackData: long(2048) }))],
  ['a URL of 2048 characters', withChip(action({ openUrlAction: { url: url(2048) } }))],
  ['a fallback URL of 2048 characters', withChip(action({ shareLocationAction: {}, fallbackUrl: url(2048) }))],
  ['a URL opened in a webview', withChip(action({ openUrlAction: { url: url(30), application: 'WEBVIEW', webviewViewMode: 'HALF' } }))],
  ['a number that is no E.164', withChip(action({ dialAction: { phoneNumber: '*100#' } }))],
  ['a place', withChip(action({ viewLocationAction: { latLong: { latitude: 90, longitude: -180 }, label: 'North' } }))],
  ['a place by its name', withChip(action({ viewLocationAction: { query: 'Rynek, Kraków' } }))],
  ['a calendar title of 100 characters', withChip(calendar({ title: long(100) }))],
  ['a calendar description of 500 characters', withChip(calendar({ description: long(500) }))],
  ['a card title of 200 characters', standalone({ title: long(200) })],
  ['a card description of 2000 characters', standalone({ description: long(2000) })],
  ['a card with 4 suggestions', standalone({ title: 'Card', suggestions: chips(4) })],
  ['a card with nothing but media', standalone({ media: media({ height: 'TALL' }) })],
  [
    'a lying card with media and a title',
    standalone(
      { title: 'Card', media: { contentInfo: { fileUrl: url(30) } } },
      { cardOrientation: 'HORIZONTAL', thumbnailImageAlignment: 'LEFT' },
    ),
  ],
  ['a lying card with media and suggestions', standalone({ media: media(), suggestions: chips(1) }, { cardOrientation: 'HORIZONTAL' })],
  ['2 cards', carousel(cards(2))],
  ['10 cards', carousel(cards(10))],
  ['tall media in a wide carousel', carousel(cards(2, { media: media({ height: 'TALL' }) }))],
  ['a file', message({ contentInfo: { fileUrl: url(30), thumbnailUrl: url(30), forceRefresh: true }, suggestions: chips(1) })],
  ['an uploaded file', message({ uploadedRbmFile: { fileName: 'files/1', thumbnailName: 'files/2' } })],
  ['a null, which is a field that isn’t there', message({ text: 'Hello', richCard: null }, { ttl: null })],
  ['a traffic type', message({ text: 'Hello' }, { messageTrafficType: 'ACKNOWLEDGEMENT' })],
  ['a ttl of 15 days', message({ text: 'Hello' }, { ttl: `${15 * 86_400}s` })],
  ['a ttl with a fraction', message({ text: 'Hello' }, { ttl: '10.5s' })],
  ['an expiry 14 days ahead', message({ text: 'Hello' }, { expireTime: inDays(14.9) })],
]

const refused: [string, object, string][] = [
  ['a text of 3073 characters', message({ text: long(3073) }), 'contentMessage.text'],
  ['a text of 3073 emoji', message({ text: long(3073, '😀') }), 'contentMessage.text'],
  ['an empty text', message({ text: '' }), 'contentMessage.text'],
  ['half an emoji', message({ text: '\ud83d' }), 'contentMessage.text'],
  ['no content', message({}), 'contentMessage'],
  ['no message', {}, 'contentMessage'],
  [
    'a text and a card',
    message({ text: 'Hello', richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent: { title: 'Card' } } } }),
    'contentMessage',
  ],
  ['12 chips', message({ text: 'Hello', suggestions: chips(12) }), 'contentMessage.suggestions'],
  ['a label of 26 characters', withChip(reply({ text: long(26) })), `${CHIP}.reply.text`],
  ['no label', withChip({ reply: { postbackData: 'x' } }), `${CHIP}.reply.text`],
  ['no postback', withChip({ reply: { text: 'x' } }), `${CHIP}.reply.postbackData`],
  ['a postback of 2049 characters', withChip(reply({ postbackData: long(2049) })), `${CHIP}.reply.postbackData`],
  [
    'a postback of 2049 characters in an action',
    withChip(action({ shareLocationAction: {}, postbackData: long(2049) })),
    `${CHIP}.action.postbackData`,
  ],
  ['a reply and an action at once', withChip({ ...reply(), ...action({ shareLocationAction: {} }) }), CHIP],
  ['an action that does nothing', withChip(action({})), `${CHIP}.action`],
  ['an action that does two things', withChip(action({ shareLocationAction: {}, dialAction: { phoneNumber: '1' } })), `${CHIP}.action`],
  ['a URL of 2049 characters', withChip(action({ openUrlAction: { url: url(2049) } })), `${CHIP}.action.openUrlAction.url`],
  ['a URL with a space', withChip(action({ openUrlAction: { url: 'https://example.com/a b' } })), `${CHIP}.action.openUrlAction.url`],
  ['a URL without a scheme', withChip(action({ openUrlAction: { url: 'example.com' } })), `${CHIP}.action.openUrlAction.url`],
  [
    'a fallback URL of 2049 characters',
    withChip(action({ shareLocationAction: {}, fallbackUrl: url(2049) })),
    `${CHIP}.action.fallbackUrl`,
  ],
  [
    'an unknown application',
    withChip(action({ openUrlAction: { url: url(30), application: 'PHONE' } })),
    `${CHIP}.action.openUrlAction.application`,
  ],
  ['letters in a phone number', withChip(action({ dialAction: { phoneNumber: '0800-HERALD' } })), `${CHIP}.action.dialAction.phoneNumber`],
  [
    'a latitude over 90',
    withChip(action({ viewLocationAction: { latLong: { latitude: 90.1, longitude: 0 } } })),
    `${CHIP}.action.viewLocationAction.latLong.latitude`,
  ],
  [
    'a place by both',
    withChip(action({ viewLocationAction: { latLong: { latitude: 0, longitude: 0 }, query: 'x' } })),
    `${CHIP}.action.viewLocationAction`,
  ],
  ['a calendar title of 101 characters', withChip(calendar({ title: long(101) })), `${CHIP}.action.createCalendarEventAction.title`],
  [
    'a calendar description of 501 characters',
    withChip(calendar({ description: long(501) })),
    `${CHIP}.action.createCalendarEventAction.description`,
  ],
  ['a calendar time that is none', withChip(calendar({ startTime: 'tomorrow' })), `${CHIP}.action.createCalendarEventAction.startTime`],
  ['the withdrawn compose action', withChip(action({ composeAction: {} })), `${CHIP}.action.composeAction`],
  ['something in a share-location action', withChip(action({ shareLocationAction: { label: 'x' } })), `${CHIP}.action.shareLocationAction`],
  ['a card title of 201 characters', standalone({ title: long(201) }), `${CARD}.title`],
  ['a card description of 2001 characters', standalone({ description: long(2001) }), `${CARD}.description`],
  ['a card with 5 suggestions', standalone({ title: 'Card', suggestions: chips(5) }), `${CARD}.suggestions`],
  ['an empty card', standalone({ suggestions: chips(1) }), CARD],
  [
    'a card without an orientation',
    message({ richCard: { standaloneCard: { cardContent: { title: 'Card' } } } }),
    'contentMessage.richCard.standaloneCard.cardOrientation',
  ],
  ['a lying card with nothing but media', standalone({ media: media() }, { cardOrientation: 'HORIZONTAL' }), CARD],
  ['upright media without a height', standalone({ media: { contentInfo: { fileUrl: url(30) } } }), `${CARD}.media.height`],
  ['media without a file', standalone({ media: { height: 'TALL' } }), `${CARD}.media`],
  ['media with two files', standalone({ media: media({ fileName: 'files/1' }) }), `${CARD}.media`],
  [
    'a file that is not on the web',
    standalone({ media: media({ contentInfo: { fileUrl: 'file:///etc/passwd' } }) }),
    `${CARD}.media.contentInfo.fileUrl`,
  ],
  ['1 card', carousel(cards(1)), CAROUSEL],
  ['11 cards', carousel(cards(11)), CAROUSEL],
  [
    'tall media in a narrow carousel',
    carousel([{ title: 'Card' }, { media: media({ height: 'TALL' }) }], 'SMALL'),
    `${CAROUSEL}[1].media.height`,
  ],
  ['an unknown traffic type', message({ text: 'Hello' }, { messageTrafficType: 'SPAM' }), 'messageTrafficType'],
  ['an expiry and a ttl', message({ text: 'Hello' }, { ttl: '60s', expireTime: inDays(1) }), 'ttl'],
  ['a ttl over 15 days', message({ text: 'Hello' }, { ttl: `${15 * 86_400 + 1}s` }), 'ttl'],
  ['a ttl that is a number', message({ text: 'Hello' }, { ttl: 60 }), 'ttl'],
  ['a ttl without its s', message({ text: 'Hello' }, { ttl: '60' }), 'ttl'],
  ['an expiry over 15 days ahead', message({ text: 'Hello' }, { expireTime: inDays(15.1) }), 'expireTime'],
  ['an expiry in the past', message({ text: 'Hello' }, { expireTime: inDays(-1) }), 'expireTime'],
  ['an expiry on a day that isn’t there', message({ text: 'Hello' }, { expireTime: '2027-02-30T00:00:00Z' }), 'expireTime'],
  ['an expiry at 24:00', message({ text: 'Hello' }, { expireTime: '2027-02-01T24:00:00Z' }), 'expireTime'],
  ['a ttl of nothing', message({ text: 'Hello' }, { ttl: '0s' }), 'ttl'],
  ['a URL without a host', withChip(action({ openUrlAction: { url: 'https:///x' } })), `${CHIP}.action.openUrlAction.url`],
  ['a URL with a port that is none', withChip(action({ openUrlAction: { url: 'https://x:99999/' } })), `${CHIP}.action.openUrlAction.url`],
  [
    'a longitude over 180',
    withChip(action({ viewLocationAction: { latLong: { latitude: 0, longitude: 180.1 } } })),
    `${CHIP}.action.viewLocationAction.latLong.longitude`,
  ],
  ['a lying card with media and no suggestions', standalone({ media: media(), suggestions: [] }, { cardOrientation: 'HORIZONTAL' }), CARD],
  ['an expiry that is no time', message({ text: 'Hello' }, { expireTime: '2026-13-01T00:00:00Z' }), 'expireTime'],
  ['a field that Google does not know', message({ text: 'Hello', caption: 'x' }), 'contentMessage'],
  ['a field named like one that all objects have', message({ text: 'Hello' }, { constructor: 'x' }), ''],
  ['a text that is a number', message({ text: 5 }), 'contentMessage.text'],
]

describe('an agent message', () => {
  for (const [name, value] of taken) {
    test(`is taken with ${name}`, () => assert.deepEqual(checkAgentMessage(value, 100), []))
  }
  for (const [name, value, field] of refused) {
    test(`is refused with ${name}, and the error names the field`, () => {
      assert.deepEqual(
        checkAgentMessage(value, 100).map((violation) => violation.field),
        [field],
      )
    })
  }
  test('may be 250,000 bytes of JSON and not one more', () => {
    assert.deepEqual(checkAgentMessage(message({ text: 'Hello' }), 250_000), [])
    assert.equal(checkAgentMessage(message({ text: 'Hello' }), 250_001).length, 1)
  })
})
