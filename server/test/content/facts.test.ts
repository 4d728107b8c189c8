import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contentFacts } from '../../src/content/facts.ts'

type Fields = Record<string, unknown>

const url = 'https://example.com/a.jpg'
const button = (type: string, fields: Fields = {}) => ({ id: type, type, text: 'x', ...fields })
const facts = (message: unknown, basic = false) => {
  const found = contentFacts(message, basic, '')
  assert.ok(found)
  return found
}

describe('the texts of a content', () => {
  test('are measured in characters and bytes, against the limit of their place', () => {
    assert.deepEqual(facts({ type: 'MESSAGE', content: '😀ą€a' }).texts, [
      { path: '/content', characters: 4, maxCharacters: 3072, bytes: 10 },
    ])
    assert.deepEqual(facts({ type: 'MESSAGE', content: 'a' }, true).texts, [
      { path: '/content', characters: 1, maxCharacters: 3072, bytes: 1, maxBytes: 160 },
    ])
    assert.deepEqual(facts({ type: 'CARD', content: 'ab', data: { title: 'abc' } }).texts, [
      { path: '/content', characters: 2, maxCharacters: 2000, bytes: 2 },
      { path: '/data/title', characters: 3, maxCharacters: 200, bytes: 3 },
    ])
    assert.deepEqual(facts({ type: 'CAROUSEL', data: { cards: [{ title: 'a' }, { content: 'b' }] } }).texts, [
      { path: '/data/cards/0/title', characters: 1, maxCharacters: 200, bytes: 1 },
      { path: '/data/cards/1/content', characters: 1, maxCharacters: 2000, bytes: 1 },
    ])
    assert.deepEqual(facts({ type: 'AUDIO', data: { audioUrl: url } }).texts, [])
  })

  test('of a contact are one, as it is sent', () => {
    const data = { name: 'Shop', organization: 'Ltd', phoneNumbers: ['+48500100200'], email: 'a@b.pl', url: 'https://b.pl' }
    const sent = 'Call us\n\nShop\nLtd\n+48500100200\na@b.pl\nhttps://b.pl'
    assert.deepEqual(facts({ type: 'CONTACT', content: 'Call us', data }).texts, [
      { path: '', characters: sent.length, maxCharacters: 3072, bytes: sent.length },
    ])
  })
})

test('a type that nobody knows has no facts, whatever every object has by that name', () => {
  for (const type of ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'POLL', 5, undefined, { toString: 1 }]) {
    assert.equal(contentFacts({ type, content: 'x' }, false, ''), undefined)
    assert.deepEqual(facts({ type: 'CARD', content: 'x', buttons: [{ type }] }).features, ['RICHCARD_STANDALONE'])
  }
})

describe('the billing class', () => {
  for (const [name, message, billingClass] of [
    ['a text of 160 bytes', { type: 'MESSAGE', content: 'ą'.repeat(80) }, 'basic'],
    ['a text of 161 bytes', { type: 'MESSAGE', content: `${'ą'.repeat(80)}a` }, 'single'],
    ['a short text with a button', { type: 'MESSAGE', content: 'a', buttons: [button('location')] }, 'single'],
    ['a short text with empty buttons', { type: 'MESSAGE', content: 'a', buttons: [] }, 'basic'],
    ['a card', { type: 'CARD', content: 'a' }, 'single'],
    ['a place', { type: 'LOCATION', content: 'a', data: { latitude: 1, longitude: 1 } }, 'single'],
  ] as const) {
    test(`of ${name} is ${billingClass}`, () => {
      assert.equal(facts(message).billingClass, billingClass)
    })
  }
})

describe('the features that a phone needs', () => {
  const all = [
    button('url', { url }),
    button('quick_reply', { payload: 'x' }),
    button('call', { phoneNumber: '+48500100200' }),
    button('calendar', { title: 'x' }),
    button('location'),
    { ...button('location', { latitude: 1, longitude: 1 }), id: 'map' },
    button('trigger_template', { templateId: 1 }),
  ]
  for (const [name, message, features] of [
    ['a text', { type: 'MESSAGE', content: 'a' }, []],
    [
      'a text with every button',
      { type: 'MESSAGE', content: 'a', buttons: all },
      ['ACTION_CREATE_CALENDAR_EVENT', 'ACTION_DIAL', 'ACTION_OPEN_URL', 'ACTION_SHARE_LOCATION', 'ACTION_VIEW_LOCATION'],
    ],
    ['replies', { type: 'MESSAGE', content: 'a', buttons: [all[1], all[6]] }, []],
    ['a card', { type: 'CARD', content: 'a' }, ['RICHCARD_STANDALONE']],
    ['a video', { type: 'VIDEO', content: '', data: { videoUrl: url } }, []],
    ['a video with a text', { type: 'VIDEO', content: 'a', data: { videoUrl: url } }, ['RICHCARD_STANDALONE']],
    [
      'a carousel with a button on a card',
      { type: 'CAROUSEL', data: { cards: [{ title: 'a' }, { title: 'b', buttons: [all[0]] }] } },
      ['ACTION_OPEN_URL', 'RICHCARD_CAROUSEL'],
    ],
    ['a contact', { type: 'CONTACT', data: { name: 'x', phoneNumbers: ['+48500100200'] } }, ['ACTION_DIAL']],
    ['a place', { type: 'LOCATION', data: { latitude: 1, longitude: 1 } }, ['ACTION_VIEW_LOCATION']],
    ['a file', { type: 'FILE', data: { fileUrl: url } }, []],
  ] as const) {
    test(`for ${name}: ${features.join(', ') || 'none'}`, () => {
      assert.deepEqual(facts(message).features, features)
    })
  }
})

describe('what iPhones show differently', () => {
  const reply = (id: string) => ({ ...button('quick_reply', { payload: 'x' }), id })
  for (const [name, message, paths] of [
    ['a text', { type: 'MESSAGE', content: 'Hello' }, []],
    ['one link at the end', { type: 'MESSAGE', content: 'See https://example.com ' }, []],
    ['a link in the middle', { type: 'MESSAGE', content: 'See https://example.com now' }, ['/content']],
    ['two links', { type: 'MESSAGE', content: 'https://example.com https://example.com' }, ['/content']],
    ['a plain card', { type: 'CARD', content: 'x', data: { imageUrl: url } }, []],
    ['a card with a height', { type: 'CARD', content: 'x', data: { height: 'TALL' } }, ['/data/height']],
    [
      'a horizontal card with an image',
      { type: 'CARD', content: 'x', data: { imageUrl: url, orientation: 'HORIZONTAL' } },
      ['/data/orientation'],
    ],
    ['a GIF', { type: 'CARD', data: { imageUrl: 'https://example.com/a.GIF?x=1' } }, ['/data/imageUrl']],
    ['a horizontal card without an image', { type: 'CARD', content: 'x', data: { orientation: 'HORIZONTAL' } }, []],
    ['a card of 150 characters', { type: 'CARD', content: 'x'.repeat(100), data: { title: 'y'.repeat(50) } }, []],
    ['a card with a long title alone', { type: 'CARD', data: { title: 'y'.repeat(160) } }, ['/data/title']],
    [
      'a video with a long text and a link',
      { type: 'VIDEO', content: `https://example.com ${'x'.repeat(150)}`, data: { videoUrl: url } },
      ['/content', '/content'],
    ],
    ['a video alone', { type: 'VIDEO', data: { videoUrl: url } }, []],
    ['a GIF as a file', { type: 'FILE', data: { fileUrl: 'https://example.com/a.gif' } }, ['/data/fileUrl']],
    [
      'a place with a link in its text',
      { type: 'LOCATION', content: 'https://example.com here', data: { latitude: 1, longitude: 1 } },
      ['/content'],
    ],
    ['a contact with two links', { type: 'CONTACT', content: 'https://example.com', data: { name: 'x', phoneNumbers: [], url } }, ['']],
    ['a link in a card', { type: 'CARD', content: 'See https://example.com' }, ['/content']],
    ['a long card', { type: 'CARD', content: 'x'.repeat(100), data: { title: 'y'.repeat(51) } }, ['/content']],
    ['three replies and a page', { type: 'CARD', content: 'x', buttons: [reply('a'), reply('b'), reply('c'), button('url', { url })] }, []],
    ['four replies', { type: 'CARD', content: 'x', buttons: ['a', 'b', 'c', 'd'].map(reply) }, ['/buttons']],
    ['two pages', { type: 'CARD', content: 'x', buttons: [button('url', { url }), { ...button('url', { url }), id: 'b' }] }, ['/buttons']],
    ['a carousel', { type: 'CAROUSEL', data: { cards: [{ title: 'a' }, { title: 'b' }] } }, []],
    [
      'a carousel with all of it',
      {
        type: 'CAROUSEL',
        buttons: [reply('a')],
        data: {
          cardWidth: 'SMALL',
          cards: [
            { title: 'a', height: 'SHORT' },
            { title: 'b', imageUrl: 'https://example.com/a.gif' },
          ],
        },
      },
      ['/data/cardWidth', '/buttons', '/data/cards/0/height', '/data/cards/1/imageUrl'],
    ],
    ['a sound', { type: 'AUDIO', data: { audioUrl: url } }, []],
  ] as const) {
    test(`of ${name}: ${paths.join(', ') || 'nothing'}`, () => {
      assert.deepEqual(
        facts(message).iphone.map(({ path }) => path),
        paths,
      )
    })
  }
})
