import fc from 'fast-check'

// Valid content of every type and up to every limit, and single changes that make it invalid.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Any text that PostgreSQL can store. The lengths are in code points. */
function text(minLength: number, maxLength: number) {
  return fc.string({ unit: 'binary', minLength, maxLength }).map((value) => value.replaceAll('\0', ' '))
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const name = fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/)
const mediaUrl = fc
  .tuple(name, fc.constantFrom('com', 'example', 'pl', 'co.uk'), fc.webPath())
  .map(([host, domain, path]) => `https://${host}.${domain}${path}`)
const pageUrl = fc.webUrl({ validSchemes: ['http', 'https'], withQueryParameters: true, withFragments: true })
const phoneNumber = fc.integer({ min: 500_000_000, max: 899_999_999 }).map((number) => `+48${number}`)
const latitude = fc.double({ min: -90, max: 90, noNaN: true }).map(withoutNegativeZero)
const longitude = fc.double({ min: -180, max: 180, noNaN: true }).map(withoutNegativeZero)
const time = fc.date({ min: new Date('1970-01-01'), max: new Date('2099-01-01'), noInvalidDate: true })

// JSON has one zero.
function withoutNegativeZero(value: number): number {
  return value === 0 ? 0 : value
}

function button(templateIds: number[]) {
  const fields = fc.oneof(
    fc.record({ type: fc.constant('url'), url: pageUrl }),
    fc.record({ type: fc.constant('quick_reply'), payload: text(1, 2048) }),
    fc.record({ type: fc.constant('call'), phoneNumber }),
    fc
      .record({ type: fc.constant('calendar'), title: text(1, 100), from: time, minutes: fc.integer({ min: 1, max: 10_000 }) })
      .map(({ type, title, from, minutes }) => ({
        type,
        title,
        startTime: from.toISOString(),
        endTime: new Date(from.getTime() + minutes * 60_000).toISOString(),
      })),
    fc.constant({ type: 'location' }),
    fc.record({ type: fc.constant('location'), latitude, longitude, label: optional(text(0, 100)) }),
    ...(templateIds.length > 0 ? [fc.record({ type: fc.constant('trigger_template'), templateId: fc.constantFrom(...templateIds) })] : []),
  )
  return fc.tuple(text(1, 25), fields).map(([label, rest]) => ({ id: '', text: label, ...rest }))
}

/** `templateIds`: the templates that buttons may trigger. */
export function validContent(templateIds: number[] = []): fc.Arbitrary<Record<string, Json>> {
  const buttons = (maxLength: number) => optional(fc.array(button(templateIds), { maxLength }))
  const height = optional(fc.constantFrom('SHORT', 'MEDIUM', 'TALL'))
  const card = fc.record({ title: text(1, 200), content: optional(text(0, 2000)), imageUrl: optional(mediaUrl) })
  const content = (type: string, fields: Record<string, fc.Arbitrary<unknown>>, maxButtons = 11) =>
    fc.record({ type: fc.constant(type), ...fields, buttons: buttons(maxButtons) })
  const vertical = fc.record({
    title: optional(text(1, 200)),
    imageUrl: optional(mediaUrl),
    orientation: optional(fc.constant('VERTICAL')),
    height,
  })
  const horizontal = fc.record({
    imageUrl: optional(mediaUrl),
    orientation: fc.constant('HORIZONTAL'),
    imageAlignment: optional(fc.constantFrom('LEFT', 'RIGHT')),
  })
  const cards = fc.array(
    fc.tuple(card, height, buttons(4)).map(([fields, cardHeight, ofCard]) => ({ ...fields, height: cardHeight, buttons: ofCard })),
    { minLength: 2, maxLength: 10 },
  )
  const contact = fc.record({
    name: text(1, 200),
    phoneNumbers: fc.array(phoneNumber, { minLength: 1, maxLength: 5 }),
    email: optional(name.map((local) => `${local}@example.com`)),
    organization: optional(text(1, 200)),
  })
  return fc
    .oneof(
      content('MESSAGE', { content: text(1, 3072), data: optional(fc.constant({})) }),
      content('AUDIO', { content: optional(fc.constant('')), data: fc.record({ audioUrl: mediaUrl }) }),
      content('VIDEO', { content: optional(text(0, 2000)), data: fc.record({ videoUrl: mediaUrl, thumbnailUrl: optional(mediaUrl) }) }),
      content('FILE', { data: fc.record({ fileUrl: mediaUrl, fileName: optional(text(1, 255)) }) }),
      content('CARD', { content: text(1, 2000), data: fc.oneof(vertical, horizontal) }, 4),
      content('CAROUSEL', { data: fc.record({ cardWidth: optional(fc.constant('MEDIUM')), cards }) }),
      content('CONTACT', { content: optional(text(0, 500)), data: contact }, 6),
      content(
        'LOCATION',
        { content: optional(text(0, 3072)), data: fc.record({ latitude, longitude, label: optional(text(0, 100)) }) },
        10,
      ),
    )
    .map(withUniqueIds)
}

function withUniqueIds(content: object): Record<string, Json> {
  let count = 0
  const numbered = JSON.stringify(content, (key, value) => {
    if (key !== 'id') return value
    count += 1
    return `b${count}`
  })
  return JSON.parse(numbered)
}

type Position = { holder: Json[] | { [name: string]: Json }; key: string; value: Json }

/** Every value within a value, with the object or list that holds it. */
function positions(holder: Json): Position[] {
  if (typeof holder !== 'object' || holder === null) return []
  return Object.entries(holder).flatMap(([key, value]) => [{ holder, key, value } as Position, ...positions(value)])
}

/** A change that no rule allows. Undefined if it does not apply to the value. */
type Mutation = (position: Position) => Json | undefined

const MUTATIONS: Record<string, Mutation> = {
  'an unknown field': ({ value }) => (isObject(value) ? { ...value, colour: 'red' } : undefined),
  'another type': ({ value }) =>
    typeof value === 'boolean' ? 'true' : typeof value === 'string' ? 5 : Array.isArray(value) ? {} : isObject(value) ? [] : String(value),
  'a text with NUL': ({ value }) => (typeof value === 'string' ? `${value}\0` : undefined),
  'half a surrogate pair': ({ value }) => (typeof value === 'string' ? `\ud83d${value}` : undefined),
  'a text over every limit': ({ value }) => (typeof value === 'string' ? 'x'.repeat(3073) : undefined),
  'a number over every limit': ({ value }) => (typeof value === 'number' ? 2 ** 53 : undefined),
  'a list over every limit': ({ value }) => (Array.isArray(value) && value.length > 0 ? Array(12).fill(value[0]) : undefined),
  'a required field left out': ({ value }) => (isObject(value) && 'id' in value ? without(value, 'text') : undefined),
  'no type': ({ value }) => (isObject(value) && 'type' in value ? without(value, 'type') : undefined),
  'an id that another button has': ({ holder, key, value }) =>
    Array.isArray(holder) && Number(key) > 0 && isObject(value) && 'id' in value
      ? { ...value, id: (holder[0] as { id: string }).id }
      : undefined,
}

/** Valid content with one change that makes it invalid. */
export const brokenContent = fc
  .tuple(validContent([1]), fc.constantFrom(...Object.keys(MUTATIONS)), fc.nat())
  .map(([content, name, choice]) => {
    const message = structuredClone(content)
    const mutate = MUTATIONS[name] as Mutation
    const candidates = positions({ message }).filter((position) => mutate(position) !== undefined)
    const chosen = candidates[choice % candidates.length]
    if (chosen === undefined) return undefined
    const root = { message }
    ;(chosen.key === 'message' && chosen.value === message ? root : (chosen.holder as Record<string, Json>))[chosen.key as 'message'] =
      mutate(chosen) as never
    return { name, key: chosen.key, message: root.message as Json }
  })
  .filter((broken) => broken !== undefined)

function isObject(value: Json): value is { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function without(value: { [name: string]: Json }, field: string): Json {
  const { [field]: _, ...rest } = value
  return rest
}
