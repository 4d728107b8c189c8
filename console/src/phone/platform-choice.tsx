import { Choice } from '../kit/controls.tsx'
import * as say from '../words/en-phones.ts'
import type { Platform } from './drawn.ts'

/** Which kind of phone to draw: Android, as long as nothing else is chosen. */
export function PlatformChoice({ platform, onChange }: { platform: Platform; onChange: (platform: Platform) => void }) {
  return (
    <Choice
      label={say.platform}
      value={platform}
      options={[
        { value: 'android', text: say.android },
        { value: 'iphone', text: say.iphone },
      ]}
      onChange={onChange}
    />
  )
}

/** The kind of phone that an address names. */
export const platformOf = (name: string | null): Platform => (name === 'iphone' ? 'iphone' : 'android')
