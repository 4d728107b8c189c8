import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodedUrl } from '../../src/content/urls.ts'

describe('encodes by RFC 3986', () => {
  for (const [url, encoded] of [
    ['https://example.com/a b', 'https://example.com/a%20b'],
    ['https://example.com/?q=a b#c d', 'https://example.com/?q=a%20b#c%20d'],
    ['https://example.com/a[1]?b[]=c', 'https://example.com/a%5B1%5D?b%5B%5D=c'],
    ['http://a/b|', 'http://a/b%7C'],
    ['https://example.com/a|b^c', 'https://example.com/a%7Cb%5Ec'],
    ['https://example.com/?q=a|b^c', 'https://example.com/?q=a%7Cb%5Ec'],
    ['https://example.com/#a|b^c', 'https://example.com/#a%7Cb%5Ec'],
    ['https://example.com/?q={"a":`<b>`}', 'https://example.com/?q=%7B%22a%22:%60%3Cb%3E%60%7D'],
    ['https://example.com/100%', 'https://example.com/100%25'],
    ['https://example.com/100%?off=5%', 'https://example.com/100%25?off=5%25'],
    ['https://example.com/%zz', 'https://example.com/%25zz'],
    ['https://example.com/%2', 'https://example.com/%252'],
    ['https://example.com/%%20', 'https://example.com/%25%20'],
    ['https://example.com/a%20b c%C3%A4', 'https://example.com/a%20b%20c%C3%A4'],
    ['https://example.com/grüße?für=dich#süß', 'https://example.com/gr%C3%BC%C3%9Fe?f%C3%BCr=dich#s%C3%BC%C3%9F'],
    ['https://example.com/📦', 'https://example.com/%F0%9F%93%A6'],
    ['https://example.com/\ud83d', 'https://example.com/%EF%BF%BD'],
    ['https://münchen.example/karte', 'https://xn--mnchen-3ya.example/karte'],
    ['https://例え.example:8443/?q=あ', 'https://xn--r8jz45g.example:8443/?q=%E3%81%82'],
  ] as const) {
    test(url, () => {
      assert.equal(encodedUrl(url), encoded)
      assert.equal(encodedUrl(encoded), encoded)
    })
  }
})

describe('leaves a valid address unchanged:', () => {
  for (const url of [
    'https://example.com',
    'HTTPS://Example.COM:443/a/../b',
    'https://example.com/a%20b%c3%A4%2F?q=%7C#%5e',
    "https://user:pass@example.com/-._~!$&'()*+,;=:@/?a=b+c&d=e#f?g/h",
    'https://[2001:db8::1]:8443/',
    'https://xn--mnchen-3ya.example/',
  ]) {
    test(url, () => {
      assert.equal(encodedUrl(url), url)
    })
  }
})
