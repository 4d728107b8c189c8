import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitLinks, trailingLink } from '../src/phone/links.ts'

test('a link in a text ends before the punctuation that follows it', () => {
  assert.deepEqual(splitLinks('No link.'), ['No link.'])
  assert.deepEqual(splitLinks('See https://example.com/x, please.'), ['See ', 'https://example.com/x', ', please.'])
  assert.deepEqual(splitLinks('(See http://example.com/b).'), ['(See ', 'http://example.com/b', ').'])
  assert.deepEqual(splitLinks('“https://example.com/?a=1”!'), ['“', 'https://example.com/?a=1', '”!'])
  assert.deepEqual(splitLinks('https://a.example https://b.example/'), ['', 'https://a.example', ' ', 'https://b.example/', ''])
})

test('a closing bracket that a link opens is a part of it', () => {
  assert.deepEqual(splitLinks('https://example.com/A_(b).'), ['', 'https://example.com/A_(b)', '.'])
  assert.deepEqual(splitLinks('(https://example.com/A_(b))'), ['(', 'https://example.com/A_(b)', ')'])
})

test('a text has a trailing link if it ends with its only link', () => {
  assert.equal(trailingLink('Track it: https://example.com/x'), 'https://example.com/x')
  assert.equal(trailingLink('https://example.com/x\n'), 'https://example.com/x')
  for (const text of ['No link', 'See https://example.com/x.', 'https://example.com/x today', 'https://a.example https://b.example'])
    assert.equal(trailingLink(text), undefined, text)
})
