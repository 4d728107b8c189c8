/** An agent's id without Google's suffix. Both forms name the same agent. */
export const bareAgentId = (agentId: string): string => agentId.replace(/@rbm\.goog$/, '')

/** An agent's id with Google's suffix. Google's events have it, though requests have only the id before the @. */
export const fullAgentId = (agentId: string): string => `${agentId}@rbm.goog`
