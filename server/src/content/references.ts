import { buttonsOf } from './rules.ts'
import { fieldsOf } from './unchecked.ts'

/** The templates that a content's buttons send, and where each is named. `path` is where the content stands. */
export function templateReferences(content: unknown, path: string): { templateId: number; path: string }[] {
  return buttonsOf(fieldsOf(content)).flatMap(({ button, path: at }) => {
    const { type, templateId } = fieldsOf(button)
    const isReference = type === 'trigger_template' && Number.isSafeInteger(templateId) && Number(templateId) > 0
    return isReference ? [{ templateId: Number(templateId), path: `${path}${at}/templateId` }] : []
  })
}
