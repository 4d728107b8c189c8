import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { composeText, encodingFor, linksIn, strangersIn } from '../../src/sms/compose.ts'
import { withoutDiacritics } from '../../src/sms/diacritics.ts'

const seed = Date.now() % 2 ** 31
const shortLink = (index: number) => `https://h.pl/l/${index}`
const never = () => assert.fail('no link was to be shortened')
const link = fc
  .tuple(
    fc.constantFrom('http://', 'https://'),
    fc.constantFrom('a.pl', 'b.example:8080', 'user@c.pl', '[2001:db8::1]', 'żółw.pl'),
    fc.array(fc.constantFrom(..."aZ9/-._~?&=#+,;:!*@$'ąż", '%2F', '(b)', '[]'), { maxLength: 20 }),
  )
  .map(([scheme, host, rest]) => `${scheme}${host}/${rest.join('')}x`)

describe('the links of a text', () => {
  test('are found wherever they stand, in their order, each time they stand there', () => {
    assert.deepEqual(linksIn('https://b.pl/2 and http://a.pl, then https://b.pl/2'), ['https://b.pl/2', 'http://a.pl', 'https://b.pl/2'])
    assert.deepEqual(linksIn('HTTPS://A.pl/X\nHttp://b.pl:8080/?q=1&r=ą#top\tend'), ['HTTPS://A.pl/X', 'Http://b.pl:8080/?q=1&r=ą#top'])
    assert.deepEqual(linksIn('https://a.pl,https://b.pl;http://c.pl'), ['https://a.pl', 'https://b.pl', 'http://c.pl'])
    assert.deepEqual(linksIn('https://archive.org/web/https://a.pl/x?u=http://b.pl'), [
      'https://archive.org/web/https://a.pl/x?u=http://b.pl',
    ])
    assert.deepEqual(linksIn('Sklep:https://a.pl 请看https://b.cn'), ['https://a.pl', 'https://b.cn'])
  })

  test('end before the punctuation that follows them', () => {
    for (const after of [
      ...'.,;:!?\'"”’»…。',
      '...',
      '?!',
      '!")',
      ').',
      '.)',
      '>',
      ']',
      '}',
      ')))',
      '”.',
      '🎉',
      '🇵🇱',
      '\u200b',
      '\u0007',
      '\u00a0x',
    ])
      assert.deepEqual(linksIn(`https://a.pl/x${after}`), ['https://a.pl/x'], after)
    assert.deepEqual(linksIn('(https://a.pl) [http://b.pl] „https://c.pl” <https://d.pl>'), [
      'https://a.pl',
      'http://b.pl',
      'https://c.pl',
      'https://d.pl',
    ])
  })

  test('keep the punctuation within them, and brackets that are opened within them', () => {
    for (const link of [
      'https://a.pl/A_(b)',
      'https://a.pl/?a[]=1;b=2,3!x',
      "https://a.pl/it's",
      'https://[2001:db8::1]/',
      'https://a.pl/-_~/',
      'https://ż.pl/ó',
    ])
      assert.deepEqual(linksIn(`${link}. (${link})`), [link, link])
  })

  test('are only those that a browser takes, of http and https, and not of a word that ends like that', () => {
    for (const text of [
      '',
      'a.pl www.a.pl',
      'http:// https://. http://?',
      'https:/a.pl',
      'ftp://a.pl',
      'shttp://a.pl',
      'https://a.pl:99999',
      'http://%/',
      'httpſ://a.pl',
    ])
      assert.deepEqual(linksIn(text), [], text)
  })

  test('have at most 2048 characters', () => {
    const longest = `https://a.pl/${'x'.repeat(2048 - 13)}`
    assert.deepEqual(linksIn(`${longest}.`), [longest])
    assert.deepEqual(linksIn(`${longest}x http://b.pl`), ['http://b.pl'])
  })

  test('are found in a time that grows no faster than the text, whatever stands there', () => {
    const piecesOfAText = [
      'http://',
      'http:/',
      'https://a.pl/',
      ',https://',
      'https://%,',
      'http://% ',
      'h',
      '(',
      ')',
      '.',
      '[{',
      ')]}.',
      'https://a.pl ',
      '”',
      '\u0301',
    ]
    for (const piece of piecesOfAText) {
      // Fifty of the longest texts in one: what took the square of the time would take 2500 times that of one of them.
      for (const length of [1530, 76_500]) {
        const text = `https://a.pl/${piece.repeat(length / piece.length)}`
        const startedAt = performance.now()
        linksIn(text)
        assert.ok(performance.now() - startedAt < 1_000, `${length} characters of ${piece}`)
      }
    }
  })
})

describe(`the text of an SMS (fast-check, seed ${seed})`, () => {
  test('has no diacritical signs unless they are wanted; links keep theirs', () => {
    const content = 'Zażółć: https://żółw.pl/ą?ł=ę. Żółw é'
    assert.equal(composeText({ content }, never), 'Zazolc: https://żółw.pl/ą?ł=ę. Zolw é')
    assert.equal(composeText({ content, diacriticalSigns: false, urlShortening: false }, never), 'Zazolc: https://żółw.pl/ą?ł=ę. Zolw é')
    assert.equal(composeText({ content, diacriticalSigns: true }, never), content)
  })

  test('has short links where they are wanted, each occurrence its own', () => {
    const content = 'Łap: (https://a.pl/ą), https://b.pl! https://a.pl/ą'
    const shortened = '(https://h.pl/l/0), https://h.pl/l/1! https://h.pl/l/2'
    assert.equal(composeText({ content, urlShortening: true }, shortLink), `Lap: ${shortened}`)
    assert.equal(composeText({ content, urlShortening: true, diacriticalSigns: true }, shortLink), `Łap: ${shortened}`)
    assert.equal(composeText({ content: 'no link', urlShortening: true }, never), 'no link')
    assert.equal(
      composeText({ content: 'https://a.pl', urlShortening: true }, () => '$&'),
      '$&',
    )
  })

  test('is the content, with only the links and the signs replaced', () => {
    const mark = '\u0000'
    const piece = fc.oneof(
      link,
      fc.constantFrom(...'ą(),.;: ”\n😀', ' http://ż.pl/ó ', '?q=ł&r=(1)#é', 'https://', 'http://%', 'ż'.normalize('NFD')),
      fc.integer({ min: 1, max: 0xd7ff }).map((code) => String.fromCodePoint(code)),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const content = pieces.join('')
        const links = linksIn(content)
        const asked: number[] = []
        const marked = composeText({ content, diacriticalSigns: true, urlShortening: true }, (index) => {
          asked.push(index)
          return mark
        })
        assert.deepEqual(asked, [...links.keys()])
        const prose = marked.split(mark)
        const joined = (write: (text: string) => string) => prose.map((text, index) => write(text) + (links[index] ?? '')).join('')
        assert.equal(
          joined((text) => text),
          content,
        )
        assert.equal(composeText({ content, diacriticalSigns: true }, never), content)
        assert.equal(composeText({ content }, never), joined(withoutDiacritics))
      }),
      { numRuns: 200, seed },
    )
  })

  test('a link between spaces or in brackets is found as it was written', () => {
    fc.assert(
      fc.property(link, (url) => {
        assert.deepEqual(linksIn(`See ${url} or (${url.toUpperCase()}).`), [url, url.toUpperCase()])
      }),
      { numRuns: 200, seed },
    )
  })
})

describe('the encoding of an SMS', () => {
  test('is GSM-7 where the text fits it, unless Unicode is wanted; GSM-7 is none where it does not fit', () => {
    assert.equal(encodingFor('AUTO', 'Hi € é'), 'GSM7')
    assert.equal(encodingFor('AUTO', 'Hi ą'), 'UCS2')
    assert.equal(encodingFor('UNICODE', 'Hi'), 'UCS2')
    assert.equal(encodingFor('UNICODE', 'Hi ą'), 'UCS2')
    assert.equal(encodingFor('GSM7', 'Hi € é'), 'GSM7')
    assert.equal(encodingFor('GSM7', 'Hi ą'), undefined)
  })

  test('what GSM-7 lacks is named: whole characters, each once, at most five', () => {
    assert.deepEqual(strangersIn('Hi € é [x]'), [])
    assert.deepEqual(strangersIn('ą😀ąb😀’'), ['ą', '😀', '’'])
    assert.deepEqual(strangersIn('ąćęłńóśźż'), ['ą', 'ć', 'ę', 'ł', 'ń'])
  })
})
