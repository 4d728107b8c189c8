import { Icon } from '../kit/icon.tsx'
import * as say from '../words/en-phone.ts'
import type { Sender } from './drawn.ts'
import { type BelowProps, Bubble, type CardProps, Entries, type Look } from './entries.tsx'
import { Media } from './media.tsx'
import { CardWords, Logo, type ScreenProps, StatusBar, TapButtons, Thread, Verified } from './parts.tsx'
import { ANDROID } from './rendering.ts'

export function Android({ sender, entries, onTap, isPreview }: ScreenProps) {
  return (
    <div class="ph-screen an" style={{ '--agent': sender.color }}>
      <StatusBar
        phone="an"
        time="9:30"
        icons={[
          ['wifi-solid', 15],
          ['signal-solid', 15],
          ['battery-solid', 15],
        ]}
      />
      <header class="an-bar">
        <Icon name="arrow-left" size={24} />
        <Logo sender={sender} />
        <strong>
          <span>{sender.name}</span>
          <Verified sender={sender} size={18} />
        </strong>
        <Icon name="phone" size={22} />
        <Icon name="ellipsis-vertical" size={22} />
      </header>
      <Thread phone="an" label={say.onAndroid} entries={entries} isPreview={isPreview}>
        {!isPreview && sender.isVerified && <Banner sender={sender} />}
        <Entries look={LOOK} entries={entries} onTap={onTap} />
      </Thread>
      <footer class="an-input" aria-hidden="true">
        <span>
          <Icon name="circle-plus" size={22} /> {entries.at(-1)?.from === 'sms' ? say.writeSms : say.writeRcs}
        </span>
        <i>
          <Icon name="audio-lines" size={20} />
        </i>
      </footer>
      <div class="an-home" />
    </div>
  )
}

function Banner({ sender }: { sender: Sender }) {
  return (
    <div class="an-banner">
      <div class="an-hero" />
      <Logo sender={sender} />
      <b>
        {sender.name} <Verified sender={sender} size={16} />
      </b>
    </div>
  )
}

/** Chips disappear with the next message. */
function Below({ buttons, time, isLast, onTap }: BelowProps) {
  return (
    <>
      {time}
      {isLast && buttons.length > 0 && (
        <div class="an-chips">
          <TapButtons buttons={buttons} onTap={onTap} />
        </div>
      )}
    </>
  )
}

/** Only the cards of a carousel have a maximum height. */
function AndroidCard({ card, side, width, onTap }: CardProps) {
  const { mediaHeightDp, horizontalMediaDp, carouselWidthDp, carouselMaxHeightDp, carouselMaxLines } = ANDROID
  const size = width && { width: `${carouselWidthDp[width]}px`, maxHeight: `${carouselMaxHeightDp[width]}px` }
  const mediaSize = side ? { width: `${horizontalMediaDp}px` } : { height: `${mediaHeightDp[card.height]}px` }
  const body = (
    <>
      <CardWords phone="an" card={card} maxLines={width ? carouselMaxLines : Number.POSITIVE_INFINITY} cut={say.cutHere} />
      {card.buttons.length > 0 && (
        <div class="an-buttons">
          <TapButtons buttons={card.buttons} onTap={onTap} />
        </div>
      )}
    </>
  )
  return (
    <article class={`an-card ${side ? 'an-horizontal' : ''} ${side === 'RIGHT' ? 'an-right' : ''}`} style={size ?? {}}>
      {card.media && <Media media={card.media} style={mediaSize} />}
      {side ? <div>{body}</div> : body}
    </article>
  )
}

const LOOK: Look = { phone: 'an', Text: Bubble, Card: AndroidCard, Below }
