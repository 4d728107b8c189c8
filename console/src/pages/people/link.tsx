import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { ShownOnce } from '../../kit/shown-once.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-people.ts'
import { type Person, usePaths } from './person.ts'

/** Makes a link with which a person sets a password. Returns the whole link, at the address where this console is. */
export function useNewLink() {
  const { withPassword } = useFrame()
  const { person } = usePaths()
  return async (personId: number) => {
    const { token } = await withPassword(() => post<{ token: string }>(person(personId, '/link')))
    return new URL(`console#setup=${token}`, document.baseURI).href
  }
}

export function ShownLink({ title, link, onClose }: { title: string; link: string; onClose: () => void }) {
  return <ShownOnce title={title} hint={say.linkHint} label={say.link} text={link} onClose={onClose} />
}

/** Asks, makes the link, and shows it once. */
export function LinkDialog({ person: { personId, name }, onClose }: { person: Person; onClose: () => void }) {
  const make = useNewLink()
  const [link, setLink] = useState<string>()
  if (link !== undefined) return <ShownLink title={say.newLink} link={link} onClose={onClose} />
  return (
    <Sure title={say.newLink} action={say.newLink} run={() => make(personId).then(setLink)} onDone={() => {}} onClose={onClose}>
      <p>{say.sureLink(name)}</p>
    </Sure>
  )
}
