import { runParts } from '../../support/parts.ts'

await runParts(import.meta.dirname)
