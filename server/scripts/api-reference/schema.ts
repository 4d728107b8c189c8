import type { Schema } from './document.ts'
import { type Html, html, join, markdown, type Part } from './html.ts'

/**
 * How the page shows a schema. With `inPlace`, the fields of a named object appear where it is used, so that a request has its whole body in
 * one place. A named object within another one is a link instead, and so is every named object elsewhere: otherwise the buttons would appear
 * nine times, once for every kind of message. `marks`: requests mark the required fields, responses the optional ones.
 */
export type View = { inPlace: boolean; marks: 'required' | 'optional' }

/** The fields and kinds of a body, or its type if it has none. */
export function bodySchema(view: View, schema: Schema): Html {
  const content = structure(inside(view, schema), schema)
  if (content !== undefined) return html`${line(limits(schema))}${content}`
  return html`${line([typeLabel(schema), ...limits(schema)])}${nestedFields(view, schema)}`
}

type Field = { name: string; schema: Schema; required?: boolean | undefined; description?: string | undefined; note?: string }

export function fieldList(view: View, fields: Field[]): Html {
  return html`<ul class="fields">${fields.map((field) => fieldItem(view, field))}</ul>`
}

function fieldItem(view: View, { name, schema, required = false, description = schema.description, note }: Field): Html {
  const isMarked = required === (view.marks === 'required')
  return html`<li>
<p class="field"><code class="name">${name}</code> <span class="type">${typeLabel(schema)}</span>${note && html` <span class="note">${note}</span>`}${
    isMarked && html` <span class="${view.marks}">${view.marks}</span>`
  }</p>
${text(description)}${line(limits(schema))}${nestedFields(view, schema)}</li>`
}

/** The nested fields of a field, collapsed; undefined for a plain value, and for an object that is only linked. */
function nestedFields(view: View, schema: Schema): Html | undefined {
  if (isElsewhere(view, schema)) return undefined
  if (schema.items !== undefined) return nestedFields(view, schema.items)
  const content = structure(inside(view, schema), schema)
  if (content === undefined || schema.properties === undefined) return content
  return html`<details><summary>${count(Object.keys(schema.properties).length, 'field')}</summary>${content}</details>`
}

function structure(view: View, { properties = {}, required = [], oneOf = [], discriminator }: Schema): Html | undefined {
  const fields = Object.entries(properties).map(([name, schema]) => ({ name, schema, required: required.includes(name) }))
  if (fields.length === 0 && oneOf.length === 0) return undefined
  return html`${fields.length > 0 && fieldList(view, fields)}${oneOf.length > 0 && kindList(view, oneOf, discriminator?.propertyName)}`
}

function kindList(view: View, kinds: Schema[], discriminator: string | undefined): Html {
  return html`<div class="kinds"><p class="kinds-title">One of</p>${kinds.map((kind) => {
    if (isElsewhere(view, kind)) return html`<div class="kind">${typeLabel(kind)}${line(limits(kind))}</div>`
    const [value] = kind.properties?.[discriminator ?? '']?.enum ?? []
    return html`<details class="kind"><summary><code>${discriminator}: ${JSON.stringify(value)}</code> ${
      kind.title && html`<span class="title">${kind.title}</span>`
    }</summary>${text(kind.description)}${line(limits(kind))}${structure(inside(view, kind), kind)}</details>`
  })}</div>`
}

export function typeLabel(schema: Schema): Html {
  const { name, nullable } = schema
  return html`${name === undefined ? plainLabel(schema) : html`<a href="#object-${name}">${name}</a>`}${nullable && ' or null'}`
}

function plainLabel({ items, type, format, enum: [value] = [], additionalProperties }: Schema): Html {
  if (items !== undefined) return html`array of ${typeLabel(items)}`
  if (typeof additionalProperties === 'object') return html`object of ${typeLabel(additionalProperties)}`
  return html`${type ?? typeof value}${format && html` <span class="format">${format}</span>`}`
}

function isElsewhere({ inPlace }: View, { name }: Schema): boolean {
  return name !== undefined && !inPlace
}

function inside(view: View, { name }: Schema): View {
  return name === undefined ? view : { ...view, inPlace: false }
}

function limits(schema: Schema): Part[] {
  checkKeywords(schema)
  const values = schema.enum ?? []
  const { items, additionalProperties } = schema
  const item = items ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
  const each = item === undefined ? [] : limits(item)
  return [
    values.length > 0 && html`${values.length === 1 ? 'always ' : 'one of '}${join(values.map(code), ' ')}`,
    range(schema.minLength, schema.maxLength, 'character'),
    range(schema.minimum, schema.maximum),
    range(schema.minItems, schema.maxItems, 'item'),
    range(schema.minProperties, schema.maxProperties, 'field'),
    schema.pattern !== undefined && html`matches <code>${schema.pattern}</code>`,
    each.length > 0 && html`each: ${join(each, ', ')}`,
    schema.default !== undefined && html`default ${code(schema.default)}`,
  ].filter((limit) => limit !== false && limit !== undefined)
}

const KEYWORDS = new Set(
  `title description type format enum default examples properties required additionalProperties items minItems maxItems minLength maxLength
  minProperties maxProperties minimum maximum pattern oneOf discriminator name nullable`.split(/\s+/),
)

/** Throws for a keyword that the page does not show, so that no limit of a field stays undocumented. */
function checkKeywords(schema: Schema): void {
  for (const [keyword, value] of Object.entries(schema)) {
    if (!KEYWORDS.has(keyword)) throw new Error(`The API reference cannot show "${keyword}": ${JSON.stringify(value)}.`)
  }
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
  return facts.length === 0 ? undefined : html`<p class="limits">${join(facts, html`<span class="dot"> · </span>`)}</p>`
}
