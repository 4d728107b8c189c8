import type { Violation } from '../errors.ts'
import { refTo } from '../schemas.ts'
import { createSchemaCompiler } from '../validation.ts'
import { CONTENT_SCHEMAS, MessageContent } from './content.ts'
import { basicRules } from './rules.ts'
import { renderContent, type Variables } from './variables.ts'

// Stored content with variables is rendered when a message is made. The rules hold for what is sent, so the result is checked then.

const check = createSchemaCompiler(CONTENT_SCHEMAS)(refTo(MessageContent))

type Checked = { content: MessageContent; violations: Violation[]; missing: Violation[] }

/** Renders stored content. It can be sent if there are no violations and nothing is missing. The paths begin at the content. */
export function renderAndCheck(stored: MessageContent, basic: boolean, values: Variables): Checked {
  const { content, missing, explain } = renderContent(stored, values)
  const violations = explain([...check(content), ...(basic ? basicRules(content, '') : [])])
  return { content: content as MessageContent, violations, missing }
}
