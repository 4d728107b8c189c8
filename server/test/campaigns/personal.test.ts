import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import { retryCampaign } from '../../src/campaigns/retry.ts'
import { CHUNK, fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { completeDone, startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { FAILURES, type Failure } from '../../src/delivery/failures.ts'
import { removeMember } from '../../src/groups/groups.ts'
import { putMembers } from '../../src/groups/put-members.ts'
import { erasePerson } from '../../src/privacy/erase.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { acceptedCampaign, assertCountersEqualRows, fillGroup, makeAll, phone, phones, recipientsOf, statusCountsOf } from './support.ts'

// Campaigns whose content or SMS has variables: each member's attributes are the values.

const { pool, hotPool } = await createTestDatabase({ uncounted: 'members are stored by hand' })

type Attributes = Record<string, string>
const text = (content: string) => ({ type: 'MESSAGE' as const, content })

/** An account with groups: the attributes of their members, in the order of the numbers. */
async function setUp(...groups: (Attributes | null)[][]) {
  const sender = await createSender(pool)
  for (const [index, members] of groups.entries()) {
    const group = { accountId: sender.accountId, number: index + 1 }
    await fillGroup(pool, sender.accountId, group.number, [])
    await putMembers(
      pool,
      group,
      members.flatMap((attributes, n) => (attributes === null ? [] : [{ phone: phone(n), attributes }])),
    )
  }
  const send = async (fields: Parameters<typeof acceptedCampaign>[2]) => {
    const campaignId = await acceptedCampaign(pool, sender, fields)
    await makeAll(hotPool)
    return campaignId
  }
  return { ...sender, send }
}

/** What each message of a campaign says: by RCS, and by SMS if it has one; or why it failed. By recipient, in order. */
async function saidBy(campaignId: string) {
  const { rows } = await pool.query(
    `select coalesce(m.content, c.message) ->> 'content' as rcs, f.plan ->> 'content' as sms, m.failure_reason as reason
     from messages m left join contents c on c.id = m.content_id left join sms_fallbacks f on f.message_id = m.id
     where m.campaign_id = $1 order by m.recipient`,
    [campaignId],
  )
  return rows.map(({ rcs, sms, reason }) => reason ?? (sms === null ? rcs : [rcs, sms]))
}

/** The fields and variables that each failure names, without the sentence of its reason. */
async function reasonsOf(campaignId: string): Promise<string[]> {
  const { rows } = await pool.query<{ reason: Failure; why: string }>(
    `select failure_reason as reason, failure_description as why from messages where campaign_id = $1 and status = 'FAILED' order by recipient`,
    [campaignId],
  )
  return rows.map(({ reason, why }) => {
    assert.ok(why.startsWith(`${FAILURES[reason]} `), why)
    return why.slice(FAILURES[reason].length + 1)
  })
}

describe('each message of a campaign with variables', () => {
  test('has the attributes of its member, then the values of the campaign, then the defaults', async () => {
    const { send } = await setUp([{ name: 'Anna', city: 'Gdynia' }, { city: 'Łódź' }, {}])
    const inline = text('Hello {{name|there}} in {{city}}')
    assert.deepEqual(await saidBy(await send({ message: { inline }, variables: { city: 'Poland' } })), [
      'Hello Anna in Gdynia',
      'Hello there in Łódź',
      'Hello there in Poland',
    ])
  })

  test('has the attributes of the first group in the list that has its member', async () => {
    const { send } = await setUp([{ name: 'A1' }, null, { name: 'A3' }], [{ name: 'B1' }, { name: 'B2' }, {}])
    const message = { inline: text('{{name|-}}') }
    assert.deepEqual(await saidBy(await send({ message, segmentIds: [1, 2] })), ['A1', 'B2', 'A3'])
    assert.deepEqual(await saidBy(await send({ message, segmentIds: [2, 1] })), ['B1', 'B2', '-'])
  })

  test('has the content of a template as it was when the campaign was accepted', async () => {
    const { accountId, send } = await setUp([{ name: 'Anna' }, { name: '{{city}}' }])
    const template = { name: 'T', status: 'APPROVED' as const, basic: false, message: text('Hello {{name}} \\{{name}}') }
    const { id } = await createTemplate(pool, accountId, template)
    assert.deepEqual(await saidBy(await send({ message: { templateId: id } })), ['Hello Anna {{name}}', 'Hello {{city}} {{name}}'])
  })

  test('has an SMS of its own, whose parts are counted with its values', async () => {
    const { send } = await setUp([{ name: 'Anna' }, { name: 'x'.repeat(150) }])
    const sms = { variant: { content: 'Hi {{name}}, thank you', multipart: true } }
    const campaignId = await send({ message: { inline: text('Hello') }, sms })
    assert.deepEqual(await saidBy(campaignId), [
      ['Hello', 'Hi Anna, thank you'],
      ['Hello', `Hi ${'x'.repeat(150)}, thank you`],
    ])
    const { rows } = await pool.query(
      'select segments from sms_fallbacks f join messages m on m.id = f.message_id where m.campaign_id = $1 order by m.recipient',
      [campaignId],
    )
    assert.deepEqual(rows, [{ segments: 1 }, { segments: 2 }])
  })

  test('stores the content of the campaign only once if only the SMS has variables', async () => {
    const { send } = await setUp([{ name: 'Anna' }])
    const campaignId = await send({ message: { inline: text('Hello') }, sms: { variant: { content: 'Hi {{name}}' } } })
    const { rows } = await pool.query('select content, content_id is not null as shared from messages where campaign_id = $1', [campaignId])
    assert.deepEqual(rows, [{ content: null, shared: true }])
  })
})

describe('an unfit member', () => {
  test('fails alone at once, with a reason that names the field and the variable but no value', async () => {
    const { send } = await setUp([{ name: 'Anna', code: '1' }, { name: 'Ola' }, { name: 'n'.repeat(200), code: '2' }, { code: '3' }])
    const inline = { type: 'CARD' as const, data: { title: 'Hello {{name|you}}' }, content: 'Code {{code}}' }
    const campaignId = await send({ message: { inline } })
    assert.deepEqual(await statusCountsOf(pool, campaignId), { ACCEPTED: 2, 'FAILED INVALID_CONTENT': 1, 'FAILED MISSING_VARIABLE': 1 })
    assert.deepEqual(await reasonsOf(campaignId), [
      '/content has the variable code, which has no value and no default.',
      '/data/title must have at most 200 characters, with the value of the variable name.',
    ])
    const { rowCount } = await pool.query('select from queue where campaign_id = $1', [campaignId])
    assert.equal(rowCount, 2)
    await assertCountersEqualRows(pool, campaignId)
  })

  test('gets no SMS, also if only the SMS or only the RCS content is wrong', async () => {
    const { send } = await setUp([{ a: '1' }, { b: '2' }, { a: '1', b: 'x'.repeat(161) }, { a: '1', b: '2' }])
    const campaignId = await send({ message: { inline: text('{{a}}') }, sms: { variant: { content: '{{b}}' } } })
    assert.deepEqual(await saidBy(campaignId), ['MISSING_VARIABLE', 'MISSING_VARIABLE', 'INVALID_CONTENT', ['1', '2']])
    const { rowCount } = await pool.query('select from sms_fallbacks f join messages m on m.id = f.message_id where m.campaign_id = $1', [
      campaignId,
    ])
    assert.equal(rowCount, 1)
  })

  test('has a value that is longer than any in a request may be', async () => {
    const { send } = await setUp([{ a: 'x'.repeat(1_001) }, { a: '💬'.repeat(1_000) }])
    const campaignId = await send({ message: { inline: text('{{a}}') } })
    assert.deepEqual(await saidBy(campaignId), ['INVALID_CONTENT', '💬'.repeat(1_000)])
    assert.deepEqual(await reasonsOf(campaignId), ['The value of the variable a must have at most 1000 characters.'])
  })

  test('is described without the characters of a value that GSM-7 lacks', async () => {
    const { send } = await setUp([{ a: 'Ўладзімір' }])
    const campaignId = await send({ message: { inline: text('Hi') }, sms: { planParams: { mode: 'GSM7' }, variant: { content: '{{a}}' } } })
    assert.deepEqual(await reasonsOf(campaignId), [
      '/smsFallback/smsMessagesPlan/0/content has characters that GSM-7 lacks; use mode AUTO or UNICODE, with the value of the variable a.',
    ])
  })

  test('does not keep a campaign from being completed, even if nobody has fitting values', async () => {
    const { send } = await setUp([{}, {}])
    const campaignId = await send({ message: { inline: text('{{a}}') } })
    await completeDone(hotPool)
    assert.equal((await findCampaign(pool, campaignId)).status, 'COMPLETED')
    assert.deepEqual(await statusCountsOf(pool, campaignId), { 'FAILED MISSING_VARIABLE': 2 })
  })
})

describe('the fan-out of a campaign with variables', () => {
  test('reaches each member once in chunks, with the attributes of members who were removed meanwhile', async () => {
    const count = CHUNK * 2 + 7
    const { accountId, ...sender } = await createSender(pool)
    await fillGroup(pool, accountId, 1, phones(0, count))
    await pool.query(`update group_members set attributes = json_build_object('n', right(phone, 6)) where account_id = $1`, [accountId])
    const campaignId = await acceptedCampaign(pool, { accountId, ...sender }, { message: { inline: text('{{n}}') } })
    await startDue(hotPool)
    assert.equal((await fanOut(hotPool, erased)).created, CHUNK)
    await removeMember(pool, { accountId, number: 1 }, phone(CHUNK + 5))
    await makeAll(hotPool)
    assert.deepEqual(await recipientsOf(pool, campaignId), phones(0, count))
    const { rows } = await pool.query(
      `select count(*) from messages where campaign_id = $1 and content ->> 'content' = right(recipient, 6)`,
      [campaignId],
    )
    assert.deepEqual(rows, [{ count }])
  })

  test('takes smaller chunks for a large content, so that its memory has a bound', async () => {
    const { accountId, ...sender } = await createSender(pool)
    await fillGroup(pool, accountId, 1, phones(0, 100))
    const cards = Array.from({ length: 10 }, () => ({
      title: 'x'.repeat(200),
      content: 'x'.repeat(1_900),
      imageUrl: `https://example.com/${'x'.repeat(1_900)}`,
    }))
    const inline = { type: 'CAROUSEL' as const, data: { cards: [{ ...cards[0], title: '{{a|A}}' }, ...cards.slice(1)] } }
    await acceptedCampaign(pool, { accountId, ...sender }, { message: { inline: inline as never } })
    const chunks = await makeAll(hotPool)
    assert.ok(Math.max(...chunks) < 1_000, `${chunks}`)
  })

  test('ends a chunk after some time and bytes, so that other campaigns do not wait for long values', async () => {
    const { accountId, ...sender } = await createSender(pool)
    await fillGroup(pool, accountId, 1, phones(0, 400))
    const attributes = Object.fromEntries(Array.from('abcdefgh', (name) => [name, 'x'.repeat(200)]))
    await pool.query('update group_members set attributes = $2 where account_id = $1', [accountId, JSON.stringify(attributes)])
    const card = { title: '{{a}}', content: '{{b}}{{c}}{{d}}{{e}}', imageUrl: 'https://example.com/{{f}}{{g}}{{h}}' }
    const inline = { type: 'CAROUSEL' as const, data: { cards: Array.from({ length: 10 }, () => card) } }
    const campaignId = await acceptedCampaign(pool, { accountId, ...sender }, { message: { inline: inline as never } })
    const chunks = await makeAll(hotPool)
    assert.deepEqual(await recipientsOf(pool, campaignId), phones(0, 400))
    assert.deepEqual(await reasonsOf(campaignId), [])
    assert.ok(chunks.length > 1, `${chunks}`)
  })

  test('reserves the bytes that the contents will take without values, and releases what is left', async () => {
    const { accountId, ...sender } = await createSender(pool)
    await fillGroup(pool, accountId, 1, phones(0, 20))
    await pool.query('update groups set members = 20 where account_id = $1', [accountId])
    const content = `{{a|A}}${'x'.repeat(3_000)}`
    const campaignId = await acceptedCampaign(pool, { accountId, ...sender }, { message: { inline: text(content) } })
    const reserved = async () =>
      (await pool.query('select reserved_bytes from campaigns where id = $1', [campaignId])).rows[0].reserved_bytes
    assert.equal(await reserved(), 20 * (2_048 + JSON.stringify(text(content)).length))
    await makeAll(hotPool)
    assert.equal(await reserved(), 0)
  })

  test('leaves out people who were erased', async () => {
    const { accountId, send } = await setUp([{ a: '1' }, { a: '2' }, { a: '3' }])
    await erasePerson(pool, erased, { phone: phone(1), accountId })
    await fillGroup(pool, accountId, 1, [phone(1)])
    const campaignId = await send({ message: { inline: text('{{a}}') } })
    assert.deepEqual(await recipientsOf(pool, campaignId), [phone(0), phone(2)])
  })
})

test('erasing a person removes what a campaign with variables said to them, also by SMS and in short links', async () => {
  const { accountId, send } = await setUp([{ a: 'Wanda' }, { a: 'Zofia' }])
  const sms = { variant: { content: 'Hi {{a}}, see https://example.com/{{a}}' } }
  const campaignId = await send({ message: { inline: text('Hello {{a}}') }, sms })
  await pool.query(
    `insert into short_links (code, account_id, agent_id, message_id, recipient, copy, url)
     select left(md5(id::text), 8), account_id, agent_id, id, recipient, 0, 'https://example.com/Wanda' from messages
     where campaign_id = $1 and recipient = $2`,
    [campaignId, phone(0)],
  )
  await erasePerson(pool, erased, { phone: phone(0), accountId })
  const { rows } = await pool.query(
    `select m.content ->> 'content' as rcs, f.plan ->> 'content' as sms, (select count(*) from short_links s where s.message_id = m.id) as links
     from messages m join sms_fallbacks f on f.message_id = m.id where m.campaign_id = $1 order by m.recipient like 'erased%' desc`,
    [campaignId],
  )
  assert.deepEqual(rows, [
    { rcs: '', sms: '', links: 0 },
    { rcs: 'Hello Zofia', sms: 'Hi Zofia, see https://example.com/Zofia', links: 0 },
  ])
})

describe('a retry of a campaign with variables', () => {
  test('sends the same content again, and renders what had no fitting values with those of today', async () => {
    const { accountId, send } = await setUp([{ a: '1' }, {}, {}, { a: '4' }])
    const campaignId = await send({ message: { inline: text('{{a}}') }, sms: { variant: { content: 'SMS {{a}}' } } })
    assert.deepEqual(await saidBy(campaignId), [['1', 'SMS 1'], 'MISSING_VARIABLE', 'MISSING_VARIABLE', ['4', 'SMS 4']])
    await pool.query(
      `update messages set status = 'FAILED', failed_at = now(), failure_reason = 'REJECTED', failure_description = 'No.' where campaign_id = $1 and recipient = $2`,
      [campaignId, phone(0)],
    )
    await pool.query('delete from queue where campaign_id = $1', [campaignId])
    await pool.query(`update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`, [campaignId])
    await putMembers(pool, { accountId, number: 1 }, [
      { phone: phone(0), attributes: { a: 'changed' } },
      { phone: phone(1), attributes: { a: '2' } },
    ])
    const { campaignId: retried } = await retryCampaign(pool, campaignId)
    await makeAll(hotPool)
    assert.deepEqual(await saidBy(retried), [['1', 'SMS 1'], ['2', 'SMS 2'], 'MISSING_VARIABLE'])
  })
})
