import { useState } from 'preact/hooks'
import { nameOf, useAgents } from '../../app/agents.ts'
import type { Content } from '../../phone/content.ts'
import { colorOf, type Platform } from '../../phone/drawn.ts'
import { meantOf } from '../../phone/meant.ts'
import { Phone } from '../../phone/phone.tsx'
import { PlatformChoice } from '../../phone/platform-choice.tsx'

const HEIGHT_DP = 600

/** A phone of a recipient with the content. */
export function ContentPhone({ content, agentId }: { content: Content; agentId: string }) {
  const { agents } = useAgents()
  const [platform, setPlatform] = useState<Platform>('android')
  const agent = agents?.find((each) => each.agentId === agentId)
  const sender = { name: agent ? nameOf(agent) : agentId, isVerified: true, color: colorOf(agentId) }
  return (
    <>
      <PlatformChoice platform={platform} onChange={setPlatform} />
      <Phone
        platform={platform}
        sender={sender}
        entries={[{ from: 'sender', id: 'preview', drawn: meantOf(content) }]}
        height={HEIGHT_DP}
        isPreview
      />
    </>
  )
}
