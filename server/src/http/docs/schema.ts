import { type ApiDocument, flatten, resolve, type Schema, schemaName } from './document.ts'
import { type Html, html, join, markdown, type Part } from './html.ts'

/**
 * How a schema is shown. `inPlace` is for requests: the fields of a named object are shown where it is used, so that the reader has the whole
 * body in one place. A named object within another one links to where it is listed instead, and so does every named object in other views:
 * the buttons would otherwise be shown nine times, once for every kind of message. `marks`: for a request the page marks required fields, for a
 * response optional ones. `above` holds the names of the enclosing objects, so that the recursion of an object that contains itself ends.
 */
export type View = { document: ApiDocument; inPlace: boolean; marks: 'required' | 'optional'; above: readonly string[] }

/** The fields and kinds of a body, or its type if it has none. */
export function bodySchema(view: View, schema: Schema): Html {
  const { schema: flat, name } = flatten(view.document, schema)
  const below = inside(view, name)
  const content = structure(below, flat)
  if (content !== undefined) return html`${line(limits(flat))}${content}`
  return html`${line([typeLabel(below, flat), ...limits(flat, view)])}${unfolded(below, flat)}`
}

type Field = { name: string; schema: Schema; required: boolean; description?: string | undefined; note?: string }

export function fieldList(view: View, fields: Field[]): Html {
  return html`<ul class="fields">${fields.map((field) => fieldItem(view, field))}</ul>`
}

function fieldItem(view: View, { name, schema, required, description, note }: Field): Html {
  const { schema: flat } = flatten(view.document, schema)
  const content = unfolded(view, schema)
  return html`<li>
<p class="field"><code class="name">${name}</code> <span class="type">${typeLabel(view, schema)}</span>${note && html` <span class="note">${note}</span>`}${
    required === (view.marks === 'required') && html` <span class="${view.marks}">${view.marks}</span>`
  }${flat.deprecated && html` <span class="deprecated">deprecated</span>`}</p>
${text(description ?? flat.description)}${line(limits(flat, view))}${content}</li>`
}

/** The nested fields of a field, collapsed; undefined for a plain value, and for an object that is only linked. */
function unfolded(view: View, schema: Schema): Html | undefined {
  const { schema: flat, name } = flatten(view.document, schema)
  if (isElsewhere(view, name)) return undefined
  const below = inside(view, name)
  const content = flat.items ?? mapOf(flat)
  if (content !== undefined) return unfolded(below, content)
  const shown = structure(below, flat)
  if (shown === undefined || flat.properties === undefined) return shown
  return html`<details><summary>${count(Object.keys(flat.properties).length, 'field')}</summary>${shown}</details>`
}

function structure(view: View, schema: Schema): Html | undefined {
  const properties = Object.entries(schema.properties ?? {})
  const kinds = schema.oneOf ?? schema.anyOf ?? []
  const hasKinds = kinds.some((kind) => isStructured(view, kind))
  if (properties.length === 0 && !hasKinds) return undefined
  const fields = properties.map(([name, property]) => ({ name, schema: property, required: schema.required?.includes(name) ?? false }))
  return html`${fields.length > 0 && fieldList(view, fields)}${hasKinds && kindList(view, schema, kinds)}`
}

function kindList(view: View, { anyOf, discriminator }: Schema, kinds: Schema[]): Html {
  return html`<div class="kinds"><p class="kinds-title">${anyOf ? 'Any of' : 'One of'}</p>${kinds.map((kind) => {
    const { schema, name } = flatten(view.document, kind)
    const label = kindLabel(view, kind, discriminator?.propertyName)
    const isLink = isElsewhere(view, name)
    const content = isLink ? undefined : structure(inside(view, name), schema)
    if (content === undefined) return html`<div class="kind">${isLink ? typeLabel(view, kind) : label}${line(limits(schema, view))}</div>`
    return html`<details class="kind"><summary>${label}</summary>${text(schema.description)}${line(limits(schema, view))}${content}</details>`
  })}</div>`
}

/** The discriminator's value and the title of this kind; without either, the names of its required fields. */
function kindLabel(view: View, kind: Schema, discriminator: string | undefined): Html {
  const { schema, name } = flatten(view.document, kind)
  const property = schema.properties?.[discriminator ?? '']
  const value = property && fixedValue(resolve(view.document, property))
  const title = schema.title ?? name
  if (value !== undefined)
    return html`<code>${discriminator}: ${JSON.stringify(value)}</code> ${title && html`<span class="title">${title}</span>`}`
  if (title !== undefined) return html`<span class="title">${title}</span>`
  const names = schema.required ?? Object.keys(schema.properties ?? {})
  return names.length > 0 ? html`<code>{ ${names.join(', ')} }</code>` : html`${typeLabel(view, kind)}`
}

export function typeLabel(view: View, schema: Schema): Part {
  const { schema: flat, nullable, name } = flatten(view.document, schema)
  const label = name === undefined ? plainLabel(view, flat) : html`<a href="#object-${name}">${name}</a>`
  return nullable ? html`${label} or null` : label
}

function plainLabel(view: View, schema: Schema): Part {
  if (schema.type === 'array' || schema.items !== undefined) return html`array of ${typeLabel(view, schema.items ?? {})}`
  const map = mapOf(schema)
  if (map !== undefined) return html`map of ${typeLabel(view, map)}`
  const kinds = schema.oneOf ?? schema.anyOf ?? []
  if (kinds.some((kind) => isStructured(view, kind) && schemaName(kind) === undefined)) return 'object'
  if (kinds.length > 0)
    return join(
      kinds.map((kind) => typeLabel(view, kind)),
      ' or ',
    )
  const types = [schema.type ?? valueTypes(schema)].flat()
  return html`${types.length === 0 ? 'any value' : types.join(' or ')}${schema.format && html` <span class="format">${schema.format}</span>`}`
}

/** The types of a schema that lists its values without a type. */
function valueTypes(schema: Schema): string[] {
  if (schema.properties !== undefined) return ['object']
  return [...new Set(valuesOf(schema).map((value) => (value === null ? 'null' : typeof value)))]
}

function valuesOf(schema: Schema): unknown[] {
  return schema.const === undefined ? (schema.enum ?? []) : [schema.const]
}

export function fixedValue(schema: Schema): unknown {
  const values = valuesOf(schema)
  return values.length === 1 ? values[0] : undefined
}

function isStructured(view: View, schema: Schema): boolean {
  const { schema: flat } = flatten(view.document, schema)
  return flat.properties !== undefined || [...(flat.oneOf ?? []), ...(flat.anyOf ?? [])].some((kind) => isStructured(view, kind))
}

function mapOf({ additionalProperties, patternProperties = {} }: Schema): Schema | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties : Object.values(patternProperties)[0]
}

function isElsewhere(view: View, name: string | undefined): boolean {
  return name !== undefined && (!view.inPlace || view.above.length > 0)
}

function inside(view: View, name: string | undefined): View {
  return name === undefined ? view : { ...view, above: [...view.above, name] }
}

function limits(schema: Schema, view?: View): Part[] {
  const values = valuesOf(schema)
  const each = schema.items !== undefined && view !== undefined ? limits(flatten(view.document, schema.items).schema) : []
  return [
    values.length > 0 && html`${values.length === 1 ? 'always ' : 'one of '}${join(values.map(code), ' ')}`,
    range(schema.minLength, schema.maxLength, 'character'),
    range(schema.minimum, schema.maximum),
    schema.exclusiveMinimum !== undefined && `over ${schema.exclusiveMinimum}`,
    schema.exclusiveMaximum !== undefined && `under ${schema.exclusiveMaximum}`,
    schema.multipleOf !== undefined && `a multiple of ${schema.multipleOf}`,
    range(schema.minItems, schema.maxItems, 'item'),
    schema.uniqueItems && 'no repeats',
    range(schema.minProperties, schema.maxProperties, 'field'),
    schema.pattern !== undefined && html`matches <code>${schema.pattern}</code>`,
    each.length > 0 && html`each: ${join(each, ', ')}`,
    schema.default !== undefined && html`default ${code(schema.default)}`,
  ].filter((limit) => limit !== false && limit !== undefined)
}

function range(least: number | undefined, most: number | undefined, unit?: string): string | undefined {
  const counted = (value: number) => (unit === undefined ? String(value) : count(value, unit))
  if (least === undefined || (least === 0 && unit !== undefined)) return most === undefined ? undefined : `at most ${counted(most)}`
  if (most === undefined) return `at least ${counted(least)}`
  return least === most ? `exactly ${counted(most)}` : `${least} to ${counted(most)}`
}

function code(value: unknown): Html {
  return html`<code>${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}</code>`
}

function count(value: number, unit: string): string {
  return `${value} ${unit}${value === 1 ? '' : 's'}`
}

function text(description: string | undefined): Html | undefined {
  return description === undefined ? undefined : html`<div class="text">${markdown(description)}</div>`
}

function line(facts: Part[]): Html | undefined {
  const shown = facts.filter((fact) => fact !== undefined)
  return shown.length === 0 ? undefined : html`<p class="limits">${join(shown, html`<span class="dot"> · </span>`)}</p>`
}
