// What somebody writes, as it is compared: whoever answers by phone writes without capitals and accents, or with some of them.

/** Letters that are not another letter with a mark, as Unicode has it, but are written as these where a keyboard lacks them. */
const PLAIN_LETTERS = new Map([
  ['ł', 'l'],
  ['ß', 'ss'],
  ['ø', 'o'],
  ['đ', 'd'],
  ['ð', 'd'],
  ['ħ', 'h'],
  ['ŧ', 't'],
  ['ı', 'i'],
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['þ', 'th'],
  ['ς', 'σ'],
])
const NOT_PLAIN = new RegExp(`[${[...PLAIN_LETTERS.keys()].join('')}]`, 'g')

/**
 * Lower case, without accents; words of letters and digits with a space between them, and nothing else. `Inherited` are the marks that go
 * on any letter, accents among them. Marks of one script only, such as the vowels of Devanagari, stay: without them, words become others.
 */
export function folded(text: string): string {
  return text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{Script=Inherited}/gu, '')
    .replaceAll(NOT_PLAIN, (letter) => PLAIN_LETTERS.get(letter) ?? letter)
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ' ')
    .trim()
}

export type Meaning = 'stop' | 'start'

/**
 * What people write to get no more messages, and to get them again. STOP, BAJA, parar and START, ALTA, Démarrer, começar are what Google
 * Messages writes for them. Words that are as well an answer to something else are not here ("no", "cancel", "nie", "alto"); where in
 * doubt, a word that stops is: it holds back campaigns only, and START undoes it.
 */
const WORDS: Record<string, Record<Meaning, string[]>> = {
  english: {
    stop: ['stop', 'stopall', 'stop all', 'unsubscribe', 'end', 'quit', 'opt out', 'optout', 'stop sms'],
    start: ['start', 'unstop', 'subscribe', 'resubscribe', 'opt in', 'optin'],
  },
  polish: {
    stop: ['rezygnuję', 'rezygnacja', 'wypisz', 'wypisz mnie', 'wypisuję się', 'koniec', 'stop wszystko'],
    start: ['wznów', 'zapisz mnie', 'zapisuję się'],
  },
  german: {
    stop: ['stopp', 'stopp alle', 'stop alle', 'abmelden', 'abmeldung', 'abbestellen', 'austragen', 'ende', 'beenden', 'keine werbung'],
    start: ['anmelden', 'wieder anmelden'],
  },
  spanish: {
    stop: ['baja', 'dar de baja', 'darme de baja', 'darse de baja', 'dame de baja', 'cancelar suscripción', 'desuscribir', 'salir', 'fin'],
    start: ['alta', 'dar de alta', 'darme de alta', 'darse de alta', 'suscribir', 'suscribirme', 'comenzar'],
  },
  portuguese: {
    stop: ['parar', 'pare', 'parar tudo', 'sair', 'fim', 'descadastrar', 'cancelar inscrição', 'cancelar subscrição', 'anular subscrição'],
    start: ['começar', 'inscrever', 'subscrever'],
  },
  french: {
    stop: [
      'arrêt',
      'arrêter',
      'arrêtez',
      'stop pub',
      'désabonner',
      'me désabonner',
      'désabonnement',
      'désinscrire',
      'désinscription',
      'quitter',
      'fin',
    ],
    start: ['démarrer', 'réabonner', 'me réabonner', 'réabonnement', "s'abonner", "m'abonner"],
  },
}

const MEANINGS = new Map(
  Object.values(WORDS).flatMap(({ stop, start }) => [
    ...stop.map((word) => [folded(word), 'stop' as const] as const),
    ...start.map((word) => [folded(word), 'start' as const] as const),
  ]),
)

/** Only where the text says nothing else: "stop at the bakery" is an answer to somebody. */
export function meaningOf(text: string): Meaning | undefined {
  return MEANINGS.get(folded(text))
}

/** Of the keywords that the text has as whole words, the longest; of equally long ones, that of the lowest id. */
export function matchingKeyword<T extends { id: number; keyword: string }>(text: string, replies: T[]): T | undefined {
  const words = ` ${folded(text)} `
  return replies
    .map((reply) => ({ reply, keyword: folded(reply.keyword) }))
    .filter(({ keyword }) => keyword !== '' && words.includes(` ${keyword} `))
    .toSorted((a, b) => b.keyword.length - a.keyword.length || a.reply.id - b.reply.id)[0]?.reply
}
