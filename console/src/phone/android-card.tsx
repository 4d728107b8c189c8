import type { IconName } from '../kit/icon.tsx'
import { words } from '../words/words.ts'
import type { CardWidth } from './content.ts'
import type { ButtonKind, DrawnButton, DrawnCard } from './drawn.ts'
import { useSharedLines } from './lines.ts'
import { Media } from './media.tsx'
import { type Tap, TapButton } from './parts.tsx'
import { ANDROID } from './rendering.ts'

export const ANDROID_ICONS: Record<ButtonKind, IconName | undefined> = {
  reply: undefined,
  url: 'external-link',
  call: 'phone',
  calendar: 'calendar-plus',
  map: 'map-pin',
  'share-location': 'map-pin',
}

type CardProps = { card: DrawnCard; color: string; onTap: Tap }

/** `carousel`: the width of the cards, if it is one of several. */
export function AndroidCard({ card, color, onTap, carousel }: CardProps & { carousel?: CardWidth }) {
  const { titleRef, textRef, isCut } = useSharedLines(
    carousel === undefined ? Number.POSITIVE_INFINITY : ANDROID.carouselMaxLines,
    card.title,
    card.text,
  )
  const size = carousel && {
    width: `${ANDROID.carouselWidthDp[carousel]}px`,
    maxHeight: `${ANDROID.carouselMaxHeightDp[carousel]}px`,
  }
  return (
    <article class="an-card" style={{ '--agent': color, ...size }}>
      {card.media && <Media media={card.media} style={{ height: `${ANDROID.mediaHeightDp[card.height]}px` }} />}
      {(card.title || card.text) && (
        <div class="an-words">
          {card.title && (
            <p class="an-title" ref={titleRef}>
              {card.title}
            </p>
          )}
          {card.text && (
            <p class="an-text" ref={textRef}>
              {card.text}
            </p>
          )}
          {isCut && <em class="ph-cut">{words.phone.cutHere}</em>}
        </div>
      )}
      <CardButtons buttons={card.buttons} onTap={onTap} />
    </article>
  )
}

export function AndroidHorizontalCard({ card, side, color, onTap }: CardProps & { side: 'LEFT' | 'RIGHT' }) {
  return (
    <article class={`an-card an-horizontal ${side === 'RIGHT' ? 'an-right' : ''}`} style={{ '--agent': color }}>
      {card.media && <Media media={card.media} style={{ width: `${ANDROID.horizontalMediaDp}px` }} />}
      <div>
        {(card.title || card.text) && (
          <div class="an-words">
            {card.title && <p class="an-title">{card.title}</p>}
            {card.text && <p class="an-text">{card.text}</p>}
          </div>
        )}
        <CardButtons buttons={card.buttons} onTap={onTap} />
      </div>
    </article>
  )
}

function CardButtons({ buttons, onTap }: { buttons: DrawnButton[]; onTap: Tap }) {
  if (buttons.length === 0) return null
  return (
    <div class="an-buttons">
      {buttons.map((button) => (
        <TapButton key={button.key} button={button} icon={ANDROID_ICONS[button.kind]} onTap={onTap} />
      ))}
    </div>
  )
}
