import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { setQuotas } from '../../src/accounts/quotas.ts'
import { importedInWords, progressLine } from '../../src/cli/segment.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { heraldJson, runHerald, testFailures } from '../support/process.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const { accountId } = await createCaller(pool)
const account = `${accountId}`
const full = await createCaller(pool)
await setQuotas(pool, full.accountId, { storedBytes: 0 })
const directory = mkdtempSync(join(tmpdir(), 'herald-groups-'))
after(() => rmSync(directory, { recursive: true }))

function file(name: string, content: string): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

/** `herald group import` with a small heap and a pipe as standard input. */
function spawnImport(account: string, env: Record<string, string>) {
  const herald = fileURLToPath(new URL('../../bin/herald.js', import.meta.url))
  const child = spawn(process.execPath, ['--max-old-space-size=32', herald, 'group', 'import', account, '9', '-', '--json'], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: 'pipe',
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  return { child, output }
}

describe('herald group', { concurrency: 2 }, () => {
  test('import reports its result, as JSON and in words, and list shows the group', async () => {
    const path = file('people.csv', 'phone,city\n+48500100201,X\n+48500100202,Y\n+48500100201,Z\n12,X\n')
    const rejected = [{ line: 5, reason: '"12" is not a possible international phone number' }]
    assert.deepEqual(await heraldJson(['group', 'import', account, '7', path, '--name', 'People'], env), {
      group: 7,
      imported: 2,
      unchanged: 0,
      repeated: 1,
      rejectedLines: 1,
      rejected,
    })
    const again = await runHerald(['group', 'import', account, '7', path, '--yes'], env)
    assert.deepEqual(again, {
      code: 0,
      stderr: `This will import into group 7 (People) of account ${account}, which has 2 members now: members in the file are replaced, all others stay.\n`,
      stdout: [
        '2 recipients of the file are in group 7 now; 2 are unchanged.',
        '1 line has a number that appears again further down; the last one counts.',
        '1 line was rejected:',
        '  line 5: "12" is not a possible international phone number',
        '',
      ].join('\n'),
    })
    const [group] = await heraldJson(['group', 'list', account], env)
    assert.deepEqual([group.group, group.name, group.members], [7, 'People', 2])
    assert.match((await runHerald(['group', 'list', account], env)).stdout, /^GROUP +NAME +MEMBERS +CREATED +UPDATED\n7 +People +2 +20/)
  })

  test('import counts in the singular and the plural', () => {
    const result = { group: 7, imported: 1, unchanged: 1, repeated: 0, rejectedLines: 0, rejected: [] }
    assert.deepEqual(importedInWords(result), ['1 recipient of the file is in group 7 now; 1 is unchanged.'])
    assert.deepEqual(importedInWords({ ...result, imported: 1_000 }), ['1,000 recipients of the file are in group 7 now; 1 is unchanged.'])
  })

  test('import fails if every line is rejected, and reports why', async () => {
    const path = file('wrong.csv', `phone\n${'x\n'.repeat(30)}`)
    const { code, stdout } = await runHerald(['group', 'import', account, '8', path], env)
    assert.equal(code, 1)
    const lines = stdout.split('\n')
    assert.deepEqual(lines.slice(0, 3), [
      'Nothing was imported: no line of the file has a valid recipient.',
      '30 lines were rejected:',
      '  line 2: "x" is not a possible international phone number',
    ])
    assert.equal(lines.at(-2), '  and more; --json lists the first 30.')
  })

  test('import of a file that has only a header prints its result and fails with a sentence', async () => {
    const path = file('header.csv', 'phone\n')
    const { code, stdout, stderr } = await runHerald(['group', 'import', account, '8', path, '--json'], env)
    const result = { group: 8, imported: 0, unchanged: 0, repeated: 0, rejectedLines: 0, rejected: [] }
    assert.deepEqual([code, JSON.parse(stdout)], [1, result])
    assert.equal(stderr, 'Nothing was imported: no line of the file has a valid recipient.\n')
  })

  test('show, members and remove work by both names of the command', async () => {
    const account = `${(await createCaller(pool)).accountId}`
    const path = file('two.csv', 'phone,consents,timeZone,city\n+48500100201,1;7,Europe/Warsaw,X\n+48500100202,,,\n')
    await heraldJson(['segment', 'import', account, '3', path, '--name', 'Two'], env)
    const [listed] = (await heraldJson(['segment', 'list', account], env)).filter(({ group }: { group: number }) => group === 3)
    assert.deepEqual(await heraldJson(['group', 'show', account, '3'], env), listed)
    const { stdout } = await runHerald(['segment', 'show', account, '3'], env)
    assert.match(stdout, /^Group 3 \(Two\) has 2 members, and was last changed at 20.*Z\.\n$/)
    const first = {
      phone: '+48500100201',
      consents: [1, 7],
      controlGroup: false,
      status: 'active',
      timeZone: 'Europe/Warsaw',
      attributes: { city: 'X' },
    }
    const second = { phone: '+48500100202', consents: [], controlGroup: false, status: 'active' }
    assert.deepEqual(await heraldJson(['group', 'members', account, '3'], env), [first, second])
    const table = (await runHerald(['segment', 'members', account, '3'], env)).stdout.split('\n').map((line) => line.split(/ {2,}/))
    assert.deepEqual(table, [
      ['PHONE', 'STATUS', 'CONTROL', 'ZONE', 'CONSENTS', 'ATTRIBUTES'],
      ['+48500100201', 'active', 'no', 'Europe/Warsaw', '1;7', '{"city":"X"}'],
      ['+48500100202', 'active', 'no', '-', '-', '-'],
      [''],
    ])
    assert.deepEqual(await heraldJson(['segment', 'remove', account, '3', '48500100201', '--yes'], env), {
      group: 3,
      phone: '+48500100201',
    })
    const again = await runHerald(['segment', 'remove', account, '3', '48500100201', '--yes'], env)
    assert.equal(again.code, 3)
    assert.match(again.stderr, new RegExp(`\\n\\+48500100201 is not a member of group 3 \\(Two\\) of account ${account}\\.\\n$`))
    const removed = await runHerald(['group', 'remove', account, '3', '--yes'], env)
    assert.equal(removed.stdout, 'Group 3 (Two) and its 1 member were removed.\n')
    assert.equal((await runHerald(['segment', 'members', account, '3'], env)).code, 3)
  })

  const FAILURES: [args: string[], error: RegExp, status?: number][] = [
    [['import', '999', '1', file('fine.csv', 'phone\n+48500100200\n')], /^There is no account 999; see "herald account list"/],
    [
      ['import', `${full.accountId}`, '1', file('fine.csv', 'phone\n+48500100200\n')],
      /^The quota storedBytes of the account is 0, .*\.\n$/,
      1,
    ],
    [['import', account, '1', join(directory, 'none.csv')], /^There is no file .*none\.csv\.\n$/, 3],
    [['import', account, '1', directory], /is a directory, not a file\.\n$/],
    [['show', account, '77'], new RegExp(`^Account ${account} has no group 77; see "herald segment list ${account}"\\.\\n$`)],
    [['remove', '999', '77', '--yes'], /^There is no account 999; see "herald account list"/, 3],
    [['remove', account, '7', 'x', '--yes'], /It must be an international phone number/],
    [['import', account, '2147483648', 'x.csv'], /A group number is a whole number from 1 to 2147483647/],
  ]
  testFailures(['group'], FAILURES, env)

  test('import reads 100,000 rows of 300 bytes with a heap of 32 MB, and changes nothing if it is killed', async () => {
    const note = 'n'.repeat(280)
    const lines = (from: number) => Array.from({ length: 1_000 }, (_, index) => `+48${500_000_000 + from + index},${note}\n`).join('')
    const killed = spawnImport(account, env)
    killed.child.stdin.on('error', () => {})
    killed.child.stdin.write(`phone,note\n${lines(0)}${lines(1_000)}${lines(2_000)}${lines(3_000)}`)
    await until('a batch is in the database', async () => {
      const { rows } = await ownerOf(pool).query(
        `select from pg_stat_activity where datname = current_database() and query like 'copy arrivals%'`,
      )
      return rows.length > 0
    })
    killed.child.kill('SIGKILL')
    await once(killed.child, 'close')
    assert.deepEqual((await pool.query('select from group_members where group_number = 9')).rows, [])

    const { child, output } = spawnImport(account, env)
    child.stdin.write('phone,note\n')
    for (let from = 0; from < 100_000; from += 1_000) if (!child.stdin.write(lines(from))) await once(child.stdin, 'drain')
    child.stdin.end()
    const [code] = await once(child, 'close')
    assert.equal(code, 0, output.stderr)
    assert.equal(JSON.parse(output.stdout).imported, 100_000)
    const { rows } = await pool.query(`select count(*) as members from group_members where group_number = 9 and attributes->>'note' = $1`, [
      note,
    ])
    assert.deepEqual(rows, [{ members: 100_000 }])
  })

  test('Ctrl-C ends an import that waits for its input', async () => {
    const quiet = await createTestDatabase()
    const { accountId } = await createCaller(quiet.pool)
    const { child, output } = spawnImport(`${accountId}`, { HERALD_DATABASE_URL: quiet.url })
    child.stdin.write('phone\n+48500100200\n')
    await until('it has a temporary table', async () => {
      const { rows } = await quiet.pool.query(`select from pg_class where relname = 'arrivals'`)
      return rows.length > 0
    })
    child.kill('SIGINT')
    assert.deepEqual(await once(child, 'close'), [130, null], output.stderr)
  })
})

test('the progress line has rows, rate, and percent if the size is known', () => {
  const reading = { phase: 'reading' as const, rows: 123_456, bytes: 420 }
  assert.equal(progressLine(reading, { elapsedMs: 2_000, bytes: 1_000 }), '123,456 rows read, 61,728 a second, 42 %')
  assert.equal(progressLine(reading, { elapsedMs: 2_000, bytes: undefined }), '123,456 rows read, 61,728 a second')
  assert.match(progressLine({ ...reading, phase: 'writing' }, { elapsedMs: 1, bytes: 1 }), /^123,456 rows read, writing to the group/)
})
