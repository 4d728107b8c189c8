import type { Button } from './buttons.ts'
import type { MessageContent } from './content.ts'
import { buttonsOf } from './rules.ts'

/** The templates that a content's buttons send, and where each is named. `path` is where the content stands. */
export function templateReferences(content: MessageContent, path: string): { templateId: number; path: string }[] {
  return buttonsOf(content).flatMap((found) => {
    const button = found.button as Button
    return button.type === 'trigger_template' ? [{ templateId: button.templateId, path: `${path}${found.path}/templateId` }] : []
  })
}
