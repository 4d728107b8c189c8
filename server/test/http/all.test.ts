import { runParts } from '../support/parts.ts'

// Without those that mostly wait (limits, errors, slow clients): they do so beside others.
await runParts(import.meta.dirname)
