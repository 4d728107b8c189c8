import { useId, useState } from 'preact/hooks'
import { Icon, type IconName } from '../kit/icon.tsx'
import { words } from '../words/words.ts'
import { type ButtonKind, type DrawnButton, type DrawnCard, isReply } from './drawn.ts'
import { useSharedLines } from './lines.ts'
import { Media } from './media.tsx'
import { type Tap, TapButton } from './parts.tsx'
import { IPHONE } from './rendering.ts'

const ICONS: Record<ButtonKind, IconName | undefined> = {
  reply: undefined,
  url: 'compass',
  call: 'phone',
  calendar: 'calendar-plus',
  map: 'map-pin',
  'share-location': 'map-pin',
}

/** All cards have one height for their media, and a horizontal card is shown as any other. */
export function IPhoneCard({ card, onTap, isInCarousel = false }: { card: DrawnCard; onTap: Tap; isInCarousel?: boolean }) {
  const { titleRef, textRef, isCut } = useSharedLines(IPHONE.cardLines, card.title, card.text)
  const ratio = isInCarousel ? IPHONE.carouselMediaRatio : IPHONE.mediaRatio
  return (
    <article class={`ip-card ${isInCarousel ? 'ip-small' : ''}`}>
      {card.media && <Media media={card.media} style={{ aspectRatio: String(ratio) }} isStill />}
      {(card.title || card.text) && (
        <div class="ip-words">
          {card.title && (
            <p class="ip-title" ref={titleRef}>
              {card.title}
            </p>
          )}
          {card.text && (
            <p class="ip-text" ref={textRef}>
              {card.text}
            </p>
          )}
          {isCut && <em class="ph-cut">{words.phone.cutAfter(IPHONE.cardLines)}</em>}
        </div>
      )}
      {card.buttons.length > 0 && (
        <div class="ip-card-buttons">
          <Actions buttons={card.buttons.filter((button) => !isReply(button))} onTap={onTap} beforeMenu={IPHONE.cardActionsBeforeMenu} />
          {card.buttons.filter(isReply).map((button) => (
            <TapButton key={button.key} button={button} onTap={onTap} />
          ))}
        </div>
      )}
    </article>
  )
}

/** More actions than `beforeMenu` fold into a menu. */
export function Actions({ buttons, onTap, beforeMenu }: { buttons: DrawnButton[]; onTap: Tap; beforeMenu: number }) {
  if (buttons.length > beforeMenu) return <Menu buttons={buttons} onTap={onTap} />
  return <ActionButtons buttons={buttons} onTap={onTap} />
}

function ActionButtons({ buttons, onTap }: { buttons: DrawnButton[]; onTap: Tap }) {
  return (
    <>
      {buttons.map((button) => (
        <TapButton key={button.key} button={button} icon={ICONS[button.kind]} onTap={onTap} />
      ))}
    </>
  )
}

function Menu({ buttons, onTap }: { buttons: DrawnButton[]; onTap: Tap }) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  return (
    <div class="ip-menu">
      <button type="button" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {words.phone.options} <Icon name="chevrons-up-down" size={14} />
      </button>
      <div id={id} hidden={!isOpen}>
        <ActionButtons buttons={buttons} onTap={onTap} />
      </div>
    </div>
  )
}
