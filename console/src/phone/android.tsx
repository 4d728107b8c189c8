import { Icon } from '../kit/icon.tsx'
import { words } from '../words/words.ts'
import { ANDROID_ICONS, AndroidCard, AndroidHorizontalCard } from './android-card.tsx'
import type { Drawn, DrawnButton, Entry, Sender } from './drawn.ts'
import { Linked } from './media.tsx'
import { Carousel, FileView, Logo, OwnerBubble, type ScreenProps, type Tap, TapButton, Thread, Verified } from './parts.tsx'

export function Android({ sender, entries, onTap, isPreview }: ScreenProps) {
  const last = entries.at(-1)
  return (
    <div class="ph-screen an">
      <StatusBar />
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
      <Thread class="an-thread" label={words.phone.onAndroid} entries={entries} isPreview={isPreview}>
        {!isPreview && sender.isVerified && <Banner sender={sender} />}
        {entries.map((entry) => (
          <EntryView key={entry.id} entry={entry} color={sender.color} isLast={entry === last} onTap={onTap} />
        ))}
      </Thread>
      <footer class="an-input" aria-hidden="true">
        <span>
          <Icon name="circle-plus" size={22} /> {last?.from === 'sms' ? words.phone.writeSms : words.phone.writeRcs}
        </span>
        <i>
          <Icon name="audio-lines" size={20} />
        </i>
      </footer>
      <div class="an-home" />
    </div>
  )
}

function StatusBar() {
  return (
    <div class="an-status" aria-hidden="true">
      <b>9:30</b>
      <i />
      <span>
        <Icon name="wifi-solid" size={15} />
        <Icon name="signal-solid" size={15} />
        <Icon name="battery-solid" size={15} />
      </span>
    </div>
  )
}

function Banner({ sender }: { sender: Sender }) {
  return (
    <div class="an-banner">
      <div
        class="an-hero"
        style={{ background: `linear-gradient(120deg, ${sender.color}, color-mix(in oklab, ${sender.color} 55%, #fff))` }}
      />
      <Logo sender={sender} />
      <b>
        {sender.name} <Verified sender={sender} size={16} />
      </b>
    </div>
  )
}

type EntryProps = { entry: Entry; color: string; isLast: boolean; onTap: ScreenProps['onTap'] }

function EntryView({ entry, color, isLast, onTap }: EntryProps) {
  if (entry.from === 'owner') {
    return (
      <div class="an-mine">
        <OwnerBubble entry={entry} />
        {entry.at && <small>{entry.at}</small>}
      </div>
    )
  }
  if (entry.from === 'sms') {
    return (
      <div class="an-theirs">
        <p class="an-bubble">
          <Linked text={entry.text} />
        </p>
        <small class="an-meta">{words.phone.smsAt(entry.at)}</small>
      </div>
    )
  }
  const tap = onTap && ((button: DrawnButton) => onTap(button, entry.id))
  return (
    <div class="an-theirs">
      <DrawnView drawn={entry.drawn} color={color} onTap={tap} />
      {entry.at && <small class="an-meta">{entry.at}</small>}
      {/* Chips disappear with the next message. */}
      {isLast && <Chips buttons={entry.drawn.chips} onTap={tap} />}
    </div>
  )
}

function Chips({ buttons, onTap }: { buttons: DrawnButton[]; onTap: Tap }) {
  if (buttons.length === 0) return null
  return (
    <div class="an-chips">
      {buttons.map((button) => (
        <TapButton key={button.key} button={button} icon={ANDROID_ICONS[button.kind]} onTap={onTap} />
      ))}
    </div>
  )
}

function DrawnView({ drawn, color, onTap }: { drawn: Drawn; color: string; onTap: Tap }) {
  switch (drawn.is) {
    case 'text':
      return (
        <p class="an-bubble">
          <Linked text={drawn.text} />
        </p>
      )
    case 'file':
      return <FileView file={drawn.file} bubble="an-bubble" />
    case 'card':
      if (drawn.side !== undefined) return <AndroidHorizontalCard card={drawn.card} side={drawn.side} color={color} onTap={onTap} />
      return <AndroidCard card={drawn.card} color={color} onTap={onTap} />
    case 'carousel':
      return (
        <Carousel class="an-carousel" count={drawn.cards.length}>
          {drawn.cards.map((card, index) => (
            <AndroidCard key={String(index)} card={card} color={color} onTap={onTap} carousel={drawn.width} />
          ))}
        </Carousel>
      )
  }
}
