import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Announcement } from '../kit/announcement.tsx'
import { Icon, type IconName } from '../kit/icon.tsx'
import { words } from '../words/words.ts'
import { type DrawnButton, type DrawnMedia, type Entry, endingOf, fileNameOf, type Sender } from './drawn.ts'
import { Media } from './media.tsx'

// What both phones have.

export type Tap = ((button: DrawnButton) => void) | undefined
export type ScreenProps = {
  sender: Sender
  entries: Entry[]
  onTap: ((button: DrawnButton, entryId: string) => void) | undefined
  /** A preview begins at its top. A conversation shows its end. */
  isPreview: boolean
}

/** A phone that nobody may use has buttons that can't be tapped. */
export function TapButton({ button, icon, onTap }: { button: DrawnButton; icon?: IconName | undefined; onTap: Tap }) {
  return (
    <button type="button" disabled={onTap === undefined} onClick={() => onTap?.(button)}>
      {icon && <Icon name={icon} size={17} />}
      <span>{button.text}</span>
    </button>
  )
}

type ThreadProps = { class: string; label: string; entries: Entry[]; isPreview: boolean; children: ComponentChildren }

/** The messages, scrolled to the last one whenever there is a new one. */
export function Thread({ class: className, label, entries, isPreview, children }: ThreadProps) {
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
        class={`ph-scroll ${className}`}
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
      {!isPreview && <Announcement text={words.phone.messages(entries.length)} />}
    </>
  )
}

export function Carousel({ class: className, count, children }: { class: string; count: number; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div class={`ph-row ${className}`} tabIndex={0} role="group" aria-label={words.phone.carousel(count)}>
      {children}
    </div>
  )
}

export function Logo({ sender: { name, color } }: { sender: Sender }) {
  return <span class="ph-logo" style={{ background: color }} data-letter={name.trim().slice(0, 1).toUpperCase()} aria-hidden="true" />
}

export function Verified({ sender, size }: { sender: Sender; size: number }) {
  return sender.isVerified ? <Icon name="badge-check-solid" size={size} class="ph-verified" label={words.phone.verified} /> : null
}

/** A file: an image and a video are shown, a sound can be played, any other file has its name. */
export function FileView({ file, bubble }: { file: DrawnMedia; bubble: string }) {
  if (file.kind === 'image' || file.kind === 'video') {
    return (
      <div class="ph-file-image">
        <Media media={file} style={{ height: '100%' }} isStill={false} />
        <span class="sr">{fileNameOf(file.url)}</span>
      </div>
    )
  }
  const isAudio = file.kind === 'audio'
  return (
    <div class={`${bubble} ph-file`}>
      {file.thumbnailUrl === undefined ? (
        <Icon name={isAudio ? 'play' : 'file-text'} size={24} />
      ) : (
        <Media media={{ kind: 'image', url: file.thumbnailUrl }} style={{ width: '44px', height: '44px' }} />
      )}
      <span>
        <b>{fileNameOf(file.url) || file.url}</b>
        <small>{endingOf(file.url) || words.phone.file}</small>
      </span>
      {isAudio && <Icon name="audio-lines" size={22} />}
    </div>
  )
}

/** A message of the phone's owner. */
export function OwnerBubble({ entry }: { entry: Extract<Entry, { from: 'owner' }> }) {
  return (
    <p>
      {entry.icon && <Icon name={entry.icon} size={17} />}
      {entry.text}
    </p>
  )
}
