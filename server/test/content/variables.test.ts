import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { renderContent } from '../../src/content/variables.ts'

const rendered = (template: string, values = {}) => renderContent({ text: template }, values)
const text = (template: string, values = {}) => (rendered(template, values).content as { text: string }).text

describe('a text with variables', () => {
  test('gets the value, else the default', () => {
    assert.equal(text('Hello {{name}}!', { name: 'Anna' }), 'Hello Anna!')
    assert.equal(text('Hello {{name|you}}!'), 'Hello you!')
    assert.equal(text('Hello {{name|you}}!', { name: '' }), 'Hello !')
    assert.equal(text('Hello{{name|}}!'), 'Hello!')
    assert.equal(text('{{a}}{{b}}{{a}}', { a: '1', b: '2' }), '121')
  })

  test('reports variables without a value or default', () => {
    assert.deepEqual(rendered('{{a}} {{b|x}} {{a}} {{c}}', { c: '1' }).missing, [
      { path: '/text', reason: 'has the variable a, which has no value and no default' },
    ])
    assert.equal(rendered('{{constructor}} {{toString}}').missing.length, 2)
  })

  test('keeps what is no placeholder', () => {
    const kept = ['{name}', '{{ name }}', '{{1a}}', '{{na-me}}', '{{}}', '{{name', 'name}}', `{{${'a'.repeat(65)}}}`, '{{a|{b}}}', '{{ą}}']
    for (const each of kept) assert.equal(text(each, { name: 'x', a: 'y', b: 'z' }).replace('z', '{b}'), each)
  })

  test('takes \\{{ for {{', () => {
    assert.equal(text('\\{{name}} is {{name}}', { name: 'Anna' }), '{{name}} is Anna')
    assert.deepEqual(rendered('\\{{a}} {{b|c}}').fields, [{ path: '/text', names: ['b'], required: [], literal: '{{a}} ' }])
  })

  test('never takes a value or a default for a placeholder', () => {
    assert.equal(text('{{a}}', { a: '{{b}}', b: 'x' }), '{{b}}')
    assert.equal(text('{{a}}b}}', { a: '{{', b: 'x' }), '{{b}}')
    fc.assert(
      fc.property(fc.array(fc.constantFrom('{', '{{', '}}', '\\', '|', 'a', 'b', '{{a}}')), fc.string(), fc.string(), (parts, a, b) => {
        const marks = { a: '\u{1}', b: '\u{2}' }
        const marked = text(parts.join(''), marks)
        const expected = marked.replaceAll('\u{1}', () => a).replaceAll('\u{2}', () => b)
        assert.equal(text(parts.join(''), { a, b }), expected)
      }),
    )
  })

  test('takes time that grows with its length only', () => {
    for (const part of ['{{a|', '{{', '\\{{', `{{${'a'.repeat(64)}`, '{{a|x']) {
      const long = part.repeat(250_000 / part.length)
      const from = performance.now()
      rendered(long)
      assert.ok(performance.now() - from < 1_000, part)
    }
  })
})

const ADDRESS = fc.array(fc.constantFrom('/', '?', '#', 'a', '.', '@', ':', '{{v}}', '{{v|/}}', '{{v|x}}', '{{v|?}}'), { maxLength: 6 })

describe('a content with variables', () => {
  test('gets values in its texts and addresses, and nowhere else', () => {
    const content = {
      type: '{{v}}',
      content: '{{v}}',
      buttons: [{ id: '{{v}}', type: 'url', text: '{{v}}', url: 'https://example.com/{{v}}?q={{v}}' }],
      data: {
        title: '{{v}}',
        fileName: '{{v}}',
        cards: [{ content: '{{v}}', imageUrl: 'https://example.com/{{v}}' }],
        phoneNumbers: ['{{v}}'],
      },
    }
    const { content: put, fields, explain, missing } = renderContent(content, { v: 'ą/ß' })
    const encoded = '%C4%85%2F%C3%9F'
    assert.deepEqual(put, {
      type: '{{v}}',
      content: 'ą/ß',
      buttons: [{ id: '{{v}}', type: 'url', text: 'ą/ß', url: `https://example.com/${encoded}?q=${encoded}` }],
      data: {
        title: 'ą/ß',
        fileName: '{{v}}',
        cards: [{ content: 'ą/ß', imageUrl: `https://example.com/${encoded}` }],
        phoneNumbers: ['ą/ß'],
      },
    })
    assert.deepEqual(
      fields.map(({ path }) => path),
      [
        '/content',
        '/buttons/0/text',
        '/buttons/0/url',
        '/data/title',
        '/data/cards/0/content',
        '/data/cards/0/imageUrl',
        '/data/phoneNumbers/0',
      ],
    )
    assert.deepEqual([explain([]), missing], [[], []])
  })

  test('has a valid sample in each field if the values come later', () => {
    const data = {
      name: '{{v}}',
      title: '{{v}}!',
      phoneNumbers: ['{{v}}!'],
      email: '{{v}}!',
      url: 'https://example.com/{{v}}',
      organization: '{{v|none}}',
    }
    const { content, missing } = renderContent({ data }, undefined)
    const url = 'https://example.com/'
    assert.deepEqual(content, {
      data: { name: 'x', title: '!', phoneNumbers: ['+48500100200'], email: 'a@example.com', url, organization: 'none' },
    })
    assert.deepEqual(missing, [])
  })

  test('without variables is the same object', () => {
    const content = { type: 'MESSAGE', content: 'Hello {you}', data: null, buttons: [1, 'x', {}] }
    assert.equal(renderContent(content, { you: 'x' }).content, content)
  })

  test('says which field has a variable without a value', () => {
    assert.deepEqual(renderContent({ content: '{{a}} {{a}} {{b}}' }, { b: '' }).missing, [
      { path: '/content', reason: 'has the variable a, which has no value and no default' },
    ])
  })

  test('refuses an address whose scheme or host a value could change', () => {
    const refused = [
      '{{v}}',
      '{{v}}://example.com/',
      'https://{{v}}/',
      'https://example.com{{v}}',
      'https://a.{{v}}.example.com/x',
      'https:{{v}}',
    ]
    for (const url of refused) assert.equal(renderContent({ url }, { v: 'x' }).explain([]).length, 1, url)
    for (const url of ['https://example.com/{{v}}', 'https://example.com?{{v}}', 'https://example.com#{{v}}'])
      assert.deepEqual(renderContent({ url }, { v: 'x' }).explain([]), [], url)
  })

  test('keeps the scheme and the host of an address, whatever the value', () => {
    fc.assert(
      fc.property(ADDRESS, fc.string({ unit: 'grapheme' }), (parts, v) => {
        const address = `https://example.com${parts.join('')}`
        const urlWith = (values: Record<string, string>) => (renderContent({ url: address }, values).content as { url: string }).url
        // A refused address stays as it is.
        if (renderContent({ url: address }, { v }).explain([]).length > 0) return assert.equal(urlWith({ v }), address)
        const [one, other] = [urlWith({ v }), urlWith({ v: 'other' })]
        assert.ok(!one.includes(' '))
        assert.equal(URL.parse(one)?.origin, URL.parse(other)?.origin)
      }),
    )
  })
})
