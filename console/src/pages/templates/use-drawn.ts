import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiProblem, problemOf, urlOf } from '../../app/api.ts'
import { meantOf } from '../../phone/meant.ts'

/** What Herald found at the address of an image, as a phone would. Undefined: it is still looking. */
type Image = { width: number; height: number; bytes: number } | { problem: ApiProblem } | undefined
export type Images = ReadonlyMap<string, Image>

/** An address is asked for when nobody has changed it for so long: each key of a typed address would be another one. */
const SETTLED_MS = 300

/** Herald itself stops after 10 s. */
const TIMEOUT_MS = 15_000

/** What phones show of the content, with the images that Herald could fetch. Each is fetched once; `retry` fetches one again that failed. */
export function useDrawn(message: unknown) {
  const [images, setImages] = useState<Images>(new Map())
  const started = useRef(new Set<string>())
  const [drawn, urls] = useMemo(() => {
    const found = new Set<string>()
    const isShown = (url: string) => {
      found.add(url)
      const image = images.get(url)
      return image !== undefined && !('problem' in image)
    }
    return [meantOf(message, isShown), [...found]]
  }, [message, images])
  const note = (url: string, image: Image) => setImages((last) => new Map(last).set(url, image))
  const retry = (url: string) => {
    started.current.add(url)
    note(url, undefined)
    void imageAt(url).then((image) => note(url, image))
  }
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const url of urls) if (!started.current.has(url) && /^https?:\/\/[^/]/i.test(url)) retry(url)
    }, SETTLED_MS)
    return () => clearTimeout(timer)
  }, [urls.join('\n')])
  return { drawn, images, retry }
}

async function imageAt(url: string): Promise<Image> {
  try {
    const response = await fetch(urlOf(`/media?url=${encodeURIComponent(url)}`), { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) return { problem: await problemOf(response) }
    const blob = await response.blob()
    const bitmap = await createImageBitmap(blob)
    const { width, height } = bitmap
    bitmap.close()
    return { width, height, bytes: blob.size }
  } catch (error) {
    const isLost = error instanceof TypeError || (error as Error).name === 'TimeoutError'
    return { problem: new ApiProblem(isLost ? 0 : 502, { code: isLost ? 'NO_RESPONSE' : 'RCS_MEDIA_NOT_IMAGE' }) }
  }
}
