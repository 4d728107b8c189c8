import { nameOf, sendingAgents, useAgents } from '../../app/agents.ts'
import { useFrame } from '../../app/session.tsx'
import { colorOf, type Drawn } from '../../phone/drawn.ts'
import { Phone } from '../../phone/phone.tsx'
import * as say from '../../words/en-templates.ts'

const PLATFORMS = ['android', 'iphone'] as const

/** The content on both kinds of phone. `title`: what it is, if the page does not say it. */
export function Previews({ drawn, title = say.phones }: { drawn: Drawn | undefined; title?: string }) {
  const sender = useSender()
  const entries = drawn === undefined || isNothing(drawn) ? [] : [{ from: 'sender' as const, id: 'preview', drawn }]
  return (
    <section class="previews" aria-label={say.preview}>
      <div class="previews-head">
        <h2>{title}</h2>
      </div>
      <div class="previews-pair">
        {PLATFORMS.map((platform) => (
          <Phone key={platform} platform={platform} sender={sender} entries={entries} isPreview />
        ))}
      </div>
    </section>
  )
}

const isNothing = (drawn: Drawn) => drawn.is === 'text' && drawn.text === '' && drawn.chips.length === 0

/** The agent that would send it. */
export function useSender() {
  const { account } = useFrame()
  const { agents } = useAgents()
  const agent = sendingAgents(agents ?? [])[0]
  const name = agent === undefined ? account.name : nameOf(agent)
  return { name, isVerified: true, color: colorOf(agent?.agentId ?? name) }
}
