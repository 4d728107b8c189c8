import { Type } from 'typebox'
import { lengthOf } from '../text-length.ts'
import { Button } from './buttons.ts'
import { MessageContent } from './content.ts'
import { BASIC_MAX_BYTES, TEXT_MAX_LENGTH } from './limits.ts'
import { contactText } from './text.ts'
import { type Fields, fieldsOf } from './untrusted.ts'
import { encodedUrl } from './urls.ts'
import type { VariableField } from './variables.ts'

// How much space the values of variables have. The author of a template does not know the values yet.

export const FieldVariables = Type.Object(
  {
    path: Type.String({ description: 'The path of the field in the body.' }),
    names: Type.Array(Type.String(), { description: 'The names of its variables, each once.' }),
    required: Type.Array(Type.String(), { description: 'The names of the variables that have no default, and so need a value.' }),
    charactersLeft: Type.Optional(
      Type.Integer({
        description:
          'How many characters the values and defaults of the field may have together. A value counts each time that its variable appears; in an address, after percent-encoding. All fields of a contact share one space. Absent if the field has no maximum length.',
      }),
    ),
    bytesLeft: Type.Optional(Type.Integer({ description: 'In Basic mode: the same in bytes, in UTF-8.' })),
  },
  { $id: 'FieldVariables', additionalProperties: false },
)

/** The fields with variables, and the space for their values. `path` is the path of the content, with which the paths of the fields begin. */
export function variableSpace(message: unknown, fields: VariableField[], { basic, path }: { basic: boolean; path: string }) {
  const inContact = contactSpace(fieldsOf(message), fields, path)
  return fields.map(({ path: at, literal, ...about }) => {
    const max = maxLengthAt(at.slice(path.length), message)
    const left = max === undefined ? inContact : Math.min(inContact, max - lengthOf(asSent(literal)))
    return {
      path: at,
      ...about,
      ...(Number.isFinite(left) && { charactersLeft: Math.max(0, left) }),
      ...(basic && { bytesLeft: Math.max(0, BASIC_MAX_BYTES - Buffer.byteLength(literal)) }),
    }
  })
}

/** Addresses are measured after percent-encoding. */
const asSent = (literal: string) => (/^https?:/i.test(literal) && URL.canParse(literal) ? encodedUrl(literal) : literal)

/** A contact is sent as one text, so all its values share the space that its other characters leave. */
function contactSpace({ type, content, data }: Fields, fields: VariableField[], path: string): number {
  if (type !== 'CONTACT') return Number.POSITIVE_INFINITY
  // A field without a literal text is a line of its own once it has a value.
  const literals = new Map(fields.map(({ path: at, literal }) => [at.slice(path.length), literal || 'x']))
  const empty = fields.filter(({ literal }) => literal === '').length
  const literalOf = (value: unknown, at: string): unknown =>
    Array.isArray(value) ? value.map((item, index) => literalOf(item, `${at}/${index}`)) : (literals.get(at) ?? value)
  const literalData = Object.fromEntries(Object.entries(fieldsOf(data)).map(([name, value]) => [name, literalOf(value, `/data/${name}`)]))
  return TEXT_MAX_LENGTH + empty - lengthOf(contactText(literalOf(content, '/content'), literalData))
}

type Schema = {
  $ref?: string
  oneOf?: Schema[]
  properties?: Record<string, Schema & { const?: string }>
  items?: Schema
  maxLength?: number
}

/** The limit of a text in a content, from the schema of the content. */
function maxLengthAt(pointer: string, message: unknown): number | undefined {
  let schema = MessageContent as Schema | undefined
  let value = message
  for (const part of pointer.split('/').slice(1)) {
    schema = schemaOf(schema, value)
    schema = schema?.items ?? schema?.properties?.[part]
    value = fieldsOf(value)[part]
  }
  return schema?.maxLength
}

/** The schema that a value has to follow. Buttons are the only schema that others refer to. */
function schemaOf(schema: Schema | undefined, value: unknown): Schema | undefined {
  const { oneOf } = schema?.$ref === undefined ? (schema ?? {}) : (Button as Schema)
  if (oneOf === undefined) return schema
  const { type } = fieldsOf(value)
  return oneOf.find(({ properties }) => properties?.type?.const === type)
}
