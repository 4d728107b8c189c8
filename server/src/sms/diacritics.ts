import { countSeptets } from './gsm7.ts'

// Pairs of a letter and its plain letter. Unicode does not decompose these letters, because the mark is part of the letter (a stroke, a hook, a
// tail, a missing dot). They come from alphabets in use, from Polish and Maltese to Hausa, not from phonetic notation. Separate letters (ð, þ,
// ŋ, ə) and ligatures (œ, ĳ) have no mark and are not listed.
const MARK_INSIDE =
  'ⱥa ƀb ɓb ƈc ȼc đd ɖd ɗd ɇe ƒf ɠg ǥg ħh ıi ɨi ɉj ȷj ƙk łl ƚl ŀl ɲn ƞn ɵo ƥp ᵽp ɋq ɍr ɽr ŧt ƭt ʈt ⱦt ʉu ʋv ⱳw ƴy ɏy ƶz ȥz'

const PLAIN_LETTERS = new Map<string, string>()
for (const [marked = '', plain = ''] of MARK_INSIDE.split(' ')) {
  // Set the capital first: the capital of ȷ is ȷ itself.
  PLAIN_LETTERS.set(marked.toUpperCase(), plain.toUpperCase())
  PLAIN_LETTERS.set(marked, plain)
}

// Letters only: with a mark, any other character is another sign (≠ is an equals sign with a stroke, a keycap a digit in a frame).
const LETTER_AND_ITS_MARKS = /\p{L}\p{Mn}*/gu

/**
 * Replaces each letter that GSM-7 does not have with the letter without its mark (ą with a), if GSM-7 has that. Every other character
 * stays: é, which GSM-7 has, and й, whose plain и it does not have either. Precomposed and decomposed letters give the same result.
 */
export function withoutDiacritics(text: string): string {
  if (countSeptets(text) !== undefined) return text
  return text.replaceAll(LETTER_AND_ITS_MARKS, withoutMarks)
}

/**
 * If a letter has several marks, the first is nearest to the letter, and GSM-7 may have the letter with it: ǖ becomes ü, not u. No letter
 * of GSM-7 has two marks, so further marks are ignored.
 */
function withoutMarks(letter: string): string {
  if (isGsm7(letter)) return letter
  const [base = '', firstMark = ''] = letter.normalize('NFD')
  const plain = PLAIN_LETTERS.get(base) ?? base
  const withFirstMark = `${plain}${firstMark}`.normalize('NFC')
  if (isGsm7(withFirstMark)) return withFirstMark
  return isGsm7(plain) ? plain : letter
}

function isGsm7(text: string): boolean {
  return countSeptets(text) !== undefined
}
