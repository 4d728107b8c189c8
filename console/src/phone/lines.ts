import type { RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

type SharedLines = { titleRef: RefObject<HTMLParagraphElement | null>; textRef: RefObject<HTMLParagraphElement | null>; isCut: boolean }

/**
 * Lets a title and a text share a number of lines, or fewer if their card has a maximum height that they would exceed. What exceeds the lines is
 * cut. Lines are counted after layout, and again once the fonts are there.
 */
export function useSharedLines(lines: number, title: string | undefined, text: string | undefined): SharedLines {
  const titleRef = useRef<HTMLParagraphElement>(null)
  const textRef = useRef<HTMLParagraphElement>(null)
  const [isCut, setCut] = useState(false)
  useLayoutEffect(() => {
    let isOver = false
    const measure = () => {
      if (isOver) return
      const cutTo = (count: number) => {
        const isTitleCut = clamp(titleRef.current, Math.max(1, count - (text ? 1 : 0)))
        const isTextCut = clamp(textRef.current, Math.max(1, count - linesOf(titleRef.current)))
        return isTitleCut || isTextCut
      }
      const card = (titleRef.current ?? textRef.current)?.closest('article')
      let isCut = cutTo(lines)
      // A card whose lines have no limit has no maximum height either.
      for (let count = lines - 1; Number.isFinite(count) && count > 0 && isHigher(card); count -= 1) isCut = cutTo(count)
      setCut(isCut)
    }
    measure()
    void document.fonts.ready.then(measure)
    return () => {
      isOver = true
    }
  }, [lines, title, text])
  return { titleRef, textRef, isCut }
}

/** Returns whether the element has more lines than this. */
function clamp(element: HTMLElement | null, lines: number): boolean {
  if (element === null) return false
  element.style.setProperty('-webkit-line-clamp', Number.isFinite(lines) ? String(lines) : 'none')
  return isHigher(element)
}

/** Whether the element has more than it shows. */
const isHigher = (element: Element | null | undefined) => element != null && element.scrollHeight > element.clientHeight + 1

function linesOf(element: HTMLElement | null): number {
  return element === null ? 0 : Math.round(element.clientHeight / Number.parseFloat(getComputedStyle(element).lineHeight))
}
