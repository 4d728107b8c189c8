import { Type } from 'typebox'

const ROUTINGS = ['attempt', 'capability'] as const

/** The field of a request. */
export const Routing = Type.Optional(
  Type.Enum([...ROUTINGS], {
    default: 'attempt',
    description:
      '`attempt`: try RCS. `capability`: ask the network first. If it says that the number has no RCS, the message is `FAILED` with `NOT_REACHABLE` without being sent, and its SMS goes out at once. If the network does not say, try RCS. Herald keeps results for 24 hours.',
  }),
)

/** The field of a message or campaign. */
export const ShownRouting = Type.Optional(Type.Enum(['capability'], { description: 'Present if the request had it.' }))

/** As it is stored: null for the default. */
export const storedRouting = ({ routing }: { routing?: (typeof ROUTINGS)[number] }) => (routing === 'capability' ? routing : null)
