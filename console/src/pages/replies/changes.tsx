import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { PageHead } from '../../kit/display.tsx'
import { pages } from '../../words/en.ts'
import { tabs } from '../../words/en-replies.ts'

/** The head of a part of the page, with links to the others. */
export function Head({ current, children }: { current: '' | 'automatic' | 'number'; children?: ComponentChildren }) {
  const { accountId, role } = useFrame().account
  const parts = { '': tabs.optOuts, automatic: tabs.automatic, ...(role !== 'viewer' && { number: tabs.number }) }
  return (
    <>
      <PageHead title={pages.replies}>{children}</PageHead>
      <nav class="tabs" aria-label={pages.replies}>
        {Object.entries(parts).map(([part, text]) => (
          <a
            href={linkTo({ accountId, path: ['replies', part].filter(Boolean) })}
            {...(part === current && { 'aria-current': 'page' as const })}
          >
            {text}
          </a>
        ))}
      </nav>
    </>
  )
}

/** The dialog that is open, and what its change has done. `version`: how many changes there were. */
export function useChanges<Open>() {
  const [open, setOpen] = useState<Open>()
  const [{ said, version }, setDone] = useState({ said: '', version: 0 })
  return {
    open,
    setOpen,
    version,
    status: (
      <p class="said" role="status">
        {said}
      </p>
    ),
    onClose: () => setOpen(undefined),
    onDone: (text: string) => {
      setDone({ said: text, version: version + 1 })
      setOpen(undefined)
    },
  }
}
