import { useState } from 'preact/hooks'
import { urlOf } from '../app/api.ts'
import { Icon } from '../kit/icon.tsx'
import * as say from '../words/en-phone.ts'
import { type DrawnMedia, fileNameOf } from './drawn.ts'
import { splitLinks } from './links.ts'

type Props = { media: DrawnMedia; style: Record<string, string>; isStill?: boolean }

/** An image, cut from its middle as phones do, or the preview of a video. */
export function Media({ media, style, isStill = false }: Props) {
  const { kind, url, thumbnailUrl } = media
  const image = kind === 'image' ? url : thumbnailUrl
  // The button that plays a video is where the name would be.
  const hasName = kind !== 'video'
  const isGif = kind === 'image' && /\.gif(?:[?#]|$)/i.test(url)
  return (
    <div class="ph-media" style={style}>
      {image === undefined ? <NoPreview url={url} hasName={hasName} /> : <Picture key={image} url={image} hasName={hasName} />}
      {kind === 'video' && (
        <span class="ph-play">
          <Icon name="play" size={26} label={say.video} />
        </span>
      )}
      {isGif && isStill && <em class="ph-cut">{say.stillGif}</em>}
    </div>
  )
}

/** Herald fetches the image, so that the page sends no request to another host. If that fails, the name of the file is shown, if at all. */
function Picture({ url, hasName }: { url: string; hasName: boolean }) {
  const [isBroken, setBroken] = useState(false)
  if (isBroken) return <NoPreview url={url} hasName={hasName} />
  return <img src={urlOf(`/media?url=${encodeURIComponent(url)}`)} alt="" onError={() => setBroken(true)} />
}

function NoPreview({ url, hasName }: { url: string; hasName: boolean }) {
  return (
    <span class="ph-broken">
      {hasName && (
        <>
          <Icon name="image" size={22} />
          {fileNameOf(url) || url}
        </>
      )}
    </span>
  )
}

/** A text with its links underlined. Links in cards are plain text. */
export function Linked({ text }: { text: string }) {
  return <>{splitLinks(text).map((part, index) => (index % 2 === 1 ? <span class="ph-link">{part}</span> : part))}</>
}
