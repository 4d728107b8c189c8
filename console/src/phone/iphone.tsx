import { useId, useState } from 'preact/hooks'
import { Icon } from '../kit/icon.tsx'
import * as say from '../words/en-phone.ts'
import { type DrawnButton, isReply } from './drawn.ts'
import { type BelowProps, Bubble, type CardProps, Entries, type Look } from './entries.tsx'
import { trailingLink } from './links.ts'
import { Media } from './media.tsx'
import { CardWords, Logo, type ScreenProps, StatusBar, type Tap, TapButtons, Thread, Verified } from './parts.tsx'
import { IPHONE } from './rendering.ts'

/** Apple's exact head for businesses is not published: this screen is an approximation. */
export function IPhone({ sender, entries, onTap, isPreview }: ScreenProps) {
  const channel = say.channel(entries.at(-1)?.from === 'sms' ? 'SMS' : 'RCS')
  return (
    <div class="ph-screen ip">
      <StatusBar
        phone="ip"
        time="9:41"
        icons={[
          ['signal-bars', 17],
          ['wifi-solid', 16],
          ['battery-ios', 24],
        ]}
      />
      <header class="ip-bar">
        <span class="ip-glass">
          <Icon name="chevron-left" size={22} />
        </span>
        <div>
          <Logo sender={sender} />
          <strong class="ip-glass">
            <span>{sender.name}</span> <Verified sender={sender} size={13} />
            <Icon name="chevron-right" size={11} />
          </strong>
        </div>
        <span />
      </header>
      <Thread phone="ip" label={say.onIPhone} entries={entries} isPreview={isPreview}>
        <p class="ip-day">
          <b>{channel}</b>
        </p>
        <Entries look={LOOK} entries={entries} onTap={onTap} />
      </Thread>
      <footer class="ip-input" aria-hidden="true">
        <span class="ip-glass">
          <Icon name="plus" size={20} />
        </span>
        <span class="ip-glass">
          {channel} <Icon name="mic" size={18} />
        </span>
      </footer>
      <div class="ip-home" />
    </div>
  )
}

/** A text that ends with its only link gets a preview of the page below. What is on the page is not known here. */
function IPhoneText({ text }: { text: string }) {
  const link = trailingLink(text)
  return (
    <>
      <Bubble phone="ip" text={text} />
      {link !== undefined && URL.canParse(link) && (
        <div class="ip-preview">
          <Icon name="compass" size={26} />
          <b>{say.linkPreview}</b>
          <small>{new URL(link).host}</small>
        </div>
      )}
    </>
  )
}

/** Actions come before replies. */
const divided = (buttons: DrawnButton[]) => [buttons.filter((button) => !isReply(button)), buttons.filter(isReply)] as const

/** Both actions and replies stay when more messages follow. */
function Below({ buttons, time, onTap }: BelowProps) {
  const [actions, replies] = divided(buttons)
  return (
    <>
      {actions.length > 0 && (
        <div class="ip-actions">
          <Actions buttons={actions} onTap={onTap} beforeMenu={IPHONE.actionsBeforeMenu} />
        </div>
      )}
      {replies.length > 0 && (
        <div class="ip-replies">
          <TapButtons buttons={replies} onTap={onTap} />
        </div>
      )}
      {time}
    </>
  )
}

/** All cards have one height for their media, and a horizontal card is shown as any other. */
function IPhoneCard({ card, width, onTap }: CardProps) {
  const { cardLines, carouselMediaRatio, mediaRatio, cardActionsBeforeMenu } = IPHONE
  const [actions, replies] = divided(card.buttons)
  return (
    <article class={`ip-card ${width ? 'ip-small' : ''}`}>
      {card.media && <Media media={card.media} style={{ aspectRatio: String(width ? carouselMediaRatio : mediaRatio) }} isStill />}
      <CardWords phone="ip" card={card} maxLines={cardLines} cut={say.cutAfter(cardLines)} />
      {card.buttons.length > 0 && (
        <div class="ip-card-buttons">
          <Actions buttons={actions} onTap={onTap} beforeMenu={cardActionsBeforeMenu} />
          <TapButtons buttons={replies} onTap={onTap} />
        </div>
      )}
    </article>
  )
}

/** More actions than `beforeMenu` fold into a menu. */
function Actions({ buttons, onTap, beforeMenu }: { buttons: DrawnButton[]; onTap: Tap; beforeMenu: number }) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const all = <TapButtons buttons={buttons} urlIcon="compass" onTap={onTap} />
  if (buttons.length <= beforeMenu) return all
  return (
    <div class="ip-menu">
      <button type="button" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {say.options} <Icon name="chevrons-up-down" size={14} />
      </button>
      <div id={id} hidden={!isOpen}>
        {all}
      </div>
    </div>
  )
}

const LOOK: Look = { phone: 'ip', Text: IPhoneText, Card: IPhoneCard, Below }
