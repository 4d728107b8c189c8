import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { setModules } from '../../src/accounts/accounts.ts'
import { renderForMember } from '../../src/campaigns/member-content.ts'
import type { MessageContent } from '../../src/content/content.ts'
import { putMembers } from '../../src/groups/put-members.ts'
import { replaceTemplate } from '../../src/templates/templates.ts'
import { newKey } from '../support/messages.ts'
import { assertError } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'
import { newCaller, pool } from './messages-service.ts'

const SMS = { planParams: { sender: 'MyShop', smsShipmentType: 1 }, smsMessagesPlan: [{ content: '{{name|You}}: {{code}}' }] }
const text = (content: string) => ({ type: 'MESSAGE', content })
const inline = (content: string) => ({ message: { inline: text(content) } })

async function contentOf(messageId: string) {
  const { rows } = await pool.query(
    `select coalesce(m.content, c.message) as content, m.content_id as "contentId", f.plan ->> 'content' as sms from messages m
     left join contents c on c.id = m.content_id left join sms_fallbacks f on f.message_id = m.id where m.id = $1`,
    [messageId],
  )
  return rows[0]
}

describe('variables of a message', () => {
  test('have their values in what is stored and sent, by RCS and by SMS', async () => {
    const { accepted } = await newCaller()
    const message = {
      inline: {
        ...text('Hello {{name}}, \\{{name}}'),
        buttons: [{ id: 'a', type: 'url', text: 'Order {{code}}', url: 'https://example.com/{{code}}?n={{name}}' }],
      },
    }
    const sent = await contentOf(await accepted({ message, variables: { name: 'Ań/a', code: '7' }, smsFallback: SMS }))
    assert.deepEqual(sent.content, {
      ...text('Hello Ań/a, {{name}}'),
      buttons: [{ id: 'a', type: 'url', text: 'Order 7', url: 'https://example.com/7?n=A%C5%84%2Fa' }],
    })
    assert.equal(sent.sms, 'Ań/a: 7')
  })

  test('have their values in test messages, too', async () => {
    const { agentId, sendTest } = await newCaller()
    const { status, body } = await sendTest({ agentId, recipients: ['+48500100200'], ...inline('Hi {{a}}'), variables: { a: 'Jo' } })
    assert.equal(status, 202)
    assert.deepEqual((await contentOf(body.items[0].messageId)).content, text('Hi Jo'))
  })

  test('must have a value or a default', async () => {
    const { send, request } = await newCaller()
    const body = request({ ...inline('{{a}} {{b|c}} {{d}}'), variables: { d: '' }, smsFallback: SMS })
    assertError(await send(newKey(), body), 400, 'RCS_MISSING_VARIABLE', [
      ['/message/inline/content', 'has the variable a, which has no value and no default'],
      ['/smsFallback/smsMessagesPlan/0/content', 'has the variable code, which has no value and no default'],
    ])
  })

  test('are checked with their values, and the error names the field and the variables', async () => {
    const { send, request } = await newCaller()
    const refused = async (fields: object, code: string, path: string, reason: string) =>
      assertError(await send(newKey(), request({ ...fields })), 400, code, [[path, reason]])
    const long = { a: 'x'.repeat(1000) }
    const content = '/message/inline/content'
    await refused(
      { ...inline('{{a}}{{a}}{{a}}{{a}}'), variables: long },
      'RCS_INVALID_MESSAGE',
      content,
      'must have at most 3072 characters, with the value of the variable a',
    )
    await refused(
      { ...inline('{{a}} {{b}}'), basic: true, variables: { a: 'ą'.repeat(79), b: 'bc' } },
      'RCS_INVALID_MESSAGE',
      content,
      'has 161 bytes in UTF-8; Basic mode allows 160, with the values of the variables a, b',
    )
    await refused(
      { ...inline('{{a}}'), variables: { a: '' } },
      'RCS_INVALID_MESSAGE',
      content,
      'must not be empty, with the value of the variable a',
    )
    const sms = (variables: object) => ({
      smsFallback: { ...SMS, smsMessagesPlan: [{ content: '{{a}}{{b}}' }] },
      variables,
    })
    await refused(
      sms({ a: 'x'.repeat(160), b: 'y' }),
      'RCS_INVALID_SMS_FALLBACK',
      '/smsFallback/smsMessagesPlan/0/content',
      'takes 2 SMS in GSM-7; set multipart to allow up to 10, with the values of the variables a, b',
    )
    const contact = { type: 'CONTACT', content: '{{a}}', data: { name: 'x'.repeat(200), phoneNumbers: ['+48500100200'] } }
    await refused(
      { message: { inline: { ...contact, content: '{{a}}{{a}}{{a}}' } }, variables: { a: 'x'.repeat(1000) } },
      'RCS_INVALID_MESSAGE',
      '/message/inline',
      'is sent as one text of 3215 characters; content and data together must have at most 3072, with the value of the variable a',
    )
  })

  test('never change the scheme or the host of an address', async () => {
    const { send, request } = await newCaller()
    const path = '/message/inline/data/fileUrl'
    const reason = 'must have its scheme and host before the first variable, and /, ? or # after the host'
    for (const fileUrl of ['https://{{host}}/a.pdf', 'https://{{host|x/}}', 'https://good.com{{host|/}}', 'https://{{host|a?b}}/p'])
      assertError(
        await send(newKey(), request({ message: { inline: { type: 'FILE', data: { fileUrl } } }, variables: { host: 'example.com' } })),
        400,
        'RCS_INVALID_MESSAGE',
        [[path, reason]],
      )
  })

  test('are at most 50, with valid names and at most 1,000 characters each', async () => {
    const { send, request } = await newCaller()
    const refused = async (variables: unknown, path: string, reason: string) =>
      assertError(await send(newKey(), request({ ...inline('{{a}}'), variables })), 400, 'RCS_INVALID_REQUEST', [[path, reason]])
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [index === 0 ? 'a' : `n${index}`, 'x']))
    const name = 'must begin with a letter (A to Z, a to z), and have up to 63 more letters, digits or `_`'
    await refused(many(51), '/variables', 'must have at most 50 fields')
    await refused({ a: '😀'.repeat(1001) }, '/variables/a', 'must have at most 1000 characters')
    await refused({ a: 5 }, '/variables/a', 'must be a string')
    await refused([], '/variables', 'must be an object')
    await refused({ a: 'x', '1/a': 'x' }, '/variables/1~1a', name)
    await refused({ a: 'x', [`a${'b'.repeat(64)}`]: 'x' }, `/variables/a${'b'.repeat(64)}`, name)
    await refused({ a: 'x\0' }, '/variables/a', 'must not contain the character NUL')
    const { status } = await send(newKey(), request({ ...inline('{{a}}'), variables: { ...many(50), a: '😀'.repeat(1000) } }))
    assert.equal(status, 202)
  })

  test('belong to the request: the same key with other values is a conflict', async () => {
    const { send, request } = await newCaller()
    const key = newKey()
    const body = request({ ...inline('{{a}}'), variables: { a: '1', unused: 'x' } })
    const first = await send(key, body)
    const again = await send(key, body)
    assert.deepEqual([again.status, again.body, again.headers.get('idempotent-replayed')], [202, first.body, 'true'])
    const literal = { ...body, message: { inline: text('1') } }
    for (const other of [{ ...body, variables: { a: '1' } }, literal])
      assertError(await send(key, other), 409, 'RCS_IDEMPOTENCY_CONFLICT', [
        ['', 'The Idempotency-Key was used before, with another body.'],
      ])
  })

  test('are part of a request that is repeated after its account lost the module for SMS', async () => {
    const { accountId, send, request } = await newCaller()
    const key = newKey()
    const body = request({ ...inline('{{a}}'), variables: { a: '1', code: '2' }, smsFallback: SMS })
    const first = await send(key, body)
    await setModules(pool, accountId, ['rcs'])
    assert.deepEqual((await send(key, body)).body, first.body)
  })

  test('are at most 200 in a message, so that none takes long', async () => {
    const { send, request, template } = await newCaller()
    const reason = 'must have at most 200 occurrences of {{name}} and \\{{'
    assert.equal(
      (await send(newKey(), request({ ...inline('{{a}}'.repeat(199).concat('{{b}}')), variables: { a: '', b: 'x' } }))).status,
      202,
    )
    const from = process.cpuUsage()
    const buttons = Array.from({ length: 400 }, () => ({ text: '{{a}}'.repeat(100) }))
    for (const message of [
      text('{{a}}'.repeat(51_000)),
      { ...TEXT, buttons },
      text(Array.from({ length: 20_000 }, (_, n) => `{{a${n}|}}`).join('')),
    ]) {
      const { status, body } = await send(newKey(), request({ message: { inline: message }, variables: { a: '\u{1f600}'.repeat(1_000) } }))
      assert.deepEqual([status, body.details[0]], [400, { path: '', reason }])
      assert.ok(JSON.stringify(body).length < 10_000)
      assert.equal(await template(message), undefined)
    }
    const { user, system } = process.cpuUsage(from)
    // For six requests with 250 kB each, on any machine. Without the limit, one alone took 200 ms.
    assert.ok(user + system < 1_000_000, `${user + system} µs`)
  })
})

describe('variables of a template', () => {
  test('have the values of the request, and the template stays as it is', async () => {
    const { template, accepted, ask } = await newCaller()
    const message = text('Hello {{name|there}}, {{code}}')
    const templateId = await template(message)
    const [one, two] = [
      await accepted({ message: { templateId }, variables: { name: 'Anna', code: '1' } }),
      await accepted({ message: { templateId }, variables: { code: '2' } }),
    ]
    assert.deepEqual(await contentOf(one), { content: text('Hello Anna, 1'), contentId: null, sms: null })
    assert.deepEqual((await contentOf(two)).content, text('Hello there, 2'))
    assert.deepEqual((await ask('GET', `/templates/${templateId}`)).body.message, message)
  })

  test('leave a message of a template without them without a copy of the content', async () => {
    const { template, accepted } = await newCaller()
    const messageId = await accepted({ message: { templateId: await template() }, variables: { name: 'Anna' } })
    assert.notEqual((await contentOf(messageId)).contentId, null)
  })

  test('replay a repeated request with the same values', async () => {
    const { template, send, request } = await newCaller()
    const key = newKey()
    const body = request({ message: { templateId: await template(text('{{a}}')) }, variables: { a: '1' } })
    const first = await send(key, body)
    const again = await send(key, body)
    assert.deepEqual([again.body, again.headers.get('idempotent-replayed')], [first.body, 'true'])
  })

  test('reject values that make the content invalid', async () => {
    const { template, send, request } = await newCaller()
    const refused = async (stored: object, variables: object, code: string, reason: string, basic = false) => {
      const body = request({ message: { templateId: await template(stored, { basic }) }, variables, basic })
      assertError(await send(newKey(), body), 400, code, [['/message/templateId', reason]])
    }
    const missing = 'names a template whose /content has the variable a, which has no value and no default'
    await refused(text('{{a}}'), {}, 'RCS_MISSING_VARIABLE', missing)
    const tooLong = 'names a template whose /content must have at most 3072 characters, with the value of the variable a'
    await refused(text('{{a}}'.repeat(4)), { a: 'x'.repeat(1_000) }, 'RCS_INVALID_MESSAGE', tooLong)
    const bytes = 'names a template whose /content has 161 bytes in UTF-8; Basic mode allows 160, with the value of the variable a'
    await refused(text('{{a}}'), { a: 'x'.repeat(161) }, 'RCS_INVALID_MESSAGE', bytes, true)
    const many = {
      type: 'CAROUSEL',
      data: {
        cards: Array.from({ length: 10 }, (_, n) => ({ title: `{{a${n}}}{{b${n}}}`, content: `{{c${n}}}{{d${n}}}{{e${n}}}{{f${n}}}` })),
      },
    }
    const { body } = await send(newKey(), request({ message: { templateId: await template(many) } }))
    assert.deepEqual([body.code, body.details.length], ['RCS_MISSING_VARIABLE', 50])
  })

  test('are taken from the content that the template has when the message is accepted', async () => {
    const { accountId, template, accepted } = await newCaller()
    const templateId = await template(text('{{a}} 0'))
    const contents = ['{{a}} 1', 'none 2', '{{a}} {{b|c}} 3', '{{ a }} 4']
    const input = (content: string) => ({ name: 'X', basic: false, status: 'APPROVED' as const, message: text(content) as never })
    const replacing = (async () => {
      for (const content of [...contents, ...contents, ...contents]) await replaceTemplate(pool, accountId, templateId, input(content))
    })()
    const ids = await Promise.all(Array.from({ length: 50 }, () => accepted({ message: { templateId }, variables: { a: 'A' } })))
    await replacing
    // The last content has no variable, so it is not copied into messages.
    await replaceTemplate(pool, accountId, templateId, input('none'))
    for (const _ of [1, 2]) assert.notEqual((await contentOf(await accepted({ message: { templateId } }))).contentId, null)
    const valid = ['A 0', 'A 1', 'none 2', 'A c 3', '{{ a }} 4']
    for (const id of ids) assert.ok(valid.includes((await contentOf(id)).content.content))
  })

  test('may stand wherever their values can be valid', async () => {
    const { template } = await newCaller()
    const contact = {
      name: '{{n}}',
      phoneNumbers: ['{{p}}'],
      email: '{{user}}@{{host}}',
      organization: '{{o}}',
      url: 'https://example.com/{{u}}',
    }
    assert.ok(await template({ type: 'CONTACT', data: contact }))
    assert.ok(await template({ type: 'CARD', data: { title: `{{${'t'.repeat(64)}}}`, imageUrl: 'https://example.com/{{i}}.jpg' } }))
    const title = `{{a|${'x'.repeat(190)}}}{{${'b'.repeat(64)}}}`
    assert.ok(await template({ type: 'CARD', data: { title } }))
  })

  test('are checked with their defaults when the template is stored', async () => {
    const { ask } = await newCaller()
    const body = { name: 'X', message: { type: 'CARD', data: { title: `{{a|${'x'.repeat(201)}}}` } } }
    assertError(await ask('POST', '/templates', body), 400, 'RCS_INVALID_MESSAGE', [
      ['/message/data/title', 'must have at most 200 characters, with the value of the variable a'],
    ])
  })
})

describe('variables of a campaign', () => {
  async function setUp() {
    const { agentId, ask, template } = await newCaller()
    await ask('PUT', '/segments/1', { name: 'Customers' })
    const create = async (fields: object) =>
      await ask('POST', '/campaigns', { agentId, name: 'Sale', segmentIds: [1], ...fields }, { 'Idempotency-Key': newKey() })
    const stored = async (fields: object) => {
      const { status, body } = await create(fields)
      assert.equal(status, 202, JSON.stringify(body))
      const { rows } = await pool.query(
        `select c.message as content, p.fallback #>> '{plan,content}' as sms, p.variables
         from campaigns p join contents c on c.id = p.content_id where p.id = $1`,
        [body.campaignId],
      )
      return rows[0]
    }
    return { create, stored, template }
  }

  test('are stored with the content and the SMS as they were written, since members have values of their own', async () => {
    const { stored, template } = await setUp()
    const content = text('Hello {{name|there}}, {{code}}')
    for (const message of [{ inline: content }, { templateId: await template(content) }]) {
      const expected = { content, sms: SMS.smsMessagesPlan[0]?.content, variables: { code: '7' } }
      assert.deepEqual(await stored({ message, variables: { code: '7' }, smsFallback: SMS }), expected)
      assert.deepEqual(await stored({ message }), { content, sms: null, variables: {} })
    }
  })

  test('are stored only if the content or the SMS has variables', async () => {
    const { stored, template } = await setUp()
    const content = text('Hello')
    for (const message of [{ inline: content }, { templateId: await template(content) }]) {
      assert.deepEqual(await stored({ message, variables: { code: '7' } }), { content, sms: null, variables: null })
      const { variables } = await stored({ message, variables: { code: '7' }, smsFallback: SMS })
      assert.deepEqual(variables, { code: '7' })
    }
  })

  test('are refused if they break a rule, at their fields', async () => {
    const { create, template } = await setUp()
    const content = { type: 'CARD', data: { title: '{{name}}' } }
    const variables = { name: 'x'.repeat(201) }
    const reason = 'must have at most 200 characters, with the value of the variable name'
    assertError(await create({ message: { inline: content }, variables }), 400, 'RCS_INVALID_MESSAGE', [
      ['/message/inline/data/title', reason],
    ])
    const named = `names a template whose /data/title ${reason}`
    const templateId = await template(content)
    assertError(await create({ message: { templateId }, variables }), 400, 'RCS_INVALID_MESSAGE', [['/message/templateId', named]])
    const sms = { planParams: { sender: 'MyShop' }, smsMessagesPlan: [{ content: 'Hi {{name}}' }] }
    assertError(await create({ message: { inline: text('Hello') }, variables, smsFallback: sms }), 400, 'RCS_INVALID_SMS_FALLBACK', [
      [
        '/smsFallback/smsMessagesPlan/0/content',
        'takes 2 SMS in GSM-7; set multipart to allow up to 10, with the value of the variable name',
      ],
    ])
  })
})

describe('POST /templates/check with variables', () => {
  test('lists the fields with variables, and the space for their values', async () => {
    const { ask } = await newCaller()
    const check = async (body: object) => (await ask('POST', '/templates/check', body)).body
    const card = {
      type: 'CARD',
      content: 'Hello {{name}} and {{other|you}}',
      data: { title: 'x'.repeat(190).concat('{{name}}') },
      buttons: [{ id: 'a', type: 'url', text: '{{a}}{{b}}', url: 'https://example.com/{{a}}' }],
    }
    assert.deepEqual((await check({ message: card })).variables, [
      { path: '/message/content', names: ['name', 'other'], required: ['name'], charactersLeft: 2000 - 'Hello  and '.length },
      { path: '/message/data/title', names: ['name'], required: ['name'], charactersLeft: 10 },
      { path: '/message/buttons/0/text', names: ['a', 'b'], required: ['a', 'b'], charactersLeft: 25 },
      { path: '/message/buttons/0/url', names: ['a'], required: ['a'], charactersLeft: 2048 - 'https://example.com/'.length },
    ])
    assert.deepEqual((await check({ basic: true, message: text('ą{{a}}') })).variables, [
      { path: '/message/content', names: ['a'], required: ['a'], charactersLeft: 3071, bytesLeft: 158 },
    ])
    const contact = { type: 'CONTACT', content: 'x'.repeat(3000), data: { name: '{{n}}', phoneNumbers: ['+48500100200'] } }
    assert.deepEqual((await check({ message: contact })).variables, [
      { path: '/message/data/name', names: ['n'], required: ['n'], charactersLeft: 57 },
    ])
  })

  test('accepts values of exactly charactersLeft characters', async () => {
    const { ask } = await newCaller()
    const check = async (body: object) => (await ask('POST', '/templates/check', body)).body
    const contents = [
      text(`${'x'.repeat(2_900)}{{a}}`),
      { type: 'CARD', data: { title: `${'ą'.repeat(150)}{{a}}` } },
      { ...TEXT, buttons: [{ id: 'a', type: 'url', text: 'Open', url: `https://example.com/${'ą'.repeat(300)}{{a}}` }] },
      { ...TEXT, buttons: [{ id: 'a', type: 'quick_reply', text: 'Yes', payload: `${'x'.repeat(2_000)}{{a}}` }] },
      { type: 'CONTACT', content: 'x'.repeat(3_000), data: { name: '{{a}}', phoneNumbers: ['+48500100200'] } },
    ]
    for (const message of contents) {
      const left = (await check({ message })).variables[0].charactersLeft
      const isValid = async (length: number) => (await check({ message, variables: { a: 'x'.repeat(length) } })).valid
      assert.deepEqual([await isValid(left), await isValid(left + 1)], [true, false], JSON.stringify(message).slice(0, 60))
    }
  })

  test('checks and measures the content with the values', async () => {
    const { ask } = await newCaller()
    const message = text('{{a}} {{b}}')
    const { body } = await ask('POST', '/templates/check', { message, variables: { a: 'x'.repeat(100) } })
    assert.equal(body.valid, false)
    assert.deepEqual(body.violations, [{ path: '/message/content', reason: 'has the variable b, which has no value and no default' }])
    const filled = (await ask('POST', '/templates/check', { message, variables: { a: 'x'.repeat(100), b: 'y' } })).body
    assert.deepEqual([filled.valid, filled.facts.texts[0].characters], [true, 102])
    assert.deepEqual(filled.rendered, text(`${'x'.repeat(100)} y`))
  })

  test('renders values and defaults, and keeps other variables', async () => {
    const { ask } = await newCaller()
    const message = { ...text('{{a}} {{b|c}} {{d}}'), buttons: [{ id: 'a', type: 'url', text: '{{a}}', url: 'https://example.com/{{a}}' }] }
    const rendered = async (variables?: object) => (await ask('POST', '/templates/check', { message, variables })).body.rendered
    const buttons = (label: string, path: string) => [{ id: 'a', type: 'url', text: label, url: `https://example.com/${path}` }]
    assert.deepEqual(await rendered(), { ...text('{{a}} c {{d}}'), buttons: buttons('{{a}}', '%7B%7Ba%7D%7D') })
    assert.deepEqual(await rendered({ a: '1', b: '{{a}}' }), { ...text('1 {{a}} {{d}}'), buttons: buttons('1', '1') })
    assert.equal((await ask('POST', '/templates/check', { message: text('none') })).body.rendered, undefined)
  })

  test('reports the same violations as POST /messages, and a campaign renders the same content or refuses it', async () => {
    const { ask, send, request } = await newCaller()
    const parts = fc.constantFrom('{{a}}', '{{b|c}}', '{{c}}', '\\{{', '{{', '}}', 'ą', ' ', 'x'.repeat(80))
    const values = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.string({ unit: 'grapheme', maxLength: 100 }))
    await fc.assert(
      fc.asyncProperty(fc.array(parts, { maxLength: 6 }), values, fc.boolean(), async (content, variables, basic) => {
        const message = text(content.join(''))
        const checked = (await ask('POST', '/templates/check', { message, variables, basic })).body
        const sent = await send(newKey(), request({ message: { inline: message }, variables, basic }))
        assert.equal(sent.status, checked.valid ? 202 : 400, JSON.stringify(sent.body))
        const campaign = { content: message as MessageContent, basic, variables: {}, fallback: null }
        const member = renderForMember(campaign, variables, undefined)
        if ('reason' in member) assert.equal(checked.valid, false, JSON.stringify(member))
        else assert.deepEqual((await contentOf(sent.body.messageId)).content, member.content ?? message)
        if (!checked.valid) {
          const named = checked.violations.map(({ path, reason }: any) => [path.replace('/message', '/message/inline'), reason])
          assert.deepEqual(
            sent.body.details.map(({ path, reason }: any) => [path, reason]),
            named,
          )
        }
      }),
      { numRuns: 60 },
    )
  })

  test('with segmentId, says for how many members the message would fail, and why', async () => {
    const { ask, accountId } = await newCaller()
    const check = async (body: object) => await ask('POST', '/templates/check', body)
    await ask('PUT', '/segments/3', { name: 'Customers' })
    const members = [{ name: 'Anna', code: '1' }, { name: 'Łucja' }, { code: 'x'.repeat(300) }, { code: '' }]
    await putMembers(
      pool,
      { accountId, number: 3 },
      members.map((attributes, index) => ({ phone: `+4850010020${index}`, attributes })) as { phone: string }[],
    )
    const message = { type: 'CARD', content: 'Hello {{name|there}}', data: { title: '{{code}}' } }
    const { status, body } = await check({ message, segmentId: 3 })
    assert.equal(status, 200)
    assert.equal(body.valid, true)
    assert.deepEqual(body.group, {
      segmentId: 3,
      members: 4,
      checked: 4,
      failing: 3,
      variables: [
        { name: 'name', longest: 5, missing: 2 },
        { name: 'code', longest: 300, missing: 1 },
      ],
      examples: [
        {
          phone: '+48500100201',
          reason: 'MISSING_VARIABLE',
          description: '/data/title has the variable code, which has no value and no default.',
        },
        {
          phone: '+48500100202',
          reason: 'INVALID_CONTENT',
          description: '/data/title must have at most 200 characters, with the value of the variable code.',
        },
        {
          phone: '+48500100203',
          reason: 'INVALID_CONTENT',
          description: '/data/title must not be empty, with the value of the variable code.',
        },
      ],
    })
    assert.equal((await check({ message, segmentId: 3, variables: { code: '7' } })).body.group.failing, 2)
    assert.equal((await check({ message: text('Hello'), segmentId: 3 })).body.group.failing, 0)
    assert.equal((await check({ message: { type: 'CARD', data: {} }, segmentId: 3 })).body.group, undefined)
    assertError(await check({ message, segmentId: 4 }), 404, 'RCS_SEGMENT_NOT_FOUND')
    const other = await newCaller()
    assertError(await other.ask('POST', '/templates/check', { message, segmentId: 3 }), 404, 'RCS_SEGMENT_NOT_FOUND')
  })
})
