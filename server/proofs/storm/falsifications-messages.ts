import { randomUUID } from 'node:crypto'
import {
  drop,
  type Falsification,
  type Falsifications,
  first,
  hasStatus,
  hasStep,
  isKind,
  isSingle,
  moveAccount,
  smsIs,
  stepOf,
} from './falsifying.ts'
import type { Received } from './received.ts'
import { OF_CAMPAIGNS, type Shown } from './stored.ts'

// What messages are, went through, and were answered with.

export const MESSAGES: Falsifications = {
  'contents: asked for, handed over, shown and told': [
    [
      'two texts are swapped',
      ({ received }) => {
        const [one, other] = received.filter(({ channel, text }) => channel === 'rcs' && text.includes('parcel')) as [Received, Received]
        const { text } = one
        one.text = other.text
        other.text = text
      },
    ],
    [
      'it went out by another agent',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'rcs'),
          { origin: 'other' },
        ),
    ],
    [
      'it has no button',
      ({ received }) =>
        Object.assign(
          first(received, ({ buttons }) => buttons.length > 0),
          { buttons: [] },
        ),
    ],
    [
      'the network was given another time',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'rcs'),
          { expiresAt: new Date(0).toISOString() },
        ),
    ],
    [
      'an SMS has another text',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'sms'),
          { text: 'other' },
        ),
    ],
    [
      'an SMS has another sender',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'sms'),
          { origin: 'Other' },
        ),
    ],
    ...(['agentId', 'recipient', 'clientReferenceId', 'expiresAt'] satisfies (keyof Shown)[]).map(
      (field): Falsification => [
        `the API shows another ${field}`,
        ({ messages }) => Object.assign(first(messages, isSingle).shown, { [field]: 'other' }),
      ],
    ),
    ...[-3_600_000, 1].map(
      (ms): Falsification => [
        `a message of a campaign lives for ${ms} ms more than 48 hours`,
        ({ messages }) => {
          const message = first(messages, (one) => one.campaignId !== null && one.expiresAt - one.acceptedAt > 47 * 3_600_000)
          message.expiresAt = message.acceptedAt + 48 * 3_600_000 + ms
          message.shown.expiresAt = new Date(message.expiresAt).toISOString()
        },
      ],
    ),
    ['the reference is not shown', ({ messages }) => delete first(messages, isSingle).shown.clientReferenceId],
    [
      'an event names somebody else',
      ({ log }) => {
        const event = first(log, isKind('message.sent'))
        event.data = JSON.stringify({ ...JSON.parse(event.data), recipient: '+48500999999' })
      },
    ],
  ],
  'nothing of one account at another': [
    ['a message', (all) => moveAccount(all, first(all.messages, isSingle))],
    ['a key', (all) => moveAccount(all, first(all.keys))],
    ['an event', (all) => moveAccount(all, first(all.log, isKind('message.sent')))],
    ['an answer', (all) => moveAccount(all, first(all.actions))],
    ['a campaign', (all) => moveAccount(all, first(all.campaigns))],
    ['what the API shows', ({ leaked }) => leaked.push('a message')],
    ['what went out', ({ ledger }) => Object.assign(first(ledger, isKind('accepted')), { agentId: 'other' })],
  ],
  'accepted against delivered': [
    ['one is on its way for ever', ({ messages }) => Object.assign(first(messages, hasStatus('READ')).shown, { status: 'SENT' })],
    [
      'one failed for no reason',
      ({ messages }) => Object.assign(first(messages, hasStatus('READ')).shown, { failure: { reason: 'REJECTED' } }),
    ],
    [
      'one is withdrawn with a campaign that was not cancelled',
      ({ messages, campaigns }) => {
        for (const campaign of campaigns) campaign.status = 'COMPLETED'
        const { shown } = first(messages, ({ campaignId }) => campaignId !== null)
        Object.assign(shown, { status: 'FAILED', failure: { reason: 'CAMPAIGN_CANCELLED' } })
      },
    ],
    [
      'an SMS is never sent',
      ({ messages }) => Object.assign(first(messages, smsIs('DELIVERED')).shown, { smsFallback: { status: 'SCHEDULED', segments: 1 } }),
    ],
  ],
  'columns against timelines, events and the API': [
    ...[
      'sent',
      'delivered',
      'read',
      'failed',
      'expired',
      'sms-sent',
      'sms-delivered',
      'sms-failed',
      'sms-scheduled',
      'sms-skipped',
    ].flatMap((kind): Falsification[] => [
      [
        `the timeline has no "${kind}"`,
        ({ messages }) => {
          const { list, step } = stepOf(messages, kind, 'timeline')
          list.splice(list.indexOf(step), 1)
        },
      ],
      [
        `the timeline has "${kind}", and no column does`,
        ({ messages }) => {
          const { list, step } = stepOf(messages, kind, 'steps')
          list.splice(list.indexOf(step), 1)
        },
      ],
    ]),
    [
      'the timeline has it twice',
      ({ messages }) => {
        const { list, step } = stepOf(messages, 'delivered', 'timeline')
        list.push({ ...step, at: step.at + 1 })
      },
    ],
    ['the timeline has another time', ({ messages }) => (stepOf(messages, 'delivered', 'timeline').step.at += 1)],
    ['the timeline has another reason', ({ messages }) => (stepOf(messages, 'failed', 'timeline').step.reason = 'OTHER')],
    ...OF_CAMPAIGNS.flatMap((kind): Falsification[] => [
      [
        `the timeline of a message of no campaign has "${kind}"`,
        ({ messages }) => {
          const { steps, timeline } = first(messages, (message) => message.campaignId === null && hasStep(kind)(message))
          timeline.push(first(steps, isKind(kind)))
        },
      ],
      [
        `of a message of no campaign, the log has no "${kind}"`,
        ({ messages, log }) => {
          const { id } = first(messages, (message) => message.campaignId === null && hasStep(kind)(message))
          drop(log, (event) => event.subjectId === id && event.kind === `message.${kind}`)
        },
      ],
    ]),
    ['the log has no event of it', ({ log }) => drop(log, isKind('message.delivered'))],
    ['the log has another time', ({ log }) => Object.assign(first(log, isKind('sms.delivered')), { occurredAt: new Date(0) })],
    ['the API shows another time', ({ messages }) => (first(messages, hasStatus('READ')).shown.readAt = new Date(0).toISOString())],
    ['the API shows no time', ({ messages }) => delete first(messages, hasStatus('READ')).shown.sentAt],
    ['the status is not the last step', ({ messages }) => (first(messages, hasStatus('READ')).shown.status = 'DELIVERED')],
    ['it was delivered after it had expired', ({ messages }) => (first(messages, hasStatus('READ')).expiresAt = 0)],
    [
      'it was late, and was not',
      ({ messages }) => first(messages, hasStatus('READ')).timeline.push({ kind: 'delivered-late', at: 0, reason: null }),
    ],
  ],
  'what people answered': [
    ['an answer is lost', ({ actions }) => actions.pop()],
    ['an answer counts twice', ({ actions }) => actions.push(first(actions))],
    ['it has other words', ({ actions }) => (first(actions, isKind('wrote')).text = 'other')],
    ['it is of somebody else', ({ actions }) => (first(actions, isKind('wrote')).phone = '+48500999906')],
    ['it is to another message', ({ actions }) => (first(actions, isKind('wrote')).messageId = randomUUID())],
    ['it is to no message', ({ actions }) => (first(actions, isKind('wrote')).messageId = null)],
    ['it is something else', ({ actions }) => (first(actions, isKind('opted-out')).kind = 'wrote')],
    ['it is another button', ({ actions }) => (first(actions, isKind('tapped')).buttonId = 'other')],
    ['a tap makes nothing', ({ messages }) => drop(messages, ({ triggeredBy }) => triggeredBy !== null)],
    ['a tap makes two', ({ messages }) => messages.push(first(messages, ({ triggeredBy }) => triggeredBy !== null))],
  ],
}
