import { buttonsOf } from './rules.ts'
import { fieldsOf } from './untrusted.ts'

/** The templates that the buttons of a content send, each with its path. `path` is the path of the content. */
export function templateReferences(content: unknown, path: string): { templateId: number; path: string }[] {
  return buttonsOf(fieldsOf(content)).flatMap(({ button, path: at }) => {
    const { type, templateId } = fieldsOf(button)
    const isReference = type === 'trigger_template' && Number.isSafeInteger(templateId) && Number(templateId) > 0
    return isReference ? [{ templateId: Number(templateId), path: `${path}${at}/templateId` }] : []
  })
}
