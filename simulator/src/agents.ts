/** An agent's id without Google's suffix. Both forms name the same agent. */
export const bareAgentId = (agentId: string): string => agentId.replace(/@rbm\.goog$/, '')

// Google's events have the agent's full name, though requests have only the part before the @.
export const fullAgentId = (agentId: string): string => `${agentId}@rbm.goog`
