import { randomUUID } from 'node:crypto'
import { complain, drop, ENTRY, type Falsifications, first, forget, hasStatus, isKind, takenAtOf, upset } from './falsifying.ts'
import { SMS_AT_ONCE, WORKERS } from './verdict-network.ts'

// What the network has, and how the processes fared.

export const NETWORK: Falsifications = {
  'what the API says against the network': [
    ['no phone has it', ({ ledger }) => drop(ledger, isKind('delivered'))],
    ['nobody has read it', ({ ledger }) => drop(ledger, isKind('read'))],
    ['nobody has refused it', (all) => (all.ledger = all.ledger.filter(({ kind }) => kind !== 'refused'))],
    ['the network has one more', ({ ledger }) => ledger.push({ ...first(ledger, isKind('accepted')), messageId: randomUUID() })],
    [
      'a late one is not told of',
      ({ messages, ledger }) =>
        void ledger.push({ ...first(ledger, isKind('delivered')), messageId: first(messages, hasStatus('EXPIRED')).id }),
    ],
  ],
  'no message twice on a phone': [
    ['under one id', ({ ledger }) => ledger.push(first(ledger, isKind('delivered')))],
    ['under two', ({ ledger }) => ledger.push({ ...first(ledger, isKind('delivered')), messageId: randomUUID() })],
  ],
  'no SMS twice; unknown ones say so': [
    ['a part comes twice', ({ ledger }) => ledger.push(first(ledger, isKind('sms-part')))],
    ['one is given up, though nobody was upset', (all) => forget(all, 1)],
    [
      'one is given up that never left, though nobody was upset',
      (all) => {
        const { recipient } = first(forget(all, 1))
        all.ledger = all.ledger.filter(({ phone }) => phone !== recipient)
        // Else it is one too many.
        all.upsets = [upset('network', 0, 1)]
      },
    ],
    [
      'one is given up that was under way at another time',
      (all) => {
        const at = takenAtOf(all, first(forget(all, 1)))
        all.upsets = [upset('delivery-1', at + 4_000, at + 9_000), upset('network', at - 60_000, at - 50_000), upset('api-1', at, at)]
      },
    ],
    [
      'more are given up than can be under way',
      (all) => {
        forget(all, WORKERS * SMS_AT_ONCE + 1)
        all.upsets = [upset('network', 0, Date.now())]
      },
    ],
    ['a part is missing', ({ ledger }) => drop(ledger, isKind('sms-part'))],
    ['it failed, though the network did not say so', ({ ledger }) => drop(ledger, isKind('sms-failed'))],
    [
      'an SMS to somebody who needs none',
      ({ ledger, messages }) =>
        void ledger.push({ ...first(ledger, isKind('sms-part')), phone: first(messages, hasStatus('READ')).recipient }),
    ],
  ],
  'results are written by who holds the lease': [
    [
      'another takes it up meanwhile',
      ({ leaseChanges }) =>
        leaseChanges.push(
          { ...ENTRY, lease: 'one', leaseBefore: null },
          { ...ENTRY, by: 'delivery-2', lease: 'other', leaseBefore: 'one' },
        ),
    ],
    [
      'another writes the result',
      ({ leaseChanges }) =>
        leaseChanges.push({ ...ENTRY, lease: 'one', leaseBefore: null }, { ...ENTRY, by: 'delivery-2', lease: null, leaseBefore: 'one' }),
    ],
    ['an entry is left leased', ({ leaseChanges }) => leaseChanges.push({ ...ENTRY, lease: 'one', leaseBefore: null })],
    [
      'an SMS is left leased',
      ({ leaseChanges }) => {
        const claim = first(leaseChanges, ({ queue, lease }) => queue === 'sms_queue' && lease !== null)
        leaseChanges.splice(leaseChanges.indexOf(claim) + 1)
      },
    ],
    ['somebody writes a result who has nothing', ({ leaseChanges }) => leaseChanges.push({ ...ENTRY, lease: null, leaseBefore: null })],
  ],
  'the network forgets nothing itself': [
    ['an entry is gone', ({ seenBefore, ledger }) => seenBefore.push({ ...first(ledger), kind: 'another' })],
    ['its books have a gap', ({ ledger }) => ledger.splice(3, 1)],
  ],
  'nothing is left over': [
    ['in the queue', ({ left }) => Object.assign(left, { queue: 1 })],
    ['in the log', ({ left }) => Object.assign(left, { 'pages without a place': 1 })],
  ],
  'the walk of expiries passes no open message': [
    ['it is ahead of its time', ({ walks }) => (first(walks).reachedAt = first(walks).dueAt + 1)],
    ['it stands still', ({ walks }) => (first(walks).reachedAt -= 61_000)],
    ['it has left one behind', ({ walks, messages }) => first(walks).passed.push(first(messages).id)],
    ['there is none', ({ walks }) => walks.pop()],
    ['there are two', ({ walks }) => walks.push(first(walks))],
  ],
  'no process ended by itself, all answer': [
    ['one ended', ({ processes }) => processes.endedByItself.push('api-1 ended with 1')],
    ['one is silent', ({ processes }) => processes.silent.push('api-1')],
  ],
  'logs have no fault that an upset does not explain': [
    ['a broken rule of the database', (all) => complain(all, '{"level":"error","msg":"","err":{"code":"23505"}}')],
    [
      'no access token, though the network was well',
      (all) =>
        complain(
          all,
          '{"level":"error","time":"2026-01-01T00:00:00Z","msg":"failed to get an access token; will retry with each message"}',
        ),
    ],
    ['an exception that nobody caught', (all) => complain(all, '{"level":"fatal","msg":""}', '{"cut')],
    [
      'an error that nobody knows',
      (all) => complain(all, '{"level":"error","msg":"a request failed","err":{"type":"Error","message":"x"}}'),
    ],
  ],
  'logs hold no number, text or secret': [
    ['a number', ({ processes, messages }) => processes.written.push(`{"msg":"to ${first(messages).recipient}"}`)],
    ['a number in the network’s form', ({ processes, messages }) => processes.written.push(first(messages).recipient.slice(1))],
    ['a text', ({ processes, asked }) => processes.written.push(`{"content":"${first(asked.messages).contents.text}"}`)],
    ['a secret', ({ processes, secrets }) => processes.written.push(first(secrets))],
  ],
}
