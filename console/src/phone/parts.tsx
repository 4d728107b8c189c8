import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Announcement } from '../kit/announcement.tsx'
import { Icon, type IconName } from '../kit/icon.tsx'
import * as say from '../words/en-phone.ts'
import {
  type ButtonKind,
  type DrawnButton,
  type DrawnCard,
  type DrawnMedia,
  type Entry,
  endingOf,
  fileNameOf,
  type Sender,
} from './drawn.ts'
import { useSharedLines } from './lines.ts'
import { Media } from './media.tsx'

// What both phones have. `phone` is the prefix of the classes of one of them.

export type PhonePrefix = 'an' | 'ip'
export type Tap = ((button: DrawnButton) => void) | undefined
export type ScreenProps = {
  sender: Sender
  entries: Entry[]
  onTap: ((button: DrawnButton, entryId: string) => void) | undefined
  /** A preview begins at its top. A conversation shows its end. */
  isPreview: boolean
}

export function StatusBar({ phone, time, icons }: { phone: PhonePrefix; time: string; icons: [IconName, size: number][] }) {
  return (
    <div class={`${phone}-status`} aria-hidden="true">
      <b>{time}</b>
      <i />
      <span>
        {icons.map(([name, size]) => (
          <Icon name={name} size={size} />
        ))}
      </span>
    </div>
  )
}

const ICONS: Partial<Record<ButtonKind, IconName>> = {
  call: 'phone',
  calendar: 'calendar-plus',
  map: 'map-pin',
  'share-location': 'map-pin',
}

type ButtonsProps = { buttons: DrawnButton[]; urlIcon?: IconName; onTap: Tap }

/** A phone that nobody may use has buttons that can't be tapped. */
export function TapButtons({ buttons, urlIcon = 'external-link', onTap }: ButtonsProps) {
  return (
    <>
      {buttons.map((button) => {
        const icon = button.kind === 'url' ? urlIcon : ICONS[button.kind]
        return (
          <button type="button" disabled={onTap === undefined} onClick={() => onTap?.(button)}>
            {icon && <Icon name={icon} size={17} />}
            <span>{button.text}</span>
          </button>
        )
      })}
    </>
  )
}

type ThreadProps = { phone: PhonePrefix; label: string; entries: Entry[]; isPreview: boolean; children: ComponentChildren }

/** The messages, scrolled to the last one whenever there is a new one. */
export function Thread({ phone, label, entries, isPreview, children }: ThreadProps) {
  const element = useRef<HTMLDivElement>(null)
  const end = `${entries.length} ${entries.at(-1)?.id ?? ''}`
  const hadFocus = useRef(false)
  useLayoutEffect(() => {
    if (!isPreview && element.current !== null) element.current.scrollTop = element.current.scrollHeight
    // Buttons that had the focus may disappear with a new message.
    if (hadFocus.current && document.activeElement === document.body) element.current?.focus({ preventScroll: true })
  }, [end, isPreview])
  const onFocusOut = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget !== null) hadFocus.current = element.current?.contains(relatedTarget as Node) === true
  }
  const onFocusIn = () => {
    hadFocus.current = true
  }
  return (
    <>
      <div
        class={`ph-scroll ${phone}-thread`}
        ref={element}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it.
        tabIndex={0}
        role="log"
        // A log announces each message, and there may be several a second.
        aria-live="off"
        aria-label={label}
        onFocusIn={onFocusIn}
        onFocusOut={onFocusOut}
      >
        {children}
      </div>
      {!isPreview && <Announcement text={say.messages(entries.length)} />}
    </>
  )
}

export function Logo({ sender: { name, color } }: { sender: Sender }) {
  return <span class="ph-logo" style={{ background: color }} data-letter={name.trim().slice(0, 1).toUpperCase()} aria-hidden="true" />
}

export function Verified({ sender, size }: { sender: Sender; size: number }) {
  return sender.isVerified ? <Icon name="badge-check-solid" size={size} class="ph-verified" label={say.verified} /> : null
}

type WordsProps = { phone: PhonePrefix; card: DrawnCard; maxLines: number; cut: string }

/** The title and the text of a card. `cut` says that both together have more than the maximum of lines. */
export function CardWords({ phone, card: { title, text }, maxLines, cut }: WordsProps) {
  const { titleRef, textRef, isCut } = useSharedLines(maxLines, title, text)
  if (!title && !text) return null
  return (
    <div class={`${phone}-words`}>
      {title && (
        <p class={`${phone}-title`} ref={titleRef}>
          {title}
        </p>
      )}
      {text && (
        <p class={`${phone}-text`} ref={textRef}>
          {text}
        </p>
      )}
      {isCut && <em class="ph-cut">{cut}</em>}
    </div>
  )
}

/** A file: an image and a video are shown, a sound can be played, any other file has its name. */
export function FileView({ file, phone }: { file: DrawnMedia; phone: PhonePrefix }) {
  const { kind, url, thumbnailUrl } = file
  const name = fileNameOf(url)
  if (kind === 'image' || kind === 'video') {
    return (
      <div class="ph-file-image">
        <Media media={file} style={{ height: '100%' }} />
        <span class="sr">{name}</span>
      </div>
    )
  }
  return (
    <div class={`${phone}-bubble ph-file`}>
      {thumbnailUrl === undefined ? (
        <Icon name={kind === 'audio' ? 'play' : 'file-text'} size={24} />
      ) : (
        <Media media={{ kind: 'image', url: thumbnailUrl }} style={{ width: '44px', height: '44px' }} />
      )}
      <span>
        <b>{name || url}</b>
        <small>{endingOf(url) || say.file}</small>
      </span>
      {kind === 'audio' && <Icon name="audio-lines" size={22} />}
    </div>
  )
}
