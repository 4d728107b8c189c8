import { runParts } from '../../support/parts.ts'

await import('./service.ts')
await runParts(import.meta.dirname)
