import { Type } from 'typebox'
import { MessageContent } from '../content/content.ts'
import { basicRules } from '../content/rules.ts'
import { fieldsOf } from '../content/untrusted.ts'
import { type Rendered, renderContent, type Variables } from '../content/variables.ts'
import type { Violation } from '../errors.ts'
import { OutgoingTime, refTo } from '../schemas.ts'
import type { Prepared } from '../validation.ts'
import { TEMPLATE_STATUSES } from './templates.ts'

export const TEMPLATES_TAG = { name: 'Templates', description: 'Stored content that is sent by its id.' }
export const tags = [TEMPLATES_TAG.name]

export const name = Type.String({ minLength: 1, maxLength: 200 })
export const description = Type.Optional(Type.String({ maxLength: 1000 }))
export const basic = Type.Boolean({ description: 'RCS Basic: a text of at most 160 bytes in UTF-8, with no buttons.' })
export const status = Type.Enum([...TEMPLATE_STATUSES], { description: 'Only `APPROVED` templates can be sent.' })
export const message = refTo(MessageContent)

export const EXAMPLE = {
  name: 'Order on its way',
  status: 'APPROVED',
  message: {
    type: 'CARD',
    content: 'It should be with you tomorrow before noon.',
    data: { title: 'Your order is on its way', imageUrl: 'https://example.com/parcel.jpg' },
    buttons: [{ id: 'track', type: 'url', text: 'Track it', url: 'https://example.com/track' }],
  },
}
export const OPTIONS = { additionalProperties: false, rules: basicMode, prepare: (body: unknown) => prepareTemplate(body) }

/** A template is checked with its defaults, and stored as it was written: the values come with its messages. */
export function prepareTemplate(body: unknown, values?: Variables): Prepared & Rendered {
  const { message } = fieldsOf(body)
  const rendered = renderContent(message, values, '/message')
  const checked = rendered.content === message ? body : { ...fieldsOf(body), message: rendered.content }
  return { checked, value: body, ...rendered }
}

function basicMode({ basic, message }: Record<string, unknown>): Violation[] {
  return basic === true ? basicRules(message, '/message') : []
}

const Id = Type.Integer({ description: 'Unique, below 2^53, and in the order of creation to the millisecond. Ids have gaps of any size.' })

export const Template = Type.Object(
  { id: Id, name, description, basic, status, message, createdAt: OutgoingTime, updatedAt: OutgoingTime },
  {
    $id: 'Template',
    additionalProperties: false,
    examples: [
      { id: 786_471_321_601_234, ...EXAMPLE, basic: false, createdAt: '2026-01-31T08:00:00.000Z', updatedAt: '2026-01-31T08:00:00.000Z' },
    ],
  },
)

export const NewTemplate = Type.Object(
  {
    name,
    description,
    basic: Type.Optional(Type.Boolean({ ...basic, default: false })),
    status: Type.Optional(Type.Enum([...TEMPLATE_STATUSES], { ...status, default: 'DRAFT' })),
    message,
  },
  { ...OPTIONS, examples: [EXAMPLE] },
)

export const TemplateReplacement = Type.Object(
  { name, description, basic, status, message },
  { ...OPTIONS, examples: [{ ...EXAMPLE, basic: false }] },
)
