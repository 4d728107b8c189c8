import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { migrate } from '../../src/db/migrate.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { accountTransaction, createOwnerPool, createPool, type Pool, transaction } from '../../src/db/pool.ts'
import { OWNER_FUNCTIONS, TABLE_PRIVILEGES } from '../../src/db/privileges.ts'
import { createTestDatabase, makePastMonths, ownerOf } from '../support/database.ts'
import { as, createLogin } from '../support/login.ts'
import { createCaller } from '../support/service.ts'

const { pool, url } = await createTestDatabase()
const REFUSED = { code: '42501' }

describe('the service role', () => {
  for (const statement of [
    `update audit_log set actor_name = 'nobody'`,
    'update audit_log set at = now() where false',
    'delete from audit_log',
    'truncate audit_log',
    'select from audit_log for update',
    'alter table audit_log disable row level security',
    'alter table audit_log add column more text',
    'alter table audit_log rename to other',
    'create trigger changing before insert on audit_log for each row execute function suppress_redundant_updates_trigger()',
    'create rule lost as on insert to audit_log do instead nothing',
    'drop table audit_log',
    `insert into audit_log (at, actor_kind, actor_name, action) values ('2020-01-01', 'person', 'nobody', 'test')`,
    `insert into audit_log (id, actor_kind, actor_name, action) overriding system value values (99, 'person', 'nobody', 'test')`,
    'lock table audit_log in access exclusive mode',
    `update schema_migrations set checksum = ''`,
    'create table own (id int)',
    'create function own() returns int language sql return 1',
    `alter role current_user bypassrls`,
  ]) {
    test(`is refused: ${statement}`, async () => {
      await pool.query(`insert into audit_log (actor_kind, actor_name, action) values ('command', 'root', 'test')`)
      await assert.rejects(
        transaction(pool, (tx) => tx.query(statement)),
        REFUSED,
      )
    })
  }

  test('owns nothing, may not log in, and has no attribute of an administrator', async () => {
    const { rows } = await pool.query(
      `select current_user as user, rolsuper or rolcreaterole or rolcreatedb or rolcanlogin or rolreplication or rolbypassrls as "isMore",
         (select count(*) from pg_shdepend d where d.refobjid = r.oid and d.deptype = 'o'
            and d.dbid in (0, (select oid from pg_database where datname = current_database()))) as owned,
         (select count(*) from pg_auth_members m where m.member = r.oid) as memberships
       from pg_roles r where rolname = current_user`,
    )
    assert.deepEqual(rows, [{ user: 'herald_service', isMore: false, owned: 0, memberships: 0 }])
  })

  test('has the declared privileges on every table and partition, and no others', async () => {
    await makePastMonths(pool, 1)
    const { rows } = await pool.query<{ name: string; root: string; privileges: string }>(
      `select c.relname as name, coalesce(pg_partition_root(c.oid)::regclass::text, c.relname) as root,
         (select string_agg(lower(privilege_type), ', ' order by array_position('{SELECT,INSERT,UPDATE,DELETE}', privilege_type))
          from aclexplode(c.relacl) where grantee in (0, 'herald_service'::regrole)) as privileges
       from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') order by 1`,
    )
    assert.deepEqual(
      rows.map(({ name, privileges }) => [name, privileges]),
      // Privileges on single columns are not those of the table.
      rows.map(({ name, root }) => [name, TABLE_PRIVILEGES[root]?.replace(/, \w+ \(.*\)/, '')]),
      'declare the privileges of a new table in db/privileges.ts',
    )
    const roots = new Set(rows.map(({ root }) => root))
    assert.deepEqual(
      [...Object.keys(TABLE_PRIVILEGES)].filter((name) => !roots.has(name)),
      [],
    )
  })

  test('may call the functions that run as the owner, nobody else may, and their search path is fixed', async () => {
    const { rows } = await pool.query(
      `select oid::regprocedure::text as name, proconfig as settings, has_function_privilege('herald_service', oid, 'execute') as mine,
         has_function_privilege('public', oid, 'execute') as everybodys
       from pg_proc where prosecdef and pronamespace = 'public'::regnamespace order by 1`,
    )
    const expected = OWNER_FUNCTIONS.toSorted().map((name) => ({
      name,
      settings: ['search_path=public, pg_temp'],
      mine: true,
      everybodys: false,
    }))
    assert.deepEqual(rows, expected)
  })

  test('drops no month that ended less than 30 days ago, and analyzes only tables of the schema', async () => {
    const { rows } = await pool.query<{ month: string }>(
      `select to_char(now() - n * interval '1 month', 'YYYY_MM') as month from generate_series(-3, 1) as n`,
    )
    for (const month of [...rows.map((row) => row.month), '', '2020_1', `2020_01'; drop table accounts; --`, '2020_01, accounts'])
      await assert.rejects(pool.query('select drop_month($1)', [month]), { code: '22023' }, month)
    assert.deepEqual((await pool.query(`select drop_month('2020_01') as drop`)).rows, [{ drop: 'gone' }])
    for (const name of ['pg_class', 'accounts; drop table accounts', 'public.accounts', ''])
      await assert.rejects(pool.query('select analyze_table($1)', [name]), name)
    await pool.query(`select analyze_table('accounts')`)
  })
})

/** Tables of accounts without row-level security, and why. */
const UNPROTECTED = {
  'every message writes to it several times, or reads it by an expression that row-level security keeps from using an index': [
    'messages',
    'message_events',
    'recipient_actions',
    'sms_fallbacks',
    'queue',
    'sms_queue',
    'account_usage_deltas',
    'report_deltas',
  ],
  'a row with account 0 is of all accounts': ['erased_people'],
  'it says in which accounts a person has a role': ['people_roles'],
}

describe('row-level security', async () => {
  const [mine, other] = [await createCaller(pool), await createCaller(pool)]
  for (const { accountId } of [mine, other]) {
    await pool.query(`insert into groups (account_id, number, name) values ($1, 1, 'Group')`, [accountId])
    await pool.query(`insert into audit_log (account_id, actor_kind, actor_name, action) values ($1, 'command', 'root', 'test')`, [
      accountId,
    ])
  }

  test('is on for every table of accounts but the listed ones', async () => {
    const { rows } = await pool.query<{ name: string }>(
      `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and not c.relrowsecurity order by 1`,
    )
    assert.deepEqual(
      rows.map(({ name }) => name),
      Object.values(UNPROTECTED).flat().sort(),
    )
  })

  test('hides rows of other accounts from every statement of a transaction for one account', async () => {
    await accountTransaction(pool, mine.accountId, async (tx) => {
      for (const table of ['groups', 'integration_keys', 'audit_log']) {
        const { rows } = await tx.query<{ accountId: number }>(`select distinct account_id as "accountId" from ${table}`)
        assert.deepEqual(rows, [{ accountId: mine.accountId }], table)
      }
      assert.equal((await tx.query(`update groups set name = 'Mine'`)).rowCount, 1)
      assert.equal((await tx.query('delete from groups where account_id = $1', [other.accountId])).rowCount, 0)
      await assert.rejects(tx.query('insert into groups (account_id, number) values ($1, 2)', [other.accountId]), REFUSED)
    }).catch((error) => assert.match(error.message, /was rolled back/))
    const { rows } = await pool.query<{ name: string }>('select distinct name from groups order by 1')
    assert.deepEqual(rows, [{ name: 'Group' }], 'the transaction was rolled back after the refused insert')
  })

  test('does not outlive the transaction, and hides nothing from others', async () => {
    const one = createPool({ connectionString: url }, () => {})
    one.options.max = 1
    after(() => one.end())
    const accounts = async (db: Pool) => (await db.query('select distinct account_id from groups')).rowCount
    await accountTransaction(one, mine.accountId, async (tx) => tx.query('select 1'))
    assert.equal(await accounts(one), 2)
    await assert.rejects(accountTransaction(one, mine.accountId, (tx) => tx.query('select 1/0')))
    assert.equal(await accounts(one), 2)
    assert.equal(await transaction(one, async (tx) => (await tx.query('select from groups')).rowCount), 2)
  })
})

describe('a migration by an owner who is no administrator', () => {
  test('names the statements that an administrator has to run, and works once they have run', async () => {
    const empty = await createTestDatabase({ empty: true })
    const plain = await createLogin()
    const name = new URL(empty.url).pathname.slice(1)
    await ownerOf(empty.pool).query(`alter database ${name} owner to ${plain}; revoke temporary on database ${name} from public`)
    const plainPool = createOwnerPool({ connectionString: as(plain, empty.url) }, () => {})
    after(() => plainPool.end())
    const statements = [`grant herald_service to ${plain};`]
    await assert.rejects(migrate(plainPool), (error: { lines: string[] }) => {
      assert.match(error.lines[0] as string, /may not set up the role herald_service.*administrator/)
      assert.deepEqual(error.lines.slice(1, 2), statements)
      return true
    })
    await ownerOf(empty.pool).query(statements.join(' '))
    assert.ok((await migrate(plainPool)).length > 0)
    const { rows } = await empty.pool.query(
      `select has_database_privilege(current_database(), 'temporary') as has, (select count(*)::int from accounts) as accounts`,
    )
    assert.deepEqual(rows, [{ has: true, accounts: 0 }])
  })

  test('works in a schema that is named after the owner', async () => {
    const empty = await createTestDatabase({ empty: true })
    const named = await createLogin('in role herald_service')
    await ownerOf(empty.pool).query(`create schema authorization ${named}`)
    const [namedOwner, service] = [createOwnerPool, createPool].map((create) =>
      create({ connectionString: as(named, empty.url) }, () => {}),
    ) as [Pool, Pool]
    after(() => Promise.all([namedOwner.end(), service.end()]))
    await migrate(namedOwner)
    await ensurePartitions(service)
    const { rows } = await service.query(
      'select schemaname as schema, count(*)::int > 50 as all from pg_tables where tableowner = $1 group by 1',
      [named],
    )
    assert.deepEqual(rows, [{ schema: named, all: true }])
    await service.query('select from messages; select from accounts')
  })

  test('restores the privileges of a database that comes from a server without the role', async () => {
    const restored = await createTestDatabase()
    await ownerOf(restored.pool).query(`do $$ declare name text; begin
      for name in select oid::regclass from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') loop
        execute format('revoke all on %s from herald_service', name);
      end loop; end $$; revoke execute on function drop_month(text) from herald_service`)
    await assert.rejects(restored.pool.query('select from accounts'), REFUSED)
    assert.deepEqual(await migrate(ownerOf(restored.pool)), [])
    assert.equal((await restored.pool.query(`select drop_month('2020_01')`)).rowCount, 1)
    await restored.pool.query('select from accounts; select from messages')
  })
})
