import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import pg from 'pg'
import { createGroup, listGroups } from '../../src/groups/groups.ts'
import { type ImportProgress, importGroup } from '../../src/groups/import.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'

const { pool, url } = await createTestDatabase()
const { accountId } = await createCaller(pool)
let lastGroup = 0

function run(number: number, content: string | string[], name?: string) {
  const chunks = (Array.isArray(content) ? content : [content]).map((chunk) => Buffer.from(chunk))
  return importGroup(pool, { accountId, number, name, source: Readable.from(chunks) })
}

/** Imports into a new group. */
async function importNew(content: string) {
  lastGroup += 1
  return { number: lastGroup, ...(await run(lastGroup, content)) }
}

async function members(number: number) {
  const { rows } = await pool.query(
    `select phone, consents, control_group, active, attributes from group_members where account_id = $1 and group_number = $2 order by phone`,
    [accountId, number],
  )
  return rows.map(({ phone, consents, control_group, active, attributes }) => [phone, consents, control_group, active, attributes])
}

async function phones(number: number): Promise<string[]> {
  return (await members(number)).map(([phone]) => phone)
}

const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => `+48${500_000_000 + from + index}`)

describe('importing a group', () => {
  test('reads known columns in any order and case, and keeps others as attributes', async () => {
    const { number, ...result } = await importNew(
      '\uFEFF City ;STATUS; Phone;Consents;controlgroup;__proto__\r\n' +
        'Łódź;Inactive; +48 500-100-201 ;"3; 1;3";YES;x\r\n' +
        '"a ""b""\\\t\r\n;";;48500100202;;0;\r\n' +
        ';active;0048500100203;1;;\r\n' +
        ';ACTIVE;+48500100204;2147483647;False;\r\n',
    )
    assert.deepEqual(result, {
      group: number,
      imported: 3,
      unchanged: 0,
      repeated: 0,
      rejectedLines: 1,
      rejected: [{ line: 5, reason: '"0048500100203" is not a possible international phone number' }],
    })
    assert.deepEqual(await members(number), [
      ['+48500100201', [3, 1], true, false, JSON.parse('{"City":"Łódź","__proto__":"x"}')],
      ['+48500100202', [], false, true, { City: 'a "b"\\\t\r\n;' }],
      ['+48500100204', [2147483647], false, true, null],
    ])
  })

  test('rejects an invalid line with its number and a reason, and imports the others', async () => {
    const { imported, rejected, rejectedLines } = await importNew(
      [
        'phone,consents,controlGroup,status,note',
        '12,,,,',
        `${'9'.repeat(60)}\u009b,,,,`,
        ',,,,',
        '+48500100200',
        '+48500100200,-1,,,',
        '+48500100200,2147483648,,,',
        '+48500100200,1;;2,,,',
        '+48500100200,,maybe,,',
        '+48500100200,,,gone,',
        '+48500100200,,,,a\0b',
        '"+48500100200",,,,"a"b',
        '',
        '+48500100200,1,1,active,fine',
      ].join('\n'),
    )
    assert.equal(imported, 1)
    assert.equal(rejectedLines, 11)
    assert.deepEqual(rejected, [
      { line: 2, reason: '"12" is not a possible international phone number' },
      { line: 3, reason: `"${'9'.repeat(40)}" is not a possible international phone number` },
      { line: 4, reason: 'it has no phone number' },
      { line: 5, reason: 'it has 1 field, and the header has 5' },
      { line: 6, reason: 'consents is "-1", and must be whole numbers separated by ";"' },
      { line: 7, reason: 'consents is "2147483648", and must be whole numbers separated by ";"' },
      { line: 8, reason: 'consents is "1;;2", and must be whole numbers separated by ";"' },
      { line: 9, reason: 'controlGroup is "maybe", and must be true or false' },
      { line: 10, reason: 'status is "gone", and must be active or inactive' },
      { line: 11, reason: 'it has a null character' },
      { line: 12, reason: 'there is text after a closing quote' },
    ])
  })

  const headers: [string, RegExp][] = [
    ['', /^The file is empty; its first line must name the columns\.$/],
    ['\n\n', /^The file is empty/],
    ['+48500100200\n', /^The header has no column "phone"; the first line of the file must name the columns\.$/],
    ['name,city\n', /^The header has no column "phone"/],
    ['phone,,city\n', /^Column 2 of the header has no name\.$/],
    ['phone, \n', /^Column 2 of the header has no name\.$/],
    ['phone,city, City\n', /^The header has two columns named "City"\.$/],
    ['phone,PHONE\n', /^The header has two columns named "PHONE"\.$/],
    [`phone,${Array.from({ length: 100 }, (_, index) => `c${index}`)}\n`, /^The header has 101 columns; at most 100 are allowed\.$/],
    [`phone,${'x'.repeat(201)}\n`, /^The name of column 2 is longer than 200 characters/],
    ['phone,a\0\n', /^The name of column 2 .* has a null character\.$/],
    ['phone,"city\n+48500100200,x\n', /^The header can't be read: a quote is opened and never closed\.$/],
  ]
  for (const [content, sentence] of headers) {
    test(`rejects the header ${JSON.stringify(content).slice(0, 40)}, and creates no group`, async () => {
      await assert.rejects(run(999, content), { name: 'Error', message: sentence })
      assert.ok(!(await listGroups(pool, accountId)).some(({ group }) => group === 999))
    })
  }

  test('accepts 100 columns', async () => {
    const names = Array.from({ length: 99 }, (_, index) => `c${index}`)
    const { number } = await importNew(`phone,${names}\n+48500100200,${names}\n`)
    assert.deepEqual(await members(number), [['+48500100200', [], false, true, Object.fromEntries(names.map((name) => [name, name]))]])
  })

  test('changes nothing when no line is valid', async () => {
    const { number, imported, rejectedLines } = await importNew('phone\nx\ny\n')
    assert.deepEqual([imported, rejectedLines], [0, 2])
    assert.ok(!(await listGroups(pool, accountId)).some(({ group }) => group === number))
  })

  test('replaces members on a second import, keeps when they were added, and leaves the others', async () => {
    const { number } = await importNew('phone,consents,status,city\n+48500100201,1,inactive,X\n+48500100202,1,,X\n+48500100203,1,,X\n')
    await pool.query(`update group_members set generation = 0 where group_number = $1`, [number])
    const again = await run(number, 'phone,consents,city,age\n+48500100201,2,Y,7\n+48500100202,1,X,\n+48500100204,,,\n')
    assert.deepEqual([again.imported, again.unchanged, again.repeated], [3, 1, 0])
    assert.deepEqual(await members(number), [
      ['+48500100201', [2], false, true, { city: 'Y', age: '7' }],
      ['+48500100202', [1], false, true, { city: 'X' }],
      ['+48500100203', [1], false, true, { city: 'X' }],
      ['+48500100204', [], false, true, null],
    ])
    const { rows } = await pool.query(`select phone from group_members where group_number = $1 and generation = 0`, [number])
    assert.equal(rows.length, 3)
  })

  test('imports the last line of a repeated number', async () => {
    const repeats = Array.from({ length: 5_000 }, (_, index) => `${index % 2 ? '+' : ''}48500100200,${index}`)
    const { number, imported, repeated } = await importNew(`phone,n\n${repeats.join('\n')}\n+48500100201,x\n+48500100200,last\n`)
    assert.deepEqual([imported, repeated], [2, 5_000])
    assert.deepEqual(await members(number), [
      ['+48500100200', [], false, true, { n: 'last' }],
      ['+48500100201', [], false, true, { n: 'x' }],
    ])
  })

  test('counts all rejected lines, and lists the first 1,000', async () => {
    const { imported, rejected, rejectedLines } = await importNew(`phone\n${'x\n'.repeat(1_500)}+48500100200\n`)
    assert.deepEqual([imported, rejectedLines, rejected.length, rejected.at(-1)?.line], [1, 1_500, 1_000, 1_001])
  })

  test('is invisible and holds no transaction while a file is read, and complete at its end', async () => {
    lastGroup += 1
    const number = lastGroup
    const numbers = many(0, 50_000)
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
    const progress: ImportProgress[] = []
    async function* slowly() {
      yield Buffer.from(`phone\n${numbers.slice(0, 45_000).join('\n')}\n`)
      await mayEnd
      yield Buffer.from(numbers.slice(45_000).join('\n'))
    }
    const importing = importGroup(pool, { accountId, number, source: slowly(), onProgress: (step) => void progress.push(step) })
    try {
      await until('most of the file is read', () => (progress.at(-1)?.rows ?? 0) > 40_000)
      await until('the database has a chunk, and waits', async () => {
        const { rows } = await ownerOf(pool).query(
          `select from pg_stat_activity where datname = current_database() and query like 'copy arrivals%' and state = 'idle'`,
        )
        return rows.length > 0
      })
      assert.deepEqual(await phones(number), [])
    } finally {
      end()
    }
    assert.equal((await importing).imported, numbers.length)
    assert.deepEqual(await phones(number), numbers)
    assert.deepEqual(progress.at(-1), { phase: 'writing', rows: 50_000, bytes: 'phone\n'.length + 50_000 * 13 - 1 })
  })

  test('changes nothing when its source or connection breaks, and can be repeated', async () => {
    lastGroup += 1
    const number = lastGroup
    const numbers = many(0, 30_000)
    async function* broken() {
      yield Buffer.from(`phone\n${numbers.join('\n')}\n`)
      throw new Error('the disk is gone')
    }
    await assert.rejects(importGroup(pool, { accountId, number, source: broken() }), /the disk is gone/)

    const holder = new pg.Client(url)
    await holder.connect()
    try {
      await holder.query('begin; lock table group_members in share mode')
      const cut = assert.rejects(run(number, `phone\n${numbers.join('\n')}\n`), /terminat/)
      await until('the import waits to write, and its connection is ended', async () => {
        const { rows } = await ownerOf(pool).query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and query like 'merge into%' and wait_event_type = 'Lock'`,
        )
        return rows.length > 0
      })
      await cut
    } finally {
      await holder.end()
    }
    assert.deepEqual(await phones(number), [])
    assert.ok(!(await listGroups(pool, accountId)).some(({ group }) => group === number))

    assert.deepEqual(await run(number, `phone\n${numbers.join('\n')}\n`), {
      group: number,
      imported: 30_000,
      unchanged: 0,
      repeated: 0,
      rejectedLines: 0,
      rejected: [],
    })
    assert.deepEqual(await phones(number), numbers)
  })

  test('applies concurrent imports into one group as a whole, one after the other', async () => {
    lastGroup += 1
    const number = lastGroup
    const files = ['a', 'b', 'c', 'd'].map((letter, index) => many(index * 1_000, 3_000).map((phone) => `${phone},${letter}`))
    const results = await Promise.all(files.map((lines) => run(number, `phone,from\n${lines.join('\n')}\n`)))
    assert.deepEqual(
      results.map(({ imported }) => imported),
      [3_000, 3_000, 3_000, 3_000],
    )
    const rows = await members(number)
    assert.equal(rows.length, 6_000)
    // Each range of numbers that several files share is from one of them.
    for (let from = 0; from < 6_000; from += 1_000) {
      assert.equal(new Set(rows.slice(from, from + 1_000).map(([, , , , attributes]) => attributes.from)).size, 1)
    }
  })

  test('leaves no table and no setting on its connection', async () => {
    await importNew('phone\n+48500100200\n')
    const { rows } = await pool.query(
      `select to_regclass('pg_temp.arrivals') as arrivals, current_setting('statement_timeout') as timeout, current_setting('enable_nestloop') as nestloop`,
    )
    assert.deepEqual(rows, [{ arrivals: null, timeout: '3500ms', nestloop: 'on' }])
  })

  test('keeps the name of a group until another is given, and separates accounts', async () => {
    const other = await createCaller(pool)
    await createGroup(pool, { accountId: other.accountId, number: 5, name: 'Empty' })
    const file = (chunk: string) => Readable.from([Buffer.from(`phone\n${chunk}\n`)])
    const target = { accountId: other.accountId, number: 3 }
    await importGroup(pool, { ...target, name: 'Wąsy', source: file('+48500100200') })
    await importGroup(pool, { ...target, source: file('+48500100201') })
    const groups = await listGroups(pool, other.accountId)
    assert.deepEqual(
      groups.map(({ group, name, members }) => [group, name, members]),
      [
        [3, 'Wąsy', 2],
        [5, 'Empty', 0],
      ],
    )
    assert.ok((groups[0]?.updatedAt as Date) > (groups[0]?.createdAt as Date))
    await importGroup(pool, { ...target, name: 'Brody', source: file('+48500100201') })
    assert.equal((await listGroups(pool, other.accountId))[0]?.name, 'Brody')
  })

  test('rejects an unknown account', async () => {
    const sentence = { message: 'There is no account 99; see "herald account list".' }
    await assert.rejects(importGroup(pool, { accountId: 99, number: 1, source: Readable.from([]) }), sentence)
    await assert.rejects(listGroups(pool, 99), sentence)
    await assert.rejects(createGroup(pool, { accountId: 99, number: 1 }), sentence)
  })
})
