import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createKey } from '../../src/accounts/keys.ts'
import { countedAddress, HOLD_MS, type Limiter } from '../../src/http/limits.ts'
import { createDatabaseLimiter, deleteUnusedWindows } from '../../src/http/limits-database.ts'
import { createMemoryLimiter } from '../../src/http/limits-memory.ts'
import { createTestDatabase } from '../support/database.ts'
import { call, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()

/** On a busy machine the database may respond too late. Then it is unknown whether the request was counted. */
class Busy extends Error {}

async function statusOf(url: string, method: string, authorization: string, headers = {}): Promise<number> {
  const { status } = await call(url, { method, authorization, headers })
  if (status === 503) throw new Busy()
  return status
}

/** Repeats a test, with new callers, while the machine is too busy for its requests. */
function whenCalm(run: () => Promise<void>): () => Promise<void> {
  const isDone = async () => {
    try {
      await run()
      return true
    } catch (error) {
      if (error instanceof Busy) return false
      throw error
    }
  }
  return async () => void (await until('no request gets a 503', isDone))
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))

// One node of each kind that trusts no proxy, and one that trusts this machine. By default the database counts.
const start = (env: Record<string, string>) => startTestService({ HERALD_DATABASE_URL, ...env }, { roles: ['api'] })
const nodes = {
  memory: {
    plain: await start({ HERALD_LIMITS: 'memory' }),
    proxied: await start({ HERALD_LIMITS: 'memory', HERALD_TRUST_PROXY: '127.0.0.0/8' }),
  },
  database: { plain: await start({ HERALD_LIMITS: 'database' }), proxied: await start({ HERALD_TRUST_PROXY: '127.0.0.1' }) },
}

/** Sends so many POST /messages within one second, by a new caller. On a busy machine it tries again, since the window would have moved. */
async function burst(url: string | (() => string), count: number) {
  return await until(`${count} requests fit into a second`, async () => {
    const { authorization } = await createCaller(pool)
    const startedAt = performance.now()
    const responses = await times(count, () =>
      call(`${typeof url === 'string' ? url : url()}/v1/messages`, { method: 'POST', authorization }),
    )
    const endedAt = performance.now()
    return endedAt - startedAt < 1_000 && responses.every(({ status }) => status !== 503)
      ? { authorization, responses, endedAt }
      : undefined
  })
}

for (const store of ['memory', 'database'] as const) {
  describe(`limits that the ${store} counts`, () => {
    const { url } = nodes[store].plain

    test(
      'reject the 31st request in a minute, whatever its route',
      whenCalm(async () => {
        const { authorization } = await createCaller(pool)
        const responses = await times(15, () => statusOf(`${url}/v1/agents`, 'GET', authorization))
        responses.push(...(await times(15, () => statusOf(`${url}/v1/nowhere`, 'POST', authorization))))
        assert.deepEqual([...new Set(responses)], [200, 404])
        assert.equal(await statusOf(`${url}/v1/agents`, 'GET', authorization), 429)
        assert.equal(await statusOf(`${url}/v1/messages`, 'POST', authorization), 400, 'POST /messages has a limit of its own')
      }),
    )

    test(
      'accept 35 POST /messages in a second, and more a second later',
      whenCalm(async () => {
        for (const sent of [36, 80]) {
          const { authorization, responses, endedAt } = await burst(url, sent)
          assert.equal(responses.filter(({ status }) => status !== 429).length, 35)
          const retryAfter = responses.flatMap(({ headers }) => headers.get('retry-after') ?? [])
          assert.deepEqual([...new Set(retryAfter)], ['1'])
          await until('the window has passed', () => performance.now() > endedAt + 1_000)
          assert.equal(await statusOf(`${url}/v1/messages`, 'POST', authorization), 400)
        }
      }),
    )

    test(
      'count each key separately, even two keys of one account',
      whenCalm(async () => {
        const [one, two] = [await createCaller(pool), await createCaller(pool)]
        const { integrationKey, secret } = await createKey(pool, one.accountId)
        await times(31, () => statusOf(`${url}/v1/agents`, 'GET', one.authorization))
        assert.equal(await statusOf(`${url}/v1/agents`, 'GET', one.authorization), 429)
        assert.equal(await statusOf(`${url}/v1/agents`, 'GET', two.authorization), 200)
        assert.equal(await statusOf(`${url}/v1/agents`, 'GET', `Bearer ${integrationKey}:${secret}`), 200)
      }),
    )

    test(
      'ignore X-Forwarded-For from an untrusted address',
      whenCalm(async () => {
        const { authorization } = await createCaller(pool)
        let sent = 0
        const responses = await times(31, () => {
          sent += 1
          return statusOf(`${url}/v1/agents`, 'GET', authorization, {
            'x-forwarded-for': `10.0.0.${sent}`,
            forwarded: `for=10.0.0.${sent}`,
          })
        })
        assert.equal(responses.filter((status) => status === 429).length, 1)
      }),
    )

    test('are in RateLimit-Policy and RateLimit of every response below /v1', async () => {
      const { authorization } = await createCaller(pool)
      for (const [left, path, method] of [
        [29, '/agents', 'GET'],
        [28, '/nowhere', 'GET'],
        [27, '/agents', 'DELETE'],
      ] as const) {
        const { headers } = await call(`${url}/v1${path}`, { method, authorization })
        assert.equal(headers.get('ratelimit-policy'), '"default";q=30;w=60')
        assert.match(headers.get('ratelimit') as string, new RegExp(`^"default";r=${left};t=\\d\\d?$`))
      }
      const { headers } = await call(`${url}/v1/messages`, { method: 'POST', authorization })
      assert.equal(headers.get('ratelimit-policy'), '"messages";q=35;w=1')
      assert.equal(headers.get('ratelimit'), '"messages";r=34;t=1')
      const encoded = await call(`${url}/v1/%6Dessages?x=1`, { method: 'POST', authorization })
      assert.equal(encoded.headers.get('ratelimit-policy'), '"messages";q=35;w=1', 'in any spelling of the path')
      const document = await call(`${url}/v1/openapi.json`)
      assert.equal(document.headers.get('ratelimit-policy'), '"default";q=30;w=60')
      const badPath = await call(`${url}/v1/%zz/%ff`, { authorization })
      assert.equal(badPath.status, 404)
      assert.match(badPath.headers.get('ratelimit') as string, /^"default";r=26;t=\d\d?$/)
    })

    test('reject the 31st wrong credentials in a minute from an address, but not valid ones', async () => {
      const { url } = nodes[store].proxied
      const { authorization } = await createCaller(pool)
      const from = { 'x-forwarded-for': `192.0.2.${store.length}` }
      const wrong = await times(40, () => call(`${url}/v1/agents`, { headers: from }))
      assert.equal(wrong.filter(({ status }) => status === 401).length, 30)
      assert.equal(wrong.filter(({ status, body }) => status === 429 && body.code === 'RCS_RATE_LIMITED').length, 10)
      assert.equal(wrong[0]?.headers.get('ratelimit-policy'), '"credentials";q=30;w=60')
      assert.equal(await statusOf(`${url}/v1/agents`, 'GET', authorization, from), 200)
    })
  })
}

test(
  'two nodes that count in the database share one window',
  whenCalm(async () => {
    const both = [nodes.database.plain, nodes.database.proxied]
    let next = 0
    const eitherNode = () => {
      next += 1
      return both[next % 2]?.url as string
    }
    const { responses } = await burst(eitherNode, 36)
    assert.equal(responses.filter(({ status }) => status === 429).length, 1)
    const { authorization } = await createCaller(pool)
    const others = await times(31, () => statusOf(`${eitherNode()}/v1/agents`, 'GET', authorization))
    assert.equal(others.filter((status) => status === 429).length, 1)
  }),
)

test(
  'the address of a caller behind a trusted proxy is the address that the proxy reports',
  whenCalm(async () => {
    const { url } = nodes.memory.proxied
    const { authorization } = await createCaller(pool)
    let sent = 0
    const forged = await times(31, () => {
      sent += 1
      return statusOf(`${url}/v1/agents`, 'GET', authorization, { 'x-forwarded-for': `203.0.113.${sent}, 198.51.100.7` })
    })
    assert.equal(forged.filter((status) => status === 429).length, 1)
    assert.equal(await statusOf(`${url}/v1/agents`, 'GET', authorization, { 'x-forwarded-for': '198.51.100.8' }), 200)
  }),
)

test('no window holds more requests than the quota, and no request is rejected needlessly', async () => {
  // The model keeps the whole history, the limiter only what it needs.
  const gap = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.double({ min: 0, max: 40, noNaN: true }))
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 9 }), fc.array(gap, { maxLength: 300 }), async (quota, gaps) => {
      let now = 0
      const limiter = createMemoryLimiter(() => now)
      const turns: number[] = []
      for (const ms of gaps) {
        now += ms
        const turn = Math.max(now, (turns[turns.length - quota] ?? Number.NEGATIVE_INFINITY) + 100)
        const result = await limiter({ name: 'p', quota, windowMs: 100 }, 'subject')
        assert.equal(result.allowed, turn - now <= HOLD_MS)
        if (result.allowed) turns.push(now + result.waitMs)
        else assert.ok(Math.abs(result.resetMs - (turn - now)) < 1e-6)
        assert.ok(result.remaining >= 0 && result.remaining < quota)
      }
      for (let index = quota; index < turns.length; index += 1) {
        assert.ok((turns[index] as number) - (turns[index - quota] as number) >= 100 - 1e-6)
      }
    }),
  )
})

test('a request that is 25 ms early is held, and an earlier one is rejected', async () => {
  let now = 0
  const limiter = createMemoryLimiter(() => now)
  const ask = async (time: number) => {
    now = time
    const { allowed, waitMs, resetMs } = await limiter({ name: 'p', quota: 2, windowMs: 200 }, 's')
    return allowed ? waitMs : `rejected, free in ${resetMs}`
  }
  assert.deepEqual([await ask(0), await ask(10)], [0, 0])
  assert.equal(await ask(174), 'rejected, free in 26')
  assert.equal(await ask(175), 25, 'the slot of the request at 0')
  assert.equal(await ask(176), 'rejected, free in 34', 'the next slot is that of the request at 10')
  assert.equal(await ask(190), 20)
  assert.equal(await ask(199), 'rejected, free in 201', 'both slots are taken')
})

test('the database holds a request that is 25 ms early, and rejects an earlier one', async () => {
  const { limiter, stop } = createDatabaseLimiter(pool)
  const policy = { name: 'turn', quota: 2, windowMs: 200 }
  // A busy machine may miss the moment between two requests; then another caller tries again.
  const together = await until('two of three are held, each for its own slot', async () => {
    const subject = randomUUID()
    await times(2, () => limiter(policy, subject))
    await pool.query(
      `update rate_limit_windows
       set hit_times = array[clock_timestamp() - interval '182 ms', clock_timestamp() - interval '177 ms'], hit_counts = '{1,1}'
       where bucket = $1`,
      [`turn ${subject}`],
    )
    const waits = (await times(3, () => limiter(policy, subject))).filter(({ allowed }) => allowed).map(({ waitMs }) => waitMs)
    return waits.length === 2 && waits.every((ms) => ms > 0) ? waits : undefined
  })
  assert.ok(Math.abs((together[1] as number) - (together[0] as number) - 5) < 0.1, String(together))
  const held = await until('one is held', async () => {
    const subject = randomUUID()
    await times(2, () => limiter(policy, subject))
    let result = await limiter(policy, subject)
    while (!result.allowed) {
      assert.ok(result.resetMs > HOLD_MS && result.resetMs <= policy.windowMs + HOLD_MS)
      result = await limiter(policy, subject)
    }
    return result.waitMs > 0 ? result : undefined
  })
  assert.ok(held.waitMs <= HOLD_MS)
  stop()
})

test('evenly spaced requests at the limit all pass, even if each is a little early or late', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 3_500, maxLength: 3_500 }), async (jitters) => {
      let now = 0
      const limiter = createMemoryLimiter(() => now)
      for (const [index, jitter] of jitters.entries()) {
        now = 1_000 + (index * 1_000) / 35 + jitter
        assert.ok((await limiter({ name: 'p', quota: 35, windowMs: 1_000 }, 's')).allowed, `request ${index}`)
      }
    }),
    { numRuns: 10 },
  )
})

test('the database counts exactly, by its own clock, and drops a time in the future', async () => {
  const { limiter, stop } = createDatabaseLimiter(pool)
  const policy = { name: 'exact', quota: 5, windowMs: 300 }
  const granted: { from: number; to: number }[] = []
  while (granted.length < 25) {
    const from = performance.now()
    const results = await times(3, () => limiter(policy, 'busy'))
    const to = performance.now()
    granted.push(...results.filter(({ allowed }) => allowed).map(({ waitMs }) => ({ from: from + waitMs, to: to + waitMs })))
  }
  // Each grant happened somewhere between `from` and `to`: even so, no six of them can lie within 300 ms.
  for (let index = 5; index < granted.length; index += 1) {
    const spanMs = (granted[index] as { to: number }).to - (granted[index - 5] as { from: number }).from
    assert.ok(spanMs >= 300, `six within ${spanMs} ms`)
  }

  await pool.query(
    `update rate_limit_windows set hit_times = array[now() + interval '1 hour'], hit_counts = array[5] where bucket = 'exact busy'`,
  )
  assert.ok((await limiter(policy, 'busy')).allowed)
  stop()
})

test('a large quota is counted in at most a thousand steps, and never exceeded', async () => {
  const { limiter, stop } = createDatabaseLimiter(pool)
  const policy = { name: 'large', quota: 1_500, windowMs: 1_000 }
  const granted: { from: number; to: number }[] = []
  const endsAt = performance.now() + 2_500
  while (performance.now() < endsAt) {
    const from = performance.now()
    const results = await times(40, () => limiter(policy, 'bulk'))
    const to = performance.now()
    granted.push(...results.filter(({ allowed }) => allowed).map(({ waitMs }) => ({ from: from + waitMs, to: to + waitMs })))
  }
  for (let index = policy.quota; index < granted.length; index += 1) {
    const spanMs = (granted[index] as { to: number }).to - (granted[index - policy.quota] as { from: number }).from
    assert.ok(spanMs >= policy.windowMs, `${policy.quota + 1} within ${spanMs} ms`)
  }
  // The row also has requests that are held until others leave the window, so count within each window.
  const { rows } = await pool.query(`
    select cardinality(hit_times) as entries, (
      select max(used) from (
        select sum(count) over (order by time range between interval '999.999 ms' preceding and current row) as used
        from unnest(hit_times, hit_counts) as hit (time, count)
      ) as windows
    ) as used
    from rate_limit_windows where bucket = 'large bulk'`)
  assert.ok(rows[0].entries <= 1_001 && rows[0].used <= policy.quota, JSON.stringify(rows))
  stop()
})

test('windows of silent callers are deleted', async () => {
  await pool.query(`insert into rate_limit_windows (bucket, quota, window_ms, hit_times, hit_counts, granted, held_turns, held_counts, checked_at)
    select 'silent ' || i, 30, 60000, '{}', '{}', 0, '{}', '{}', now() - interval '3 minutes' from generate_series(1, 2500) i`)
  await deleteUnusedWindows(pool)
  const { rows } = await pool.query(
    `select count(*) filter (where bucket like 'silent %') as silent, count(*) as total from rate_limit_windows`,
  )
  assert.equal(rows[0].silent, 0)
  assert.ok(rows[0].total > 0)
})

test('twenty nodes that count the same callers concurrently neither deadlock nor exceed the limit', async () => {
  const policy = { name: 'crowd', quota: 50, windowMs: 60_000 }
  const nodes: Limiter[] = Array.from({ length: 20 }, () => createDatabaseLimiter(pool).limiter)
  const subjects = ['a', 'b', 'c', 'd']
  const granted = new Map<string, number>()
  await Promise.all(
    nodes.flatMap((limiter, node) =>
      Array.from({ length: 40 }, async (_, index) => {
        const subject = subjects[(index * 7 + node) % 4] as string
        if ((await limiter(policy, subject)).allowed) granted.set(subject, (granted.get(subject) ?? 0) + 1)
      }),
    ),
  )
  assert.deepEqual(Object.fromEntries(granted), { a: 50, b: 50, c: 50, d: 50 })
})

test('an address counts once in any notation, and IPv6 by its first 64 bits', () => {
  for (const [written, counted] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:0201', '192.0.2.1'],
    ['192.0.2.1:51234', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ]) {
    assert.equal(countedAddress(written), counted)
  }
  for (const junk of [undefined, '', 'unknown', 'x'.repeat(9_000), '192.0.2.999', '_hidden', 'a, b'])
    assert.equal(countedAddress(junk), 'unknown')
})
