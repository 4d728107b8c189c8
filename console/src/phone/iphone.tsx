import { Icon } from '../kit/icon.tsx'
import { words } from '../words/words.ts'
import { type Drawn, type DrawnButton, type Entry, isReply } from './drawn.ts'
import { Actions, IPhoneCard } from './iphone-card.tsx'
import { trailingLink } from './links.ts'
import { Linked } from './media.tsx'
import { Carousel, FileView, Logo, OwnerBubble, type ScreenProps, type Tap, TapButton, Thread, Verified } from './parts.tsx'
import { IPHONE } from './rendering.ts'

/** Apple's exact head for businesses is not published: this screen is an approximation. */
export function IPhone({ sender, entries, onTap, isPreview }: ScreenProps) {
  const channel = entries.at(-1)?.from === 'sms' ? 'SMS' : 'RCS'
  return (
    <div class="ph-screen ip">
      <StatusBar />
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
      <Thread class="ip-thread" label={words.phone.onIPhone} entries={entries} isPreview={isPreview}>
        <p class="ip-day">
          <b>{words.phone.channel(channel)}</b>
        </p>
        {entries.map((entry) => (
          <EntryView key={entry.id} entry={entry} onTap={onTap} />
        ))}
      </Thread>
      <footer class="ip-input" aria-hidden="true">
        <span class="ip-glass">
          <Icon name="plus" size={20} />
        </span>
        <span class="ip-glass">
          {words.phone.channel(channel)} <Icon name="mic" size={18} />
        </span>
      </footer>
      <div class="ip-home" />
    </div>
  )
}

function StatusBar() {
  return (
    <div class="ip-status" aria-hidden="true">
      <b>9:41</b>
      <i />
      <span>
        <Icon name="signal-bars" size={17} />
        <Icon name="wifi-solid" size={16} />
        <Icon name="battery-ios" size={24} />
      </span>
    </div>
  )
}

function EntryView({ entry, onTap }: { entry: Entry; onTap: ScreenProps['onTap'] }) {
  if (entry.from === 'owner') {
    return (
      <div class="ip-mine">
        <OwnerBubble entry={entry} />
        {entry.at && <small>{entry.at}</small>}
      </div>
    )
  }
  if (entry.from === 'sms') {
    return (
      <div class="ip-theirs">
        <p class="ip-bubble">
          <Linked text={entry.text} />
        </p>
        <small class="ip-meta">{words.phone.smsAt(entry.at)}</small>
      </div>
    )
  }
  const tap = onTap && ((button: DrawnButton) => onTap(button, entry.id))
  return (
    <div class="ip-theirs">
      <DrawnView drawn={entry.drawn} onTap={tap} />
      <Chips buttons={entry.drawn.chips} onTap={tap} />
      {entry.at && <small class="ip-meta">{entry.at}</small>}
    </div>
  )
}

/** Actions come before replies, and both stay when more messages follow. */
function Chips({ buttons, onTap }: { buttons: DrawnButton[]; onTap: Tap }) {
  const [actions, replies] = [buttons.filter((button) => !isReply(button)), buttons.filter(isReply)]
  return (
    <>
      {actions.length > 0 && (
        <div class="ip-actions">
          <Actions buttons={actions} onTap={onTap} beforeMenu={IPHONE.actionsBeforeMenu} />
        </div>
      )}
      {replies.length > 0 && (
        <div class="ip-replies">
          {replies.map((button) => (
            <TapButton key={button.key} button={button} onTap={onTap} />
          ))}
        </div>
      )}
    </>
  )
}

/** A text that ends with its only link gets a preview of the page below. What is on the page is not known here. */
function TextView({ text }: { text: string }) {
  const link = trailingLink(text)
  return (
    <>
      <p class="ip-bubble">
        <Linked text={text} />
      </p>
      {link !== undefined && URL.canParse(link) && (
        <div class="ip-preview">
          <Icon name="compass" size={26} />
          <b>{words.phone.linkPreview}</b>
          <small>{new URL(link).host}</small>
        </div>
      )}
    </>
  )
}

function DrawnView({ drawn, onTap }: { drawn: Drawn; onTap: Tap }) {
  switch (drawn.is) {
    case 'text':
      return <TextView text={drawn.text} />
    case 'file':
      return <FileView file={drawn.file} bubble="ip-bubble" />
    case 'card':
      return <IPhoneCard card={drawn.card} onTap={onTap} />
    case 'carousel':
      return (
        <Carousel class="ip-carousel" count={drawn.cards.length}>
          {drawn.cards.map((card, index) => (
            <IPhoneCard key={String(index)} card={card} onTap={onTap} isInCarousel />
          ))}
        </Carousel>
      )
  }
}
