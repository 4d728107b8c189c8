import { composeText, linksIn } from '../../../../../server/src/sms/compose.ts'
import { measureText } from '../../../../../server/src/sms/segments.ts'
import type { Violation } from '../../../app/api.ts'
import * as say from '../../../words/en-wizard.ts'

export const STEPS = ['content', 'groups', 'time', 'sms', 'review'] as const
export type Step = (typeof STEPS)[number]

/** What a person has given for a campaign so far. */
export type Draft = {
  name: string
  agentId: string
  templateId: string
  groups: number[]
  starts: 'now' | 'later'
  scheduledAt?: string | undefined
  expiresAt?: string | undefined
  hasSms: boolean
  sender: string
  smsText: string
}

export const EMPTY: Draft = {
  name: '',
  agentId: '',
  templateId: '',
  groups: [],
  starts: 'now',
  hasSms: false,
  sender: '',
  smsText: '',
}

/** What every step gets. `wrong`: what is wrong with this path of the request. */
export type StepProps = {
  draft: Draft
  change: (more: Partial<Draft>) => void
  wrong: (path: string) => string | undefined
}

/** The paths of fields in the request. */
export const TEMPLATE = '/message'
export const GROUPS = '/segmentIds'
const SMS = '/smsFallback'
export const SENDER = `${SMS}/planParams/sender`
export const SMS_TEXT = `${SMS}/smsMessagesPlan`

/** As the API limits it: server/src/campaigns/schemas.ts. */
export const MAX_GROUPS = 100

/** The text of the SMS as it is sent: letters that GSM-7 lacks lose their marks. */
export function sentText({ smsText }: Draft): string {
  const links = linksIn(smsText)
  return composeText({ content: smsText }, (index) => links[index] as string)
}

export const smsParts = (draft: Draft) => measureText(sentText(draft)).segments

/** What is missing or wrong, as far as it needs neither the clock nor the database: the API checks the rest. */
export function missingIn(draft: Draft): Violation[] {
  const { name, templateId, groups, starts, scheduledAt = '', expiresAt, hasSms, sender, smsText } = draft
  const isLater = starts === 'later'
  const rules: [isMissing: boolean, path: string, reason: string][] = [
    [name.trim() === '', '/name', say.nameMissing],
    [templateId === '', TEMPLATE, say.templateMissing],
    [groups.length === 0 || groups.length > MAX_GROUPS, GROUPS, say.groupsMissing(MAX_GROUPS)],
    [isLater && scheduledAt === '', '/scheduledAt', say.startsAtMissing],
    [isLater && expiresAt !== undefined && expiresAt <= scheduledAt, '/expiresAt', say.expiresEarly],
    [hasSms && sender.trim() === '', SENDER, say.senderMissing],
    [hasSms && smsText.trim() === '', SMS_TEXT, say.smsMissing],
  ]
  return rules.filter(([isMissing]) => isMissing).map(([, path, reason]) => ({ path, reason }))
}

/** The step of a field of the request. */
export function stepOf({ path }: Violation): Step {
  if (path.startsWith(GROUPS)) return 'groups'
  if (path === '/scheduledAt' || path === '/expiresAt') return 'time'
  return path.startsWith(SMS) ? 'sms' : 'content'
}

/** `basic`: of the template, since the request has to say the same. */
export function bodyOf(draft: Draft, basic: boolean) {
  const { name, agentId, templateId, groups, starts, scheduledAt, expiresAt, hasSms, sender, smsText } = draft
  return {
    name: name.trim(),
    agentId,
    ...(basic && { basic }),
    message: { templateId: Number(templateId) },
    segmentIds: groups,
    ...(starts === 'later' && { scheduledAt }),
    expiresAt,
    ...(hasSms && {
      smsFallback: {
        planParams: { sender, smsShipmentType: 1 },
        smsMessagesPlan: [{ content: smsText, multipart: true }],
      },
    }),
  }
}
