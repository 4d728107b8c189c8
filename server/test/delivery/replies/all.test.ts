import { runParts } from '../../support/parts.ts'

// The database that the parts share.
await import('./support.ts')
await runParts(import.meta.dirname)
