import pg from 'pg'
import { refuseBeyondQuota } from '../accounts/quotas.ts'
import { countUsage } from '../accounts/usage.ts'
import type { MessageContent } from '../content/content.ts'
import { templateReferences } from '../content/references.ts'
import { accountTransaction, type Executor, type Pool } from '../db/pool.ts'
import { ApiError, notFound, type Violation } from '../errors.ts'
import { type ListDefinition, PAGE_MAX_BYTES, type PageQuery, readPage } from '../http/paging.ts'

export const TEMPLATE_STATUSES = ['DRAFT', 'APPROVED'] as const
export type TemplateStatus = (typeof TEMPLATE_STATUSES)[number]

export type TemplateInput = { name: string; description?: string; basic: boolean; status: TemplateStatus; message: MessageContent }
type Template = TemplateInput & { id: number; createdAt: Date; updatedAt: Date }
type TemplateFilters = { status?: TemplateStatus; type?: string; createdFrom?: string; createdTo?: string }

type TemplateRow = Omit<Template, 'description'> & { description: string | null }

const TEMPLATE = `t.id, t.name, t.description, c.basic, t.status, c.message, t.created_at as "createdAt", t.updated_at as "updatedAt"`

export const TEMPLATE_LIST: ListDefinition<'createdAt' | 'name' | 'id'> = {
  fields: {
    createdAt: { column: 't.created_at', type: 'timestamptz' },
    name: { column: 't.name collate "C"', type: 'text' },
    id: { column: 't.id', type: 'bigint' },
  },
  id: 'id',
  defaultSort: '-createdAt',
}

function toTemplate({ id, name, description, ...row }: TemplateRow): Template {
  return { id, name, ...(description !== null && { description }), ...row }
}

/** Finds the page by the templates alone. Contents, which may be large and many, are read only for the templates of the page. */
export async function listTemplates(db: Executor, accountId: number, query: PageQuery & TemplateFilters) {
  const page = readPage(TEMPLATE_LIST, query, 8)
  const { rows } = await db.query<TemplateRow & { found: number }>(
    `with t as materialized (
       select * from templates t
       where t.account_id = $1
         and ($2::text is null or t.status = $2)
         and ($3::text is null or t.type = $3)
         and ($4::date is null or t.created_at >= $4::date::timestamp at time zone 'UTC')
         and ($5::date is null or t.created_at < ($5::date + 1)::timestamp at time zone 'UTC')
         and ${page.condition}
       order by ${page.orderBy} limit $6
     ), sized as (
       select t.id, sum(octet_length(c.message::text)) over (order by ${page.orderBy} rows between unbounded preceding and 1 preceding) as before
       from t join contents c on c.id = t.content_id
     )
     select ${TEMPLATE}, (select count(*) from t) as found
     from t join contents c on c.id = t.content_id join sized on sized.id = t.id
     where coalesce(sized.before, 0) < $7
     order by ${page.orderBy}`,
    [accountId, query.status, query.type, query.createdFrom, query.createdTo, page.fetch, PAGE_MAX_BYTES, ...page.values],
  )
  return page.toBody(
    rows.map(({ found, ...row }) => toTemplate(row)),
    rows[0]?.found,
  )
}

export async function readTemplate(db: Executor, accountId: number, id: number): Promise<Template> {
  const { rows } = await db.query<TemplateRow>({
    name: 'read-template',
    text: `select ${TEMPLATE} from templates t join contents c on c.id = t.content_id where t.account_id = $1 and t.id = $2`,
    values: [accountId, id],
  })
  if (rows[0] === undefined) throw notFound('RCS_TEMPLATE_NOT_FOUND', 'id', 'template')
  return toTemplate(rows[0])
}

const bytesOf = ({ message }: TemplateInput) => Buffer.byteLength(JSON.stringify(message))
const COUNT_CONTENT = (content: string) =>
  countUsage({ account: '$1::int', from: content, contentBytes: 'sum(octet_length(message::text))' })

/** Stores the current version of the template `t`. A tap on a button may need it after the template was deleted. */
const ADD_VERSION = `
    insert into template_versions (account_id, template_id, status, content_id, since)
    select account_id, id, status, content_id, updated_at from t where not exists (
      select from template_versions v where v.account_id = t.account_id and v.template_id = t.id
        and v.id = (select max(id) from template_versions l where l.account_id = t.account_id and l.template_id = t.id)
        and (v.status, v.content_id) = (t.status, t.content_id)
    )`

// Ids are random (migration 0003). With ten other templates in the same millisecond, five draws in a row collide once in 10^13 times.
const ID_DRAWS = 5

/** Creates a template. Draws another id if two concurrent calls drew the same one. */
export async function createTemplate(pool: Pool, accountId: number, input: TemplateInput): Promise<Template> {
  for (let draw = 1; draw < ID_DRAWS; draw += 1) {
    try {
      return await insertWithinQuota(pool, accountId, input)
    } catch (error) {
      if (!isViolation(error, UNIQUE_VIOLATION, ['templates_pkey'])) throw error
    }
  }
  return await insertWithinQuota(pool, accountId, input)
}

/** Concurrent inserts of one account run one after the other, so that each counts the earlier templates towards the quota. */
async function insertWithinQuota(pool: Pool, accountId: number, input: TemplateInput): Promise<Template> {
  return await accountTransaction(pool, accountId, async (tx) => {
    await tx.query(LOCK_ACCOUNT, [accountId])
    const template = await insertTemplate(tx, accountId, input)
    await refuseBeyondQuota(tx, accountId, { templates: 1, storedBytes: bytesOf(input) })
    return template
  })
}

/**
 * Inserts content, template and references in one statement: all or nothing. Foreign keys check that the targets exist. Fails if the drawn
 * id is taken: of two concurrent inserts with the same id, the second waits for the first.
 */
export async function insertTemplate(db: Executor, accountId: number, input: TemplateInput): Promise<Template> {
  const { rows } = await db.query<TemplateRow>({
    name: 'create-template',
    text: `with c as (
             insert into contents (account_id, basic, message) values ($1, $5, $6) returning id, basic, message
           ), t as (
             insert into templates (account_id, name, description, status, type, content_id)
             select $1, $2, $3, $4, c.message ->> 'type', c.id from c
             returning *
           ), referred as (
             insert into template_references (account_id, template_id, target_id) select $1, t.id, target from t, unnest($7::bigint[]) target
           ), versioned as (${ADD_VERSION}
           ), used as (${COUNT_CONTENT('c')}
           )
           select ${TEMPLATE} from t, c`,
    values: valuesOf(accountId, input),
  })
  return toTemplate(rows[0] as TemplateRow)
}

/**
 * Replaces a template. The row is locked first: the second of two concurrent calls sees everything that the first has written, so the
 * references always match the stored content. The lock does not block references to this template. Content that is exactly the same keeps
 * its row, and messages accepted with the old content keep that. The time of the change is read after the wait for the lock, so that it
 * never goes backwards.
 */
export async function replaceTemplate(pool: Pool, accountId: number, id: number, input: TemplateInput): Promise<Template> {
  return await accountTransaction(pool, accountId, async (tx) => {
    const locked = await tx.query({
      name: 'lock-template',
      text: 'select from templates where account_id = $1 and id = $2 for no key update',
      values: [accountId, id],
    })
    if (locked.rowCount === 0) throw notFound('RCS_TEMPLATE_NOT_FOUND', 'id', 'template')
    const { rows } = await tx.query<TemplateRow & { isNewContent: boolean }>({
      name: 'replace-template',
      text: `with old as (
               select c.* from templates t join contents c on c.id = t.content_id where t.id = $8
             ), new as (
               insert into contents (account_id, basic, message)
               select $1, $5, $6::text::json from old where (old.basic, old.message::text) is distinct from ($5, $6::text)
               returning *
             ), c as (
               select * from new union all select * from old where not exists (select from new)
             ), t as (
               update templates t
               set name = $2, description = $3, status = $4, type = c.message ->> 'type', content_id = c.id,
                   updated_at = greatest(t.updated_at, clock_timestamp())
               from c where t.id = $8
               returning t.*
             ), released as (
               delete from template_references where template_id = $8 and target_id <> all ($7)
             ), referred as (
               insert into template_references (account_id, template_id, target_id) select $1, $8, target from unnest($7::bigint[]) target
               on conflict do nothing
             ), versioned as (${ADD_VERSION}
             ), used as (${COUNT_CONTENT('new')}
             )
             select ${TEMPLATE}, exists (select from new) as "isNewContent" from t, c`,
      values: [...valuesOf(accountId, input), id],
    })
    const { isNewContent, ...row } = rows[0] as (typeof rows)[number]
    if (isNewContent) await refuseBeyondQuota(tx, accountId, { storedBytes: bytesOf(input) })
    return toTemplate(row)
  })
}

function valuesOf(accountId: number, { name, description, status, basic, message }: TemplateInput): unknown[] {
  const targets = new Set(templateReferences(message, '').map(({ templateId }) => templateId))
  return [accountId, name, description ?? null, status, basic, JSON.stringify(message), [...targets]]
}

const LOCK_ACCOUNT = 'select from accounts where id = $1 for no key update'

/**
 * Deletes a template that nothing uses. Deletes in one account run one after the other: two templates whose buttons send each other would
 * otherwise deadlock on their references. The lock blocks no other writes to the account.
 */
export async function deleteTemplate(pool: Pool, accountId: number, id: number): Promise<void> {
  const deleted = await accountTransaction(pool, accountId, async (tx) => {
    await tx.query(LOCK_ACCOUNT, [accountId])
    return await tx.query('delete from templates where account_id = $1 and id = $2', [accountId, id])
  }).catch(async (error) => {
    if (!isViolation(error, FOREIGN_KEY_VIOLATION, USES)) throw error
    const details = await usesOf(pool, accountId, id)
    // The last use may have been removed meanwhile: try again.
    if (details.length === 0) return undefined
    throw new ApiError('RCS_TEMPLATE_IN_USE', { details })
  })
  if (deleted === undefined) return await deleteTemplate(pool, accountId, id)
  if (deleted.rowCount === 0) throw notFound('RCS_TEMPLATE_NOT_FOUND', 'id', 'template')
}

const USES = ['template_references_target', 'campaign_references_target', 'auto_replies_template']
const MAX_USES_LISTED = 20

/** Names an automatic reply by its agent and keyword: its id would reveal how many automatic replies other accounts have. */
async function usesOf(db: Executor, accountId: number, id: number): Promise<Violation[]> {
  const { rows } = await db.query<{ user: string }>(
    `select 'a button of template ' || template_id as "user" from template_references
     where account_id = $1 and target_id = $2 and template_id <> $2
     union all
     select 'a button of campaign ' || campaign_id from campaign_references where account_id = $1 and target_id = $2
     union all
     select 'the automatic reply of agent ' || agent_id || ' to "' || keyword || '"' from auto_replies where account_id = $1 and template_id = $2
     order by 1 limit $3`,
    [accountId, id, MAX_USES_LISTED],
  )
  return rows.map(({ user }) => ({ path: '', reason: `is used by ${user}` }))
}

/** Finds buttons that send a template which the account does not have. */
export async function missingTemplates(db: Executor, accountId: number, message: unknown, path: string): Promise<Violation[]> {
  const references = templateReferences(message, path)
  if (references.length === 0) return []
  const { rows } = await db.query<{ id: number }>('select id from templates where account_id = $1 and id = any ($2::bigint[])', [
    accountId,
    references.map(({ templateId }) => templateId),
  ])
  const found = new Set(rows.map(({ id }) => id))
  return references.flatMap((reference) =>
    found.has(reference.templateId) ? [] : [{ path: reference.path, reason: 'names no template of this account' }],
  )
}

/** Turns a foreign key violation into an error that names the buttons whose template does not exist. */
export async function withMissingTargetsNamed<T>(
  pool: Pool,
  accountId: number,
  { message }: { message: MessageContent },
  write: () => Promise<T>,
): Promise<T> {
  return await write().catch(async (error) => {
    if (!isViolation(error, FOREIGN_KEY_VIOLATION, ['template_references_target'])) throw error
    throw new ApiError('RCS_TEMPLATE_NOT_FOUND', { details: await missingTemplates(pool, accountId, message, '/message') })
  })
}

const FOREIGN_KEY_VIOLATION = '23503'
const UNIQUE_VIOLATION = '23505'

function isViolation(error: unknown, code: string, constraints: string[]): boolean {
  return error instanceof pg.DatabaseError && error.code === code && constraints.includes(error.constraint ?? '')
}
