// Matches what recipients write. People who reply by phone often omit capitals and accents.

/** Letters that Unicode does not decompose into a letter and a mark, and what people write instead of them. */
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
 * Folds a text to lower case without accents: words of letters and digits, separated by single spaces. `Inherited` are the marks that
 * combine with any letter, such as accents. Marks of a single script, such as the vowels of Devanagari, are kept: without them, words
 * become other words.
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

type Meaning = 'stop' | 'start'

/**
 * The words by which recipients opt out and opt in again. Google Messages itself writes STOP, BAJA, parar and START, ALTA, Démarrer, começar.
 * Words that can also reply to something else ("no", "cancel", "nie", "alto") are not listed. In doubt, a stop word is listed: it only holds
 * back campaigns, and START undoes it.
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

/** Matches only if the text says nothing else: "stop at the bakery" is a reply to someone. */
export function meaningOf(text: string): Meaning | undefined {
  return MEANINGS.get(folded(text))
}

/** Returns the reply with the longest keyword that the text contains as whole words; of several, the reply with the lowest id. */
export function matchingKeyword<T extends { id: number; keyword: string }>(text: string, replies: T[]): T | undefined {
  const words = ` ${folded(text)} `
  return replies
    .map((reply) => ({ reply, keyword: folded(reply.keyword) }))
    .filter(({ keyword }) => keyword !== '' && words.includes(` ${keyword} `))
    .toSorted((a, b) => b.keyword.length - a.keyword.length || a.reply.id - b.reply.id)[0]?.reply
}
