import { runParts } from '../../server/test/support/parts.ts'

await runParts(import.meta.dirname)
