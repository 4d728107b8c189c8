import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { folded, matchingKeyword, meaningOf } from '../../src/replies/words.ts'
import { cpuMs } from '../support/cpu.ts'

describe('a folded text', () => {
  const texts: [string, string][] = [
    ['Zażółć GĘŚLĄ Jaźń', 'zazolc gesla jazn'],
    ['ŁÓDŹ łódź', 'lodz lodz'],
    ['Straße STRASSE STRAẞE', 'strasse strasse strasse'],
    ['Ærø, Þór, Đakovo', 'aero thor dakovo'],
    ['İstanbul ıssız', 'istanbul issiz'],
    ['  Where\tis\r\nmy -- ORDER?! ', 'where is my order'],
    ['re\u0301sume\u0301 r\u00e9sum\u00e9', 'resume resume'],
    ['ＳＴＯＰ ① ﬁn ℡', 'stop 1 fin tel'],
    ['1\uFE0F\u20E3 STOP\uFE0F', '1 stop'],
    ["l'été d’hiver", 'l ete d hiver'],
    ['ΣΟΦΟΣ σοφός', 'σοφοσ σοφοσ'],
    ['Ціна Ёлка', 'ціна елка'],
    ['की का', 'की का'],
    ['\u{1F600} ... !!!', ''],
    ['', ''],
  ]
  for (const [text, expected] of texts) {
    test(`${JSON.stringify(text)} is ${JSON.stringify(expected)}`, () => {
      assert.equal(folded(text), expected)
    })
  }

  test('stays the same when it is folded again, for all characters', () => {
    const CHUNK = 1_024
    for (let from = 0; from < 0x11_0000; from += CHUNK) {
      const characters = Array.from({ length: CHUNK }, (_, index) => String.fromCodePoint(from + index))
      // Each character alone, and each after another.
      for (const text of [characters.join(' '), characters.join('')]) {
        const once = folded(text)
        assert.equal(folded(once), once, `from U+${from.toString(16)}`)
        assert.match(once, /^[\p{L}\p{M}\p{N} ]*$/u)
        assert.doesNotMatch(once, /^ | {2}| $/)
      }
    }
  })
})

describe('a text that', () => {
  const stops = 'STOP|Stop.|stop!!!| STOP \n|«Stop»|STOPALL|Stop all|UNSUBSCRIBE|End|quit|Opt-out'
  const stopsOfOthers =
    'Rezygnuję|REZYGNUJE|wypisz mnie|Koniec|Stopp|ABMELDEN|Abbestellen|ende|BAJA|Darme de baja|salir|fin|parar|PARAR|Pare|SAIR|cancelar inscrição|ARRET|Arrêt|désabonner|Stop pub'
  test('opts out in any of six languages is a stop', () => {
    for (const text of `${stops}|${stopsOfOthers}`.split('|')) assert.equal(meaningOf(text), 'stop', text)
  })

  test('opts in is a start', () => {
    const starts =
      'START|start!|Unstop|subscribe|ALTA|darme de alta|Démarrer|DEMARRER|começar|COMECAR|Wznów|wznow|zapisz mnie|Anmelden|s’abonner'
    for (const text of starts.split('|')) assert.equal(meaningOf(text), 'start', text)
  })

  test('says anything else or more is neither', () => {
    const others =
      'no|nie|nein|non|não|No.|cancel|Cancelar|anuluj|yes|ok|tak|ja|oui|sí|stop at the bakery|please do not stop|nonstop|don’t stop|start my order|alto|S T O P|S.T.O.P|the end|ende gut|stop start|||?|constructor|__proto__'
    for (const text of others.split('|')) assert.equal(meaningOf(text), undefined, text)
  })
})

describe('the keyword of a text', () => {
  const replies = ['godziny', 'godziny otwarcia', 'cena', 'stop', 'wi fi', 'ŁÓDŹ!'].map((keyword, index) => ({ id: index + 1, keyword }))
  const cases: [string, string | undefined][] = [
    ['Jakie są GODZINY?', 'godziny'],
    ['godziny otwarcia sklepu', 'godziny otwarcia'],
    ['Godziny... otwarcia!', 'godziny otwarcia'],
    ['otwarcia godziny', 'godziny'],
    ['czy jest Wi-Fi', 'wi fi'],
    ['wifi', undefined],
    ['bezcena', undefined],
    ['cenaa', undefined],
    ['CENA', 'cena'],
    ['do Lodz jade', 'ŁÓDŹ!'],
    ['cena i godziny', 'godziny'],
    ['', undefined],
    ['?', undefined],
  ]
  for (const [text, keyword] of cases) {
    test(`${JSON.stringify(text)}: ${keyword ?? 'none'}`, () => assert.equal(matchingKeyword(text, replies)?.keyword, keyword))
  }

  test('is the keyword with the lowest id if several are equally long', () => {
    const equal = [
      { id: 9, keyword: 'cat' },
      { id: 2, keyword: 'dog' },
      { id: 5, keyword: 'cow' },
    ]
    for (const order of [equal, equal.toReversed()]) assert.equal(matchingKeyword('cow cat dog', order)?.id, 2)
  })

  test('has a letter or a digit', () => {
    assert.equal(matchingKeyword('anything', [{ id: 1, keyword: '!' }]), undefined)
    assert.equal(matchingKeyword('', [{ id: 1, keyword: '' }]), undefined)
  })

  test('is found among a hundred in the longest texts within 200 ms of CPU', () => {
    const many = Array.from({ length: 100 }, (_, index) => ({ id: index, keyword: `${'a '.repeat(40)}${index}` }))
    const texts = ['a ', 'ą', 'a\u0301', '\ufdfa', ' ', '!', '\u0301', 'stop ', '\u{1F600}', 'ß'].map((piece) =>
      piece.repeat(10_000 / piece.length),
    )
    for (const text of texts) {
      const tookMs = cpuMs(() => {
        matchingKeyword(text, many)
        meaningOf(text)
      })
      assert.ok(tookMs < 200, `${JSON.stringify(text.slice(0, 5))}: ${tookMs} ms`)
    }
  })
})
