import type { ComponentChildren, FunctionComponent } from 'preact'
import { Icon } from '../kit/icon.tsx'
import * as say from '../words/en-phone.ts'
import type { CardWidth } from './content.ts'
import type { Drawn, DrawnButton, DrawnCard, Entry } from './drawn.ts'
import { Linked } from './media.tsx'
import { FileView, type PhonePrefix, type ScreenProps, type Tap } from './parts.tsx'

/** `side`: where the image of a horizontal card is. `width`: the card is one of several. */
export type CardProps = { card: DrawnCard; onTap: Tap; side?: 'LEFT' | 'RIGHT' | undefined; width?: CardWidth }
export type BelowProps = { buttons: DrawnButton[]; time: ComponentChildren; isLast: boolean; onTap: Tap }

/** What the two kinds of phones draw in their own ways. */
export type Look = {
  phone: PhonePrefix
  Text: FunctionComponent<TextProps>
  Card: FunctionComponent<CardProps>
  /** The buttons and the time below a message. */
  Below: FunctionComponent<BelowProps>
}

type TextProps = { phone: PhonePrefix; text: string }
type Props = { look: Look; entries: Entry[]; onTap: ScreenProps['onTap'] }

/** The lines of a conversation. */
export function Entries({ look, entries, onTap }: Props) {
  return (
    <>
      {entries.map((entry, index) => (
        <EntryView key={entry.id} look={look} entry={entry} isLast={index === entries.length - 1} onTap={onTap} />
      ))}
    </>
  )
}

type EntryProps = { look: Look; entry: Entry; isLast: boolean; onTap: ScreenProps['onTap'] }

function EntryView({ look, entry, isLast, onTap }: EntryProps) {
  const { phone, Below } = look
  if (entry.from === 'owner') {
    return (
      <div class={`${phone}-mine`}>
        <p>
          {entry.icon && <Icon name={entry.icon} size={17} />}
          {entry.text}
        </p>
        {entry.at && <small>{entry.at}</small>}
      </div>
    )
  }
  const time = entry.from === 'sms' ? say.smsAt(entry.at) : entry.at
  const timeView = time && <small class={`${phone}-meta`}>{time}</small>
  if (entry.from === 'sms') {
    return (
      <div class={`${phone}-theirs`}>
        <Bubble phone={phone} text={entry.text} />
        {timeView}
      </div>
    )
  }
  const { drawn, id } = entry
  const tap = onTap && ((button: DrawnButton) => onTap(button, id))
  return (
    <div class={`${phone}-theirs`}>
      <DrawnView look={look} drawn={drawn} onTap={tap} />
      <Below buttons={drawn.chips} time={timeView} isLast={isLast} onTap={tap} />
    </div>
  )
}

/** A text with its links underlined. */
export function Bubble({ phone, text }: TextProps) {
  return (
    <p class={`${phone}-bubble`}>
      <Linked text={text} />
    </p>
  )
}

function DrawnView({ look: { phone, Text, Card }, drawn, onTap }: { look: Look; drawn: Drawn; onTap: Tap }) {
  switch (drawn.is) {
    case 'text':
      return <Text phone={phone} text={drawn.text} />
    case 'file':
      return <FileView file={drawn.file} phone={phone} />
    case 'card':
      return <Card card={drawn.card} side={drawn.side} onTap={onTap} />
    case 'carousel':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it.
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
        <div class={`ph-row ${phone}-carousel`} tabIndex={0} role="group" aria-label={say.carousel(drawn.cards.length)}>
          {drawn.cards.map((card) => (
            <Card card={card} width={drawn.width} onTap={onTap} />
          ))}
        </div>
      )
  }
}
