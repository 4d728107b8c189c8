/** An agent's id without what Google puts behind it: both name the same agent. */
export const bareAgentId = (agentId: string): string => agentId.replace(/@rbm\.goog$/, '')

// Google's events carry the agent's full name, though requests have only what stands before the @.
export const fullAgentId = (agentId: string): string => `${agentId}@rbm.goog`
