import { InvalidArgumentError } from 'commander'
import { normalisePhoneNumber } from '../phone-numbers.ts'

/** Parses a phone number. It has its own file, since the table of all countries takes a third of the start of a command. */
export function phoneArgument(value: string): string {
  const phone = normalisePhoneNumber(value)
  if (phone === undefined) throw new InvalidArgumentError('It must be an international phone number, such as +48500100200.')
  return phone
}
