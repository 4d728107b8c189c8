import { runParts } from '../../support/parts.ts'

// The reports from outside, over HTTP, held against the contract. What they have in common is in `requests.part.ts`; the rest is by report.
await import('./scene.ts')
await runParts(import.meta.dirname)
