import assert from 'node:assert/strict'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { asText, table } from '../../src/cli/terminal.ts'
import { printable } from '../../src/printable.ts'
import { acceptedCampaign, fillGroup, phones } from '../campaigns/support.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { runHerald } from '../support/process.ts'

// Text of callers, recipients and endpoints reaches an operator's terminal escaped, never as a control sequence.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const directory = mkdtempSync(join(tmpdir(), 'herald-printed-'))
after(() => rmSync(directory, { recursive: true }))

// Clears the screen, sets a colour, breaks the line twice, reverses the text, sets the title and returns to the start of the line.
const HOSTILE = 'a\u001b[2J\u009b31mb\nc\u2028d\u202ee\u001b]0;x\u0007f\rg\u007f'
const HOSTILE_SHOWN = 'a\\u001b[2J\\u009b31mb\\u000ac\\u2028d\\u202ee\\u001b]0;x\\u0007f\\u000dg\\u007f'
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

async function hostileCampaign() {
  const sender = await createSender(pool)
  await fillGroup(pool, sender.accountId, 1, phones(0, 2))
  return { ...sender, campaignId: await acceptedCampaign(pool, sender, { name: HOSTILE }) }
}

describe('a printed line', () => {
  test('escapes every control and format character', () => {
    const written = (text: string) => printable(text)
    assert.equal(written(HOSTILE), HOSTILE_SHOWN)
    assert.equal(written('\u0000\t\u0085\u00ad\u200b\u200e\u2066\ufeff'), '\\u0000\\u0009\\u0085\\u00ad\\u200b\\u200e\\u2066\\ufeff')
    assert.equal(written('\u{e0041}'), '\\udb40\\udc41', 'in UTF-16, as JSON has it')
    assert.equal(JSON.parse(`"${written('\u{e0041}')}"`), '\u{e0041}')
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const character = String.fromCodePoint(code)
      if (CONTROL.test(character) || code === 10) assert.match(written(character), /^(\\u[0-9a-f]{4})+$/)
    }
  })

  test('keeps letters of every script, emoji and their joiners', () => {
    for (const text of ['Żółć & Söhne', 'می‌خواهم', 'क्‍ष', '👩‍👩‍👧', '🇵🇱', '1 000', 'C:\\u001b']) assert.equal(printable(text), text)
  })

  test('is the same when it is escaped twice', () => {
    assert.equal(printable(printable(HOSTILE)), HOSTILE_SHOWN)
  })

  test('has no line break but at its end', () => {
    assert.equal(asText(['one', 'two\nthree']), 'one\ntwo\\u000athree\n')
  })

  test('of a table is aligned by the escaped text', () => {
    assert.deepEqual(
      table(
        ['A', 'B'],
        [
          ['\u001b', 1],
          ['x', 2],
        ],
      ),
      ['A       B', '\\u001b  1', 'x       2'],
    )
  })
})

test('only the terminal and the log write to the standard streams', () => {
  const source = join(import.meta.dirname, '..', '..', 'src')
  const writers = globSync('**/*.ts', { cwd: source }).filter((path) =>
    /console\.\w|process\.std(out|err)\.write/.test(readFileSync(join(source, path), 'utf8')),
  )
  assert.deepEqual(writers.toSorted(), ['cli/terminal.ts', 'http/log.ts'])
})

describe('herald', { concurrency: 2 }, () => {
  test('campaign show and campaign list escape a name', async () => {
    const { accountId, campaignId } = await hostileCampaign()
    const shown = await runHerald(['campaign', 'show', campaignId], env)
    assert.equal(shown.stdout, `Campaign ${campaignId} (${HOSTILE_SHOWN}) is SCHEDULED: 0 messages.\n`)
    const { stdout } = await runHerald(['campaign', 'list', `${accountId}`], env)
    assert.equal(stdout.split('\n').length, 3, 'a head, a row, an end')
    assert.ok(stdout.includes(`  ${HOSTILE_SHOWN}  SCHEDULED  `), stdout)
    assert.doesNotMatch(stdout, CONTROL)
  })

  test('campaign cancel escapes a name in its question', async () => {
    const { campaignId } = await hostileCampaign()
    const { stderr } = await runHerald(['campaign', 'cancel', campaignId], env)
    assert.ok(stderr.includes(`(${HOSTILE_SHOWN})`), stderr)
    assert.doesNotMatch(stderr, CONTROL)
  })

  test('--json escapes too, and parses to the same text', async () => {
    const { campaignId } = await hostileCampaign()
    const { stdout } = await runHerald(['campaign', 'show', campaignId, '--json'], env)
    assert.doesNotMatch(stdout, CONTROL)
    assert.equal(JSON.parse(stdout).name, HOSTILE)
  })

  test('opt-out list escapes an agent id, in words and as JSON', async () => {
    const { accountId } = await createSender(pool)
    // The constraint rejects such ids, but the list must not rely on it.
    await ownerOf(pool).query('alter table agents drop constraint agents_agent_id_check')
    await pool.query(`insert into agents (agent_id, name, billing_type, carrier) values ($1, 'x', 'single', 'simulator')`, [HOSTILE])
    await pool.query('insert into agent_assignments (agent_id, account_id) values ($1, $2)', [HOSTILE, accountId])
    await pool.query(
      `insert into opt_outs (account_id, agent_id, phone, opted_out, source, changed_at) values ($1, $2, '+48500100200', true, 'word', now())`,
      [accountId, HOSTILE],
    )
    const { stdout } = await runHerald(['opt-out', 'list', `${accountId}`], env)
    assert.ok(stdout.endsWith(`Z  ${HOSTILE_SHOWN}\n`), stdout)
    const listed = await runHerald(['opt-out', 'list', `${accountId}`, '--json'], env)
    assert.doesNotMatch(listed.stdout, CONTROL)
    assert.equal(JSON.parse(listed.stdout)[0].agentId, HOSTILE)
  })

  test('an error message escapes what it quotes', async () => {
    const { accountId } = await createSender(pool)
    const path = join(directory, 'people\u001b[2J.csv')
    const missing = await runHerald(['group', 'import', `${accountId}`, '1', path], env)
    assert.equal(missing.stderr, `There is no file ${directory}/people\\u001b[2J.csv.\n`)
    writeFileSync(path, `phone,"${HOSTILE}","${HOSTILE}"\n+48500100200,,\n`)
    const twice = await runHerald(['group', 'import', `${accountId}`, '1', path], env)
    assert.match(twice.stderr, /^The header has two columns named ".*"\.\n$/)
    assert.doesNotMatch(twice.stderr, CONTROL)
    const wrong = await runHerald(['key', 'create', '1\u001b[2J'], env)
    assert.match(wrong.stderr, /^error: command-argument value '1\\u001b\[2J' is invalid.*An account id is a whole number.*\nSee .*\n$/)
  })
})
