import { type Static, Type } from 'typebox'
import { PhoneNumber } from '../content/fields.ts'
import { fieldsOf } from '../content/untrusted.ts'
import { renderContent, type Variables } from '../content/variables.ts'
import type { Violation } from '../errors.ts'
import { CODE_LENGTH, shortLink } from '../links/codes.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { composeText, encodingFor, nonGsm7Characters } from '../sms/compose.ts'
import { measureText } from '../sms/segments.ts'
import { lengthOf } from '../text-length.ts'
import { parseTimestamp } from '../time.ts'

// The SMS that is sent if RCS does not reach a recipient: the fields of a request, and the stored form.

const MAX_DELAY_SECONDS = 604_800
const MAX_SEGMENTS = 10
const MAX_CONSENTS = 100
const TEXT_MAX_LENGTH = 1530
const VARIANT_PATH = '/smsFallback/smsMessagesPlan/0'

const flag = (description: string) => Type.Optional(Type.Boolean({ default: false, description }))
const SendTime = (description: string) => Type.Optional(Type.String({ format: 'timestamp', description }))
const Delay = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_DELAY_SECONDS, description }))

const PlanParams = Type.Object(
  {
    sender: Type.String({
      pattern: '^(?:[0-9]{3,15}|(?=.*[A-Za-z])[A-Za-z0-9 ._-]{1,11})$',
      description: '1 to 11 letters (A to Z, a to z), digits, spaces, `.`, `-` or `_` with at least one letter; or 3 to 15 digits',
      examples: ['MyShop'],
    }),
    mode: Type.Optional(
      Type.Enum(['AUTO', 'GSM7', 'UNICODE'], {
        default: 'AUTO',
        description: 'AUTO: GSM-7 if it has all characters of the text, else UCS-2. GSM7: a character that GSM-7 lacks is an error.',
      }),
    ),
    campaign: Type.Optional(Type.String({ maxLength: 100, description: 'A label. Herald returns it with the message.' })),
    // Type.Literal would appear as a number in the OpenAPI document, not as an integer.
    smsShipmentType: Type.Optional(Type.Unsafe<1>({ type: 'integer', const: 1, default: 1 })),
    sendTime: SendTime('The earliest time of the SMS after a failure.'),
    testNumbers: Type.Optional(
      Type.Array(PhoneNumber, { maxItems: 5, description: 'With `useTestNumbers`, each number gets a copy of the SMS.' }),
    ),
    controlGroup: flag('Recipients in the control group get no SMS.'),
    quarantine: flag('Recipients who got an SMS from the account within its quarantine time (24 hours by default) get no SMS.'),
    useTestNumbers: flag('Whether `testNumbers` get a copy of the SMS.'),
    consentIDS: Type.Optional(
      Type.Array(Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }), {
        maxItems: MAX_CONSENTS,
        description: 'Only recipients who have given all these consents get the SMS.',
      }),
    ),
    ignoreStatus: flag('Recipients who are marked as inactive get the SMS too. Recipients who opted out never do.'),
    delay: Delay('Seconds from the failure of the RCS message to the SMS.'),
  },
  { additionalProperties: false },
)

const Variant = Type.Object(
  {
    content: Type.String({ minLength: 1, maxLength: TEXT_MAX_LENGTH, description: 'The text.' }),
    multipart: flag(`Whether the text may take several SMS, up to ${MAX_SEGMENTS}.`),
    diacriticalSigns: flag('Whether letters that GSM-7 lacks keep their diacritics; if not, `ą` is sent as `a`.'),
    urlShortening: flag('Whether http(s) links are replaced by short links of this service, which count clicks.'),
    abTestDivision: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Has no effect with one variant.' })),
  },
  { additionalProperties: false },
)

export const SmsFallback = Type.Object(
  { planParams: PlanParams, smsMessagesPlan: Type.Array(Variant, { minItems: 1, maxItems: 1 }) },
  {
    additionalProperties: false,
    description: 'An SMS that is sent if the RCS message fails permanently.',
    examples: [
      {
        planParams: { sender: 'MyShop', smsShipmentType: 1 },
        smsMessagesPlan: [{ content: 'Your parcel is on its way.' }],
      },
    ],
  },
)

export const SmsFallbackAfterExpiry = Type.Object(
  {
    sendTime: SendTime('The earliest time of the SMS after an expiry. Must be later than `expiresAt`.'),
    delay: Delay('Seconds from the expiry to the SMS.'),
  },
  {
    additionalProperties: false,
    minProperties: 1,
    description: 'Sends the SMS also if the RCS message expires, at the later of the two times. Requires `smsFallback` and `expiresAt`.',
  },
)

type AfterExpiry = Static<typeof SmsFallbackAfterExpiry>

/** Runs before the request is validated, so its fields can have any type. */
export function afterExpiryRules({ smsFallback, smsFallbackAfterExpiry: after, expiresAt }: Record<string, unknown>): Violation[] {
  if (after === undefined) return []
  const path = '/smsFallbackAfterExpiry'
  const [sendsAt, expires] = [fieldsOf(after).sendTime, expiresAt].map((time) =>
    typeof time === 'string' ? parseTimestamp(time) : undefined,
  )
  return [
    ...(smsFallback === undefined ? [{ path, reason: 'requires smsFallback, which has the text of the SMS' }] : []),
    ...(expiresAt === undefined ? [{ path, reason: 'requires expiresAt' }] : []),
    ...(sendsAt !== undefined && expires !== undefined && sendsAt <= expires
      ? [{ path: `${path}/sendTime`, reason: 'must be later than expiresAt' }]
      : []),
  ]
}

/** The stored part of a caller's plan, with every default filled in. */
export type SmsPlan = {
  sender: string
  mode: 'AUTO' | 'GSM7' | 'UNICODE'
  content: string
  diacriticalSigns: boolean
  urlShortening: boolean
  campaign?: string
  /** The test numbers that get a copy: `+` and digits, without duplicates. */
  copies: string[]
  controlGroup: boolean
  quarantine: boolean
  consentIds: number[]
  ignoreStatus: boolean
}

/** A fallback as it is stored with its message. */
export type Fallback = {
  plan: SmsPlan
  /** How many SMS the text takes. */
  segments: number
  /** The problems of the text. They are reported after the database has looked up the key, so that a replayed request gets its first response. */
  violations: Violation[]
  delaySeconds: number
  notBefore: Date | undefined
  afterExpiry: boolean
  afterExpiryDelaySeconds: number | undefined
  afterExpiryNotBefore: Date | undefined
  /** Whether the text may take several SMS. */
  multipart: boolean
}

/**
 * `publicUrl`: the start of every short link; undefined if the operator has not set it. `sendAt`: the message may fail before that time, as when
 * its agent is deactivated, and its SMS waits until then.
 */
export function fallbackOf(
  fallback: Static<typeof SmsFallback>,
  after: AfterExpiry | undefined,
  publicUrl: string | undefined,
  sendAt?: string,
): Fallback {
  const { planParams, smsMessagesPlan } = fallback
  const variant = smsMessagesPlan[0] as Static<typeof Variant>
  const { sender, mode = 'AUTO', campaign, controlGroup = false, quarantine = false, ignoreStatus = false } = planParams
  const { content, diacriticalSigns = false, urlShortening = false, multipart = false } = variant
  const copies = planParams.useTestNumbers ? (planParams.testNumbers ?? []).map((number) => normalisePhoneNumber(number) as string) : []
  return {
    plan: {
      sender,
      mode,
      content,
      diacriticalSigns,
      urlShortening,
      ...(campaign !== undefined && { campaign }),
      copies: [...new Set(copies)],
      controlGroup,
      quarantine,
      consentIds: [...new Set(planParams.consentIDS)],
      ignoreStatus,
    },
    ...measured(mode, variant, publicUrl),
    delaySeconds: planParams.delay ?? 0,
    notBefore: timeOf(planParams.sendTime ?? sendAt),
    afterExpiry: after !== undefined,
    afterExpiryDelaySeconds: after?.delay,
    afterExpiryNotBefore: timeOf(after?.sendTime),
    multipart,
  }
}

/** The SMS of one member of a campaign. Without variables, it is the same for all. */
export function renderFallback(fallback: Fallback, values: Variables, publicUrl: string | undefined) {
  const { plan, multipart } = fallback
  const text = { content: plan.content }
  const { content: rendered, missing, explain } = renderContent(text, values, VARIANT_PATH)
  if (rendered === text) return { fallback, missing }
  const { content } = rendered as typeof text
  const { segments, violations } = measured(plan.mode, { ...plan, content, multipart }, publicUrl, () => 'has characters that GSM-7 lacks')
  const found = explain([...ofLength(content), ...violations])
  return { fallback: { ...fallback, plan: { ...plan, content }, segments, violations: found }, missing }
}

/** The rules of the schema, for a text that was rendered later. */
function ofLength(content: string): Violation[] {
  if (content === '') return unfit(0, 'must not be empty').violations
  return lengthOf(content) > TEXT_MAX_LENGTH ? unfit(0, `must have at most ${TEXT_MAX_LENGTH} characters`).violations : []
}

function timeOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : parseTimestamp(text)
}

/**
 * Measures the text as it is sent. All short links have the same length, which depends on `publicUrl`, so the schema can't check the text.
 * `lacking` describes a text with characters that GSM-7 lacks.
 */
function measured(
  mode: SmsPlan['mode'],
  variant: Static<typeof Variant>,
  publicUrl = '',
  lacking = namingCharacters,
): { segments: number; violations: Violation[] } {
  if (variant.urlShortening && publicUrl === '') {
    return unfit(0, 'requires short links, for which the operator has to set HERALD_PUBLIC_URL', 'urlShortening')
  }
  const text = composeText(variant, () => shortLink(publicUrl, 'x'.repeat(CODE_LENGTH)))
  const encoding = encodingFor(mode, text)
  if (encoding === undefined) return unfit(0, `${lacking(text)}; use mode AUTO or UNICODE`)
  const { segments } = measureText(text, encoding)
  const { multipart = false } = variant
  if (segments <= (multipart ? MAX_SEGMENTS : 1)) return { segments, violations: [] }
  const takes = `takes ${segments} SMS in ${encoding === 'GSM7' ? 'GSM-7' : 'UCS-2'}`
  return unfit(segments, multipart ? `${takes}; the limit is ${MAX_SEGMENTS}` : `${takes}; set multipart to allow up to ${MAX_SEGMENTS}`)
}

function namingCharacters(text: string): string {
  return `has ${nonGsm7Characters(text)
    .map((character) => `"${character}"`)
    .join(', ')}, which GSM-7 lacks`
}

function unfit(segments: number, reason: string, field: keyof Static<typeof Variant> = 'content') {
  return { segments, violations: [{ path: `${VARIANT_PATH}/${field}`, reason }] }
}

/** A step that stores the fallbacks of messages. `source` names a step with `id`, `account_id` and `fallback`: a Fallback as JSON. */
export const writeFallbacks = (source: string) => `
    insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, not_before,
      after_expiry, after_expiry_delay_seconds, after_expiry_not_before)
    select id, account_id, fallback -> 'plan', (fallback ->> 'segments')::smallint, (fallback ->> 'delaySeconds')::int,
      (fallback ->> 'notBefore')::timestamptz, (fallback ->> 'afterExpiry')::bool, (fallback ->> 'afterExpiryDelaySeconds')::int,
      (fallback ->> 'afterExpiryNotBefore')::timestamptz
    from ${source} where fallback is not null`
