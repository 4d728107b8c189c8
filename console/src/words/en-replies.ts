import { count } from './numbers.ts'

/** The words of the page. */
export const replies = {
  tabs: { optOuts: 'Opt-outs', automatic: 'Automatic replies', number: 'Everything about a number' },
  number: 'Phone number',
  agent: 'Agent',
  change: 'Change',
  find: 'Find',
  optOuts: {
    add: 'Add an opt-out',
    added: (agents: number) => (agents === 0 ? 'Stored for agents that are assigned later.' : `Opted out of ${count(agents, 'agent')}.`),
    allAgents: 'All agents, also those assigned later',
    anyAgent: 'Any agent',
    stopped: { campaigns: 'Campaigns', all: 'All messages' },
    stop: 'What is stopped',
    stopHint: {
      campaigns: 'Single messages still go out. The recipient can opt in again by writing START.',
      all: 'Single messages fail, too. Only you can end a block: START does not.',
    },
    sources: {
      word: 'wrote STOP',
      unsubscribe: 'unsubscribed on the phone',
      operator: 'by the operator',
      api: 'through the API or this page',
    },
    block: 'Block',
    unblock: 'Unblock',
    remove: 'Remove',
    sure: {
      block: (number: string, agent: string) =>
        `This stops all messages of ${agent} to one recipient, ${number}: single messages, too. It fails those that wait.`,
      unblock: (number: string, agent: string) =>
        `Single messages of ${agent} go out again to one recipient, ${number}. Campaigns stay stopped.`,
      remove: (number: string, agent: string) =>
        `Campaigns of ${agent} go out again to one recipient, ${number}. Do this only if the recipient has asked for it.`,
    },
    done: {
      block: 'The recipient is blocked.',
      unblock: 'The recipient is no longer blocked.',
      remove: 'The opt-out is removed.',
    },
    empty: 'Nobody has opted out',
    emptyHint: 'A recipient who writes STOP, or unsubscribes on the phone, appears here.',
    nothingFound: 'No opt-out matches these filters',
    nothingFoundHint: 'Check the number, or choose another agent.',
  },
  automatic: {
    hint: 'The longest matching keyword counts. A number gets at most one automatic reply in a minute.',
    add: 'Add an automatic reply',
    edit: 'Edit',
    save: 'Save',
    remove: 'Remove',
    keyword: 'Keyword',
    keywordHint: 'One or more words, in capitals or not.',
    template: 'Template',
    choose: 'Choose an approved template',
    noTemplate: 'No template is approved yet.',
    templateName: (id: number) => `Template ${id}`,
    sure: (keyword: string, agent: string) => `Recipients who write “${keyword}” to ${agent} get no reply from then on.`,
    saved: (keyword: string) => `Recipients who write “${keyword}” get the reply from now on.`,
    removed: 'The automatic reply is removed.',
    empty: 'No automatic reply yet',
    emptyHint: 'Recipients write “hours” or “price”, and Herald replies with a template.',
  },
  person: {
    onlyAdmins: 'Only admins see what is stored about a number',
    where: 'Where',
    in: { here: 'This account', all: 'All accounts' },
    start: 'Which number?',
    startHint: 'See, export or erase what Herald stores about a person.',
    searching: 'In a large account, this takes up to a minute.',
    total: (rows: number) => `Herald stores ${rows === 0 ? 'nothing' : count(rows, 'row')} about this number.`,
    export: 'Export as JSON',
    erase: 'Erase',
    allow: 'Allow messages again',
    sure: {
      erase: (where: string, rows: number) =>
        `${where}: this erases ${count(rows, 'row')} about one person, and fails the messages that wait. Nothing is sent to the number again. It can’t be undone, and takes up to two minutes.`,
      allow: (where: string) => `${where}: Herald can write to one person again. Do this only if the owner of the number has asked for it.`,
    },
    done: { erase: 'Everything is erased.', allow: 'The number can be written to.' },
    erasedIn: (where: string) => `${where}: erased`,
    erasedHint: 'Nothing is sent to the number.',
    onlyOperator: 'Only an operator can end an erasure in all accounts.',
  },
}
