import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Command } from 'commander'
import { EXAMPLES } from '../../src/cli/examples.ts'
import { nearest } from '../../src/cli/nearest.ts'
import { createProgram } from '../../src/cli/program.ts'
import { createTestDatabase } from '../support/database.ts'
import { runHerald, runHeraldProcess } from '../support/process.ts'
import { startSimulator } from '../support/simulator.ts'

const { url: HERALD_DATABASE_URL } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }

function leavesOf(command: Command, path: string[] = []): { path: string; command: Command }[] {
  const here = [...path, command.name()]
  if (command.commands.length === 0) return [{ path: here.slice(1).join(' '), command }]
  return command.commands.flatMap((each) => leavesOf(each, here))
}

const allOf = (command: Command): Command[] => [command, ...command.commands.flatMap(allOf)]

/** As a shell splits it. */
const wordsOf = (line: string) => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')

describe('every command', async () => {
  const program = await createProgram()
  const leaves = leavesOf(program)

  test('has an example, and no example is of another command', () => {
    assert.deepEqual(new Set(['', ...leaves.map(({ path }) => path)]), new Set(Object.keys(EXAMPLES)))
  })

  test('shows one to three examples in its help, and so does every group', () => {
    for (const command of allOf(program)) {
      let help = ''
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
      assert.match(help, /\nExamples?:(\n {2}herald\b.*){1,3}\n$/, command.name())
      if (command.parent) assert.match(help.slice(help.indexOf('\nExample')), new RegExp(` ${command.name()}\\s`), command.name())
    }
  })

  test('accepts its example', async () => {
    for (const { command } of leaves) command.action(() => {})
    for (const [path, example] of Object.entries(EXAMPLES).flatMap(([path, examples]) =>
      [examples].flat().map((each) => [path, each] as const),
    )) {
      const words = wordsOf(example)
      assert.equal(`${words.join(' ')} `.startsWith(`herald ${path}`), true, example)
      await assert.doesNotReject(program.parseAsync(words.slice(1), { from: 'user' }), example)
    }
  })

  test('prints JSON with --json, except those that print no result', () => {
    const without = leaves.filter(({ command }) => !command.options.some(({ long }) => long === '--json')).map(({ path }) => path)
    assert.deepEqual(without, ['serve', 'encryption create-key'])
  })

  test('shows its example, and names the required options in its usage', async () => {
    const { code, stdout } = await runHerald(['agent', 'create', '--help'], env)
    assert.equal(code, 0)
    assert.match(stdout, /^Usage: herald agent create --name <name> --billing-type <type> \[options\] <agent-id>\n/)
    assert.match(stdout, /technical name \(required\)/)
    assert.match(stdout, /\nExample:\n {2}herald agent create my-shop /)
  })
})

describe('a mistyped word', () => {
  const NEAR: [word: string, known: string[], meant: string | undefined][] = [
    ['campain', ['campaign', 'account'], 'campaign'],
    ['lsit', ['list', 'show'], 'list'],
    ['unpause', ['pause', 'resume'], 'resume'],
    ['unasign', ['assign', 'unassign'], 'unassign'],
    ['unassign', ['assign'], undefined],
    ['asign', ['assign', 'unassign'], 'assign'],
    ['deactivte', ['activate', 'deactivate'], 'deactivate'],
    ['deactivate', ['activate'], undefined],
    ['disable', ['enable'], undefined],
    ['delete', ['remove', 'list'], 'remove'],
    ['dactivate', ['activate', 'deactivate'], 'deactivate'],
    ['eactivate', ['activate', 'deactivate'], undefined],
    ['reactivate', ['deactivate'], undefined],
    ['uassign', ['assign', 'unassign'], 'unassign'],
    ['reasign', ['unassign'], undefined],
    ['dsable', ['enable', 'disable'], 'disable'],
    ['isable', ['enable', 'disable'], 'disable'],
    ['enble', ['enable', 'disable'], 'enable'],
    ['exclude-cancelled', ['include-cancelled'], undefined],
    ['zebra', ['list', 'show'], undefined],
  ]
  for (const [word, known, meant] of NEAR) {
    test(`${word} of ${known.join(', ')} ${meant === undefined ? 'gets no suggestion' : `suggests ${meant}`}`, () => {
      assert.equal(nearest(word, known), meant)
    })
  }

  test('suggests a removal for "unblock" only in opt-outs', async () => {
    const program = await createProgram()
    const suggested = program.commands.flatMap((group) => {
      const known = group.commands.map((each) => each.name())
      const found = nearest('unblock', known, group.name())
      return found === undefined ? [] : [`${group.name()} ${found}`]
    })
    assert.deepEqual(suggested.sort(), ['opt-out remove', 'webhook enable'])
  })

  test('is refused with the nearest command or option', async () => {
    for (const [args, error] of [
      [['campain', 'list', '1'], /unknown command 'campain'\nDid you mean "campaign"\? See "herald --help"\.\n$/],
      [['campaign', 'unpause', 'x'], /unknown command 'unpause'\nDid you mean "resume"\? See "herald campaign --help"\.\n$/],
      [['webhook', 'unblock', '3'], /unknown command 'unblock'\nDid you mean "enable"\? See "herald webhook --help"\.\n$/],
      [['account', 'list', '--jsn'], /unknown option '--jsn'\nDid you mean "--json"\? See "herald account list --help"\.\n$/],
      [['agent', 'assign', 'a'], /missing required argument 'account-id'\nSee "herald agent assign --help"\.\n$/],
    ] as const) {
      const { code, stderr } = await runHerald([...args], env)
      assert.equal(code, 2)
      assert.match(stderr, error)
    }
  })
})

describe('a carrier name', () => {
  test('must be one of HERALD_CARRIERS, and is the only one by default', async () => {
    const { carriersFile } = await startSimulator()
    const create = (id: string, ...more: string[]) =>
      runHerald(['agent', 'create', id, '--name', id, '--billing-type', 'single', '--json', ...more], {
        ...env,
        HERALD_CARRIERS: carriersFile,
      })
    const wrong = await create('a', '--carrier', 'simulater')
    assert.deepEqual([wrong.code, wrong.stderr], [3, 'There is no RCS carrier simulater. Did you mean simulator?\n'])
    const other = await create('a', '--carrier', 'rbm')
    assert.deepEqual([other.code, other.stderr], [3, 'There is no RCS carrier rbm: HERALD_CARRIERS has simulator.\n'])
    assert.equal(JSON.parse((await create('b')).stdout).carrier, 'simulator')
  })
})

describe('the exit status', () => {
  const CASES: [status: number, kind: string, args: string[], more?: Record<string, string>][] = [
    [0, 'success', ['account', 'list']],
    [1, 'a refusal', ['account', 'suspend', '1']],
    [2, 'wrong usage', ['account', 'rename', '1']],
    [2, 'a wrong setting', ['account', 'list'], { HERALD_PORT: 'eighty' }],
    [3, 'something that does not exist', ['webhook', 'enable', '99']],
    [3, 'a message that does not exist', ['message', 'show', 'x']],
    [4, 'a database out of reach', ['account', 'list'], { HERALD_DATABASE_URL: 'postgres://127.0.0.1:1/x' }],
  ]
  for (const [status, kind, args, more] of CASES) {
    test(`is ${status} for ${kind}`, async () => {
      if (status === 1) await runHerald(['account', 'create', 'Any'], env)
      assert.equal((await runHeraldProcess(args, { ...env, ...more })).code, status)
    })
  }
})
