import * as say from '../words/en-phone.ts'
import { Android } from './android.tsx'
import type { Entry, OnTap, Platform, Sender } from './drawn.ts'
import { IPhone } from './iphone.tsx'
import './phone.css'
import './android.css'
import './iphone.css'

type Props = {
  platform: Platform
  sender: Sender
  entries: Entry[]
  /** Without it, the phone's buttons can't be tapped. */
  onTap?: OnTap | undefined
  /** Shows one content, from its top. */
  isPreview?: boolean
  /** The height of the screen, in dp. Without it, the stylesheet of the page sets --height. */
  height?: number
}

/** A phone with a conversation, drawn in dp at its real size and scaled as a whole: by --zoom, which the stylesheet of a page sets. */
export function Phone({ platform, sender, entries, onTap, isPreview = false, height }: Props) {
  const Screen = platform === 'android' ? Android : IPhone
  return (
    <figure class={`ph ph-${platform}`} aria-label={say.drawn[platform]} style={height === undefined ? {} : { '--height': `${height}px` }}>
      <div class="ph-body">
        <Screen sender={sender} entries={entries} onTap={onTap} isPreview={isPreview} />
      </div>
    </figure>
  )
}
