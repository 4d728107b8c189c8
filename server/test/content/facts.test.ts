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

test('measures each text in characters and bytes, with the limits of its place; a contact is one text', () => {
  const contact = { name: 'Shop', organization: 'Ltd', phoneNumbers: ['+48500100200'], email: 'a@b.pl', url: 'https://b.pl' }
  const { length } = 'Call us\n\nShop\nLtd\n+48500100200\na@b.pl\nhttps://b.pl'
  for (const [message, ...texts] of [
    [{ type: 'MESSAGE', content: '😀ą€a' }, ['/content', 4, 3072, 10]],
    [{ type: 'CARD', content: 'ab', data: { title: 'abc' } }, ['/content', 2, 2000, 2], ['/data/title', 3, 200, 3]],
    [
      { type: 'CAROUSEL', data: { cards: [{ title: 'a' }, { content: 'b' }] } },
      ['/data/cards/0/title', 1, 200, 1],
      ['/data/cards/1/content', 1, 2000, 1],
    ],
    [{ type: 'AUDIO', data: { audioUrl: url } }],
    [{ type: 'CONTACT', content: 'Call us', data: contact }, ['', length, 3072, length]],
  ] as [unknown, ...[string, number, number, number][]][]) {
    const expected = texts.map(([path, characters, maxCharacters, bytes]) => ({ path, characters, maxCharacters, bytes }))
    assert.deepEqual(facts(message).texts, expected)
  }
  assert.deepEqual(facts({ type: 'MESSAGE', content: 'a' }, true).texts, [
    { path: '/content', characters: 1, maxCharacters: 3072, bytes: 1, maxBytes: 160 },
  ])
})

test('counts the buttons of the message and of each card, with their limits', () => {
  const reply = button('quick_reply')
  for (const [message, ...expected] of [
    [{ type: 'MESSAGE', content: 'a', buttons: [reply, reply] }, ['/buttons', 2, 11]],
    [{ type: 'CARD', content: 'a' }, ['/buttons', 0, 4]],
    [{ type: 'LOCATION', data: { latitude: 1, longitude: 1 }, buttons: 'x' }, ['/buttons', 0, 10]],
    [{ type: 'CONTACT', data: {} }, ['/buttons', 0, 10]],
    [{ type: 'CONTACT', data: { name: 'A', phoneNumbers: ['+48500100200', '+48500100201', '+48500100202'] } }, ['/buttons', 0, 8]],
    [
      { type: 'CAROUSEL', buttons: [reply], data: { cards: [{ title: 'a', buttons: [reply] }, 5] } },
      ['/buttons', 1, 11],
      ['/data/cards/0/buttons', 1, 4],
      ['/data/cards/1/buttons', 0, 4],
    ],
  ] as [unknown, ...[string, number, number][]][]) {
    assert.deepEqual(
      facts(message).buttons,
      expected.map(([path, count, maxCount]) => ({ path, count, maxCount })),
    )
  }
})

test('measures the title and text of each card against what iPhones show', () => {
  for (const [message, ...expected] of [
    [{ type: 'CARD', content: 'ab', data: { title: 'abc' } }, ['', 5]],
    [{ type: 'VIDEO', content: 'ab', data: { videoUrl: url } }, ['', 2]],
    [{ type: 'VIDEO', data: { videoUrl: url } }],
    [{ type: 'MESSAGE', content: 'ab' }],
    [{ type: 'CAROUSEL', data: { cards: [{ title: '😀' }, { content: 5 }] } }, ['/data/cards/0', 1], ['/data/cards/1', 0]],
  ] as [unknown, ...[string, number][]][]) {
    assert.deepEqual(
      facts(message).cards,
      expected.map(([path, characters]) => ({ path, characters, iphoneCharacters: 150 })),
    )
  }
})

test('has no facts for an unknown type, also for the name of an inherited property', () => {
  for (const type of ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'POLL', 5, undefined, { toString: 1 }]) {
    assert.equal(contentFacts({ type, content: 'x' }, false, ''), undefined)
    assert.deepEqual(facts({ type: 'CARD', content: 'x', buttons: [{ type }] }).features, ['RICHCARD_STANDALONE'])
  }
})

describe('has the billing class', () => {
  for (const [name, message, billingClass] of [
    ['a text of 160 bytes', { type: 'MESSAGE', content: 'ą'.repeat(80) }, 'basic'],
    ['a text of 161 bytes', { type: 'MESSAGE', content: `${'ą'.repeat(80)}a` }, 'single'],
    ['a short text with a button', { type: 'MESSAGE', content: 'a', buttons: [button('location')] }, 'single'],
    ['a short text with empty buttons', { type: 'MESSAGE', content: 'a', buttons: [] }, 'basic'],
    ['a card', { type: 'CARD', content: 'a' }, 'single'],
    ['a location', { type: 'LOCATION', content: 'a', data: { latitude: 1, longitude: 1 } }, 'single'],
  ] as const) {
    test(`${billingClass} for ${name}`, () => {
      assert.equal(facts(message).billingClass, billingClass)
    })
  }
})

describe('requires of the phone', () => {
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
    ['a location', { type: 'LOCATION', data: { latitude: 1, longitude: 1 } }, ['ACTION_VIEW_LOCATION']],
    ['a file', { type: 'FILE', data: { fileUrl: url } }, []],
  ] as const) {
    test(`${features.join(', ') || 'nothing'} for ${name}`, () => {
      assert.deepEqual(facts(message).features, features)
    })
  }
})

describe('warns that iPhones show', () => {
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
      'a location with a link in its text',
      { type: 'LOCATION', content: 'https://example.com here', data: { latitude: 1, longitude: 1 } },
      ['/content'],
    ],
    ['a contact with two links', { type: 'CONTACT', content: 'https://example.com', data: { name: 'x', phoneNumbers: [], url } }, ['']],
    ['a link in a card', { type: 'CARD', content: 'See https://example.com' }, ['/content']],
    ['a long card', { type: 'CARD', content: 'x'.repeat(100), data: { title: 'y'.repeat(51) } }, ['/content']],
    ['three replies and a URL', { type: 'CARD', content: 'x', buttons: [reply('a'), reply('b'), reply('c'), button('url', { url })] }, []],
    ['four replies', { type: 'CARD', content: 'x', buttons: ['a', 'b', 'c', 'd'].map(reply) }, ['/buttons']],
    ['two URLs', { type: 'CARD', content: 'x', buttons: [button('url', { url }), { ...button('url', { url }), id: 'b' }] }, ['/buttons']],
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
    ['audio', { type: 'AUDIO', data: { audioUrl: url } }, []],
  ] as const) {
    test(`${paths.join(', ') || 'nothing'} differently for ${name}`, () => {
      assert.deepEqual(
        facts(message).iphone.map(({ path }) => path),
        paths,
      )
    })
  }
})
