import { runParts } from '../support/parts.ts'

// One after the other: of two services that start at once in one process, each keeps the other from what the database answers.
await import('./messages-service.ts')
await import('./templates-service.ts')
await runParts(import.meta.dirname)
