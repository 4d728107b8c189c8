import { measureText } from '../../../server/src/sms/segments.ts'
import * as say from '../words/en-kit.ts'

/** How many SMS a text is, in which characters, and what makes it longer. Herald counts in the same way when it sends. */
export function SmsMeter({ text }: { text: string }) {
  const { encoding, units, segments } = measureText(text)
  return (
    <p class="hint" role="status">
      {say.smsSize(segments, units, encoding)}
    </p>
  )
}
