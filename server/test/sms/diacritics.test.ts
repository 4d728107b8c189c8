import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { withoutDiacritics } from '../../src/sms/diacritics.ts'
import { countSeptets } from '../../src/sms/gsm7.ts'
import { cpuMs } from '../support/cpu.ts'

const seed = Date.now() % 2 ** 31
const letters = Array.from({ length: 0x20000 }, (_, code) => code)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))
  .filter((character) => /\p{L}/u.test(character))

describe(`a text without diacritical signs (fast-check, seed ${seed})`, () => {
  test('has the plain letter if GSM-7 lacks the one with a mark, in every language', () => {
    for (const [text, plain] of [
      ['Zażółć gęślą jaźń. ZAŻÓŁĆ GĘŚLĄ JAŹŃ', 'Zazolc gesla jazn. ZAZOLC GESLA JAZN'],
      ['Příliš žluťoučký kůň úpěl ďábelské ódy', 'Prilis zlutoucky kun upel dabelské ody'],
      ['Şükrü ağır ığdır İstanbul', 'Sükrü agir igdir Istanbul'],
      ['Ça va, garçon? Noël, où, là, être', 'Ça va, garcon? Noel, où, là, etre'],
      ['árvíztűrő tükörfúrógép', 'arvizturo tükörfurogép'],
      ['Știți că țara', 'Stiti ca tara'],
      ['São João, coração, avô', 'Sao Joao, coracao, avo'],
      ['Đorđe, ħobż, Ŧ, ɓarawo, ƙasa', 'Dorde, hobz, T, barawo, kasa'],
      ['Tiếng Việt, đường, Ở', 'Tieng Viet, duong, O'],
    ] as const)
      assert.equal(withoutDiacritics(text), plain)
  })

  test('keeps the letters of GSM-7', () => {
    const text = 'é è à ù ì ò ä ö ü ñ ø å æ ß Ç É Ä Ö Ñ Ü Ø Å Æ Δ Ω €'
    assert.equal(withoutDiacritics(text), text)
    assert.equal(withoutDiacritics(`${text} ą`), `${text} a`)
  })

  test('keeps a mark that GSM-7 has with its letter, and drops the one on top of it', () => {
    assert.equal(withoutDiacritics('ǖ ǟ ǻ ǿ ǽ ȭ ấ'), 'ü ä å ø æ o a')
  })

  test('keeps characters that would not be in GSM-7 without their mark either', () => {
    for (const text of ['й Ё ї', 'ά Ά Έ ϊ', 'œ Œ ĳ þ ð ŋ ə ẞ', '漢字 שָׁלוֹם नि', '≠ ≮ 1️⃣ #️⃣', '’ – … ™ ½ ª º', '😀', 'ﬁ ａ'])
      assert.equal(withoutDiacritics(text), text)
    assert.equal(withoutDiacritics('й'.normalize('NFD')), 'й'.normalize('NFD'))
    assert.equal(withoutDiacritics('Ώ'), 'Ω')
  })

  test('is the same if letter and mark are two characters', () => {
    assert.equal(withoutDiacritics('a\u0328 z\u0307 c\u0327 \u0141\u0301'), 'a z c L')
    // GSM-7 has these, as one character.
    assert.equal(withoutDiacritics('e\u0301 a\u0308 C\u0327'), 'é ä Ç')
    const different = letters.filter((letter) => {
      const plain = withoutDiacritics(letter)
      return plain !== letter && withoutDiacritics(letter.normalize('NFD')) !== plain
    })
    assert.deepEqual(different, [])
  })

  test('has, for every letter of Unicode, that letter or one of GSM-7 in the same case', () => {
    const changed = letters.filter((letter) => withoutDiacritics(letter) !== letter)
    // Among them the 9 Polish letters in both cases; Unicode has some 570 in all.
    assert.ok(changed.length > 500)
    for (const letter of changed) {
      const plain = withoutDiacritics(letter)
      assert.ok(plain.length === 1 && countSeptets(plain) === 1 && /\p{L}/u.test(plain), letter)
      assert.ok(countSeptets(letter) === undefined, letter)
      assert.equal(/\p{Ll}/u.test(plain), /\p{Ll}/u.test(letter), letter)
    }
  })

  test('stays the same when it is converted again, and keeps text in GSM-7', () => {
    const character = fc.oneof(fc.constantFrom(...'aeąłéçйΏ\u0301\u0328\u0308😀'), fc.constantFrom(...letters))
    fc.assert(
      fc.property(fc.array(character, { maxLength: 60 }), (characters) => {
        const text = characters.join('')
        const once = withoutDiacritics(text)
        assert.equal(withoutDiacritics(once), once)
        if (countSeptets(text) !== undefined) assert.equal(once, text)
      }),
      { numRuns: 500, seed },
    )
  })

  test('takes less than 200 ms of CPU time, even for one letter with 1529 marks', () => {
    const texts = ['ą'.repeat(1530), 'й'.repeat(1530), `a${'\u0301\u0328'.repeat(764)}`, '\u0301'.repeat(1530)]
    const tookMs = cpuMs(() => {
      for (const text of texts) withoutDiacritics(text)
    })
    assert.ok(tookMs < 200, `${tookMs} ms`)
    assert.equal(withoutDiacritics(texts[2] as string), 'a')
  })
})
