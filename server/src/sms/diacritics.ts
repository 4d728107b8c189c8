import { countSeptets } from './gsm7.ts'

// Letters whose mark is one with them (a stroke, a hook, a tail, or the dot that is missing), so that Unicode does not take them apart: each
// with the letter that is left. They are those of alphabets in use, from Polish and Maltese to Hausa, not the signs of phonetic notation.
// Letters of their own (ð, þ, ŋ, ə) and ligatures (œ, ĳ) are none with a mark.
const MARK_INSIDE =
  'ⱥa ƀb ɓb ƈc ȼc đd ɖd ɗd ɇe ƒf ɠg ǥg ħh ıi ɨi ɉj ȷj ƙk łl ƚl ŀl ɲn ƞn ɵo ƥp ᵽp ɋq ɍr ɽr ŧt ƭt ʈt ⱦt ʉu ʋv ⱳw ƴy ɏy ƶz ȥz'

const PLAIN_LETTERS = new Map<string, string>()
for (const [marked = '', plain = ''] of MARK_INSIDE.split(' ')) {
  // The capital first: that of ȷ is ȷ itself.
  PLAIN_LETTERS.set(marked.toUpperCase(), plain.toUpperCase())
  PLAIN_LETTERS.set(marked, plain)
}

// Only of letters: what a mark makes of another character is another sign (≠ is an equals sign with a stroke, a keycap a digit in a frame).
const LETTER_AND_ITS_MARKS = /\p{L}\p{Mn}*/gu

/**
 * The text with those letters that GSM-7 lacks written without their marks (ą as a), where what is left is in GSM-7. Every other character
 * stays as it was, whether GSM-7 has it (é) or lacks it without its mark too (й, whose и it has not). Whether a letter and its mark are
 * one character or two makes no difference.
 */
export function withoutDiacritics(text: string): string {
  if (countSeptets(text) !== undefined) return text
  return text.replaceAll(LETTER_AND_ITS_MARKS, withoutMarks)
}

/**
 * With several marks, the first is the one nearest to the letter, and GSM-7 may have it with that: ǖ becomes ü, not u. No letter of GSM-7
 * has two, so that further ones are not looked at.
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
