import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { composeText, encodingFor, linksIn, nonGsm7Characters } from '../../src/sms/compose.ts'
import { withoutDiacritics } from '../../src/sms/diacritics.ts'
import { cpuMs } from '../support/cpu.ts'

const seed = Date.now() % 2 ** 31
const shortLink = (index: number) => `https://h.pl/l/${index}`
const never = () => assert.fail('a link was shortened')
const link = fc
  .tuple(
    fc.constantFrom('http://', 'https://'),
    fc.constantFrom('a.pl', 'b.example:8080', 'user@c.pl', '[2001:db8::1]', 'żółw.pl'),
    fc.array(fc.constantFrom(..."aZ9/-._~?&=#+,;:!*@$'ąż", '%2F', '(b)', '[]'), { maxLength: 20 }),
  )
  .map(([scheme, host, rest]) => `${scheme}${host}/${rest.join('')}x`)

describe('finds links', () => {
  test('anywhere in a text, in their order, repeated ones included', () => {
    assert.deepEqual(linksIn('https://b.pl/2 and http://a.pl, then https://b.pl/2'), ['https://b.pl/2', 'http://a.pl', 'https://b.pl/2'])
    assert.deepEqual(linksIn('HTTPS://A.pl/X\nHttp://b.pl:8080/?q=1&r=ą#top\tend'), ['HTTPS://A.pl/X', 'Http://b.pl:8080/?q=1&r=ą#top'])
    assert.deepEqual(linksIn('https://a.pl,https://b.pl;http://c.pl'), ['https://a.pl', 'https://b.pl', 'http://c.pl'])
    assert.deepEqual(linksIn('https://archive.org/web/https://a.pl/x?u=http://b.pl'), [
      'https://archive.org/web/https://a.pl/x?u=http://b.pl',
    ])
    assert.deepEqual(linksIn('Sklep:https://a.pl 请看https://b.cn'), ['https://a.pl', 'https://b.cn'])
  })

  test('without the punctuation after them', () => {
    const several = ['...', '?!', '!")', ').', '.)', ')))', '”.']
    for (const after of [...'.,;:!?\'"”’»…。>]}', ...several, '🎉', '🇵🇱', '\u200b', '\u0007', '\u00a0x'])
      assert.deepEqual(linksIn(`https://a.pl/x${after}`), ['https://a.pl/x'], after)
    assert.deepEqual(linksIn('(https://a.pl) [http://b.pl] „https://c.pl” <https://d.pl>'), [
      'https://a.pl',
      'http://b.pl',
      'https://c.pl',
      'https://d.pl',
    ])
  })

  test('with the punctuation and the bracket pairs within them', () => {
    const links = ['https://a.pl/A_(b)', 'https://a.pl/?a[]=1;b=2,3!x', "https://a.pl/it's", 'https://[2001:db8::1]/', 'https://a.pl/-_~/']
    for (const link of [...links, 'https://ż.pl/ó']) assert.deepEqual(linksIn(`${link}. (${link})`), [link, link])
  })

  test('only of http and https, only those that a browser opens, and not within a word', () => {
    const invalid = ['http:// https://. http://?', 'https:/a.pl', 'https://a.pl:99999', 'http://%/']
    for (const text of ['', 'a.pl www.a.pl', 'ftp://a.pl', 'shttp://a.pl', 'httpſ://a.pl', ...invalid])
      assert.deepEqual(linksIn(text), [], text)
  })

  test('of at most 2048 characters', () => {
    const longest = `https://a.pl/${'x'.repeat(2048 - 13)}`
    assert.deepEqual(linksIn(`${longest}.`), [longest])
    assert.deepEqual(linksIn(`${longest}x http://b.pl`), ['http://b.pl'])
  })

  test('at a cost that grows no faster than the text', () => {
    const links = ['http://', 'http:/', 'https://a.pl/', ',https://', 'https://%,', 'http://% ', 'https://a.pl ']
    for (const piece of [...links, 'h', '(', ')', '.', '[{', ')]}.', '”', '\u0301']) {
      // Fifty of the longest texts in one: a quadratic cost would be 2500 times that of one of them.
      for (const length of [1530, 76_500]) {
        const text = `https://a.pl/${piece.repeat(length / piece.length)}`
        const tookMs = cpuMs(() => linksIn(text))
        assert.ok(tookMs < 1_000, `${length} characters of ${piece} took ${tookMs} ms`)
      }
    }
  })
})

describe(`the text of an SMS (fast-check, seed ${seed})`, () => {
  test('has diacritical signs only if the caller wants them; links keep theirs', () => {
    const content = 'Zażółć: https://żółw.pl/ą?ł=ę. Żółw é'
    assert.equal(composeText({ content }, never), 'Zazolc: https://żółw.pl/ą?ł=ę. Zolw é')
    assert.equal(composeText({ content, diacriticalSigns: false, urlShortening: false }, never), 'Zazolc: https://żółw.pl/ą?ł=ę. Zolw é')
    assert.equal(composeText({ content, diacriticalSigns: true }, never), content)
  })

  test('has a short link for each link if the caller wants them', () => {
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

  test('differs from the content only in its links and signs', () => {
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

  test('has links found between spaces and in brackets', () => {
    fc.assert(
      fc.property(link, (url) => {
        assert.deepEqual(linksIn(`See ${url} or (${url.toUpperCase()}).`), [url, url.toUpperCase()])
      }),
      { numRuns: 200, seed },
    )
  })
})

describe('the encoding of an SMS', () => {
  test('is GSM-7 if the text fits it and the caller does not want Unicode; GSM-7 is impossible if it does not fit', () => {
    for (const [wanted, plain, polish] of [
      ['AUTO', 'GSM7', 'UCS2'],
      ['UNICODE', 'UCS2', 'UCS2'],
      ['GSM7', 'GSM7', undefined],
    ] as const) {
      assert.deepEqual([encodingFor(wanted, 'Hi € é'), encodingFor(wanted, 'Hi ą')], [plain, polish])
    }
  })

  test('names the characters that GSM-7 lacks: each once, at most five', () => {
    assert.deepEqual(nonGsm7Characters('Hi € é [x]'), [])
    assert.deepEqual(nonGsm7Characters('ą😀ąb😀’'), ['ą', '😀', '’'])
    assert.deepEqual(nonGsm7Characters('ąćęłńóśźż'), ['ą', 'ć', 'ę', 'ł', 'ń'])
  })
})
