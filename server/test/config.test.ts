import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, test } from 'node:test'
import { loadConfig, readSettings } from '../src/config.ts'
import { installCertificate } from './support/certificates.ts'

describe('the settings', () => {
  test('have the defaults of the contract', () => {
    assert.deepEqual(loadConfig({}), {
      environment: 'development',
      host: '127.0.0.1',
      port: 8080,
      databaseUrl: undefined,
      dataDir: resolve('data'),
      allowEmbedded: false,
      encryptionKeyFile: undefined,
      limits: { store: 'memory', messagesPerSecond: 35, eventsPerSecond: 5, othersPerMinute: 30 },
      tls: undefined,
      trustProxy: [],
      metrics: { host: '127.0.0.1', port: undefined },
      publicUrl: undefined,
      carrierWebhookPort: undefined,
      oidc: undefined,
      carriersFile: undefined,
      retentionMonths: undefined,
      simulatorPort: undefined,
      simulatorDelayMs: 500,
      webhookHosts: 'loopback',
      logLevel: 'info',
      unknownVariables: [],
    })
  })

  test('count limits in the database if one is configured, unless set otherwise', () => {
    const HERALD_DATABASE_URL = 'postgres://db.example/herald'
    assert.equal(loadConfig({ HERALD_DATABASE_URL }).limits.store, 'database')
    assert.equal(loadConfig({ HERALD_DATABASE_URL, HERALD_LIMITS: 'memory' }).limits.store, 'memory')
  })

  test('accept hosts and proxies as IPv4, IPv6 and names', () => {
    for (const host of ['0.0.0.0', '::', '::1', 'localhost', 'herald.example.com'])
      assert.equal(loadConfig({ HERALD_HOST: host }).host, host)
    assert.deepEqual(loadConfig({ HERALD_TRUST_PROXY: '10.0.0.0/8, 2001:db8::/32,::1' }).trustProxy, ['10.0.0.0/8', '2001:db8::/32', '::1'])
  })

  test('treat an empty variable as not set', () => {
    assert.equal(loadConfig({ HERALD_PORT: '', HERALD_DATABASE_URL: '' }).port, 8080)
  })

  const wrong: [string, string, string][] = [
    ['HERALD_PORT', '80a', 'HERALD_PORT must be a whole number from 0 to 65535.'],
    ['HERALD_PORT', '65536', 'HERALD_PORT must be a whole number from 0 to 65535.'],
    ['HERALD_PORT', '-1', 'HERALD_PORT must be a whole number from 0 to 65535.'],
    ['HERALD_PORT', 'tcp://10.0.0.1:8080', 'HERALD_PORT must be a whole number from 0 to 65535.'],
    ['HERALD_HOST', '1.2.3.4:80', 'HERALD_HOST must be a host name or an address, without a port.'],
    ['HERALD_HOST', '300.1.1.1', 'HERALD_HOST must be a host name or an address, without a port.'],
    ['HERALD_HOST', 'http://x', 'HERALD_HOST must be a host name or an address, without a port.'],
    ['HERALD_DATABASE_URL', 'mysql://secret@x', 'HERALD_DATABASE_URL must be an address that begins with postgres:// or postgresql://.'],
    ['HERALD_DATABASE_URL', 'secret', 'HERALD_DATABASE_URL must be an address that begins with postgres:// or postgresql://.'],
    ['HERALD_LIMITS', 'redis', 'HERALD_LIMITS must be one of memory, database.'],
    ['HERALD_LIMIT_MESSAGES_PER_SECOND', '0', 'HERALD_LIMIT_MESSAGES_PER_SECOND must be a whole number from 1 to 1000000.'],
    ['HERALD_LIMIT_EVENTS_PER_SECOND', '0', 'HERALD_LIMIT_EVENTS_PER_SECOND must be a whole number from 1 to 1000000.'],
    ['HERALD_LIMIT_OTHERS_PER_MINUTE', '1.5', 'HERALD_LIMIT_OTHERS_PER_MINUTE must be a whole number from 1 to 1000000.'],
    ['HERALD_TLS_CERT', '/nowhere', 'HERALD_TLS_CERT must be the path of a file that can be read.'],
    ['HERALD_TRUST_PROXY', 'true', 'HERALD_TRUST_PROXY must be addresses or networks separated by commas, such as 10.0.0.0/8,192.168.1.7.'],
    [
      'HERALD_TRUST_PROXY',
      '10.0.0.0/33',
      'HERALD_TRUST_PROXY must be addresses or networks separated by commas, such as 10.0.0.0/8,192.168.1.7.',
    ],
    [
      'HERALD_TRUST_PROXY',
      '0.0.0.0/0',
      'HERALD_TRUST_PROXY must be addresses or networks separated by commas, such as 10.0.0.0/8,192.168.1.7.',
    ],
    ['HERALD_METRICS_HOST', '127.0.0.1:9464', 'HERALD_METRICS_HOST must be a host name or an address, without a port.'],
    ['HERALD_METRICS_PORT', '65536', 'HERALD_METRICS_PORT must be a whole number from 0 to 65535.'],
    [
      'HERALD_METRICS_ADDRESS',
      '127.0.0.1:9464',
      'HERALD_METRICS_ADDRESS is no longer a setting: set HERALD_METRICS_HOST and HERALD_METRICS_PORT instead.',
    ],
    ['HERALD_ENV', 'prod', 'HERALD_ENV must be one of development, production.'],
    ['HERALD_ALLOW_EMBEDDED', '1', 'HERALD_ALLOW_EMBEDDED must be one of true, false.'],
    ...['ftp://x', 'x', 'https://x/?q=1', 'https://x/?', 'https://x/#a', 'https://u:p@x'].map(
      (value) =>
        [
          'HERALD_PUBLIC_URL',
          value,
          'HERALD_PUBLIC_URL must be an address such as https://go.example.com, with no query, fragment or credentials.',
        ] as [string, string, string],
    ),
    ...['http://login.example.com', 'login.example.com', 'https://x/?a=1', 'https://u:p@x'].map(
      (value) =>
        [
          'HERALD_OIDC_ISSUER',
          value,
          'HERALD_OIDC_ISSUER must be an address such as https://login.example.com/realms/main, with no query or fragment; http:// only on this machine.',
        ] as [string, string, string],
    ),
    ...[
      'operator',
      'ops=owner',
      'ops=admin',
      'ops=admin:0',
      'ops=operator:1',
      'ops=operator,',
      '=operator',
      'ops=operator;x=viewer:1',
      '%=operator',
    ].map(
      (value) =>
        [
          'HERALD_OIDC_ROLES',
          value,
          'HERALD_OIDC_ROLES must be values of the claim with their roles, separated by commas, such as herald-operators=operator,shop-admins=admin:1,shop-readers=viewer:1 (1 is the id of an account).',
        ] as [string, string, string],
    ),
    [
      'HERALD_OIDC_SCOPES',
      'email',
      'HERALD_OIDC_SCOPES must be scopes separated by spaces, with openid among them, such as openid email profile.',
    ],
    ['HERALD_OIDC_CLIENT_SECRET_FILE', '/dev/null', 'HERALD_OIDC_CLIENT_SECRET_FILE must be the path of a file that has the secret.'],
    ['HERALD_OIDC_CLIENT_SECRET_FILE', '/nowhere', 'HERALD_OIDC_CLIENT_SECRET_FILE must be the path of a file that can be read.'],
    ['HERALD_CARRIERS', '/nowhere.json', 'HERALD_CARRIERS must be the path of a file that can be read.'],
    ['HERALD_SIMULATOR_DELAY_MS', 'fast', 'HERALD_SIMULATOR_DELAY_MS must be a whole number from 0 to 3600000.'],
    ['HERALD_WEBHOOK_ALLOW_PRIVATE', 'yes', 'HERALD_WEBHOOK_ALLOW_PRIVATE must be one of true, false.'],
    ['HERALD_RETENTION_MONTHS', '0', 'HERALD_RETENTION_MONTHS must be a whole number from 1 to 1200.'],
    ['HERALD_LOG_LEVEL', 'loud', 'HERALD_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent.'],
  ]
  for (const [name, value, sentence] of wrong) {
    test(`reject ${name}=${value} with an error that names the variable and not the value`, () => {
      assert.throws(() => loadConfig({ [name]: value }), { message: sentence })
    })
  }

  test('report all errors at once', () => {
    assert.throws(() => loadConfig({ HERALD_PORT: 'x', HERALD_LIMITS: 'y' }), {
      message: 'HERALD_PORT must be a whole number from 0 to 65535.\nHERALD_LIMITS must be one of memory, database.',
    })
  })

  test('require a valid certificate with its key', () => {
    const { HERALD_TLS_CERT, HERALD_TLS_KEY } = installCertificate('ec')
    const { HERALD_TLS_KEY: otherKey } = installCertificate('rsa')
    const { tls } = loadConfig({ HERALD_TLS_CERT, HERALD_TLS_KEY })
    assert.deepEqual([tls?.certFile, tls?.keyFile], [HERALD_TLS_CERT, HERALD_TLS_KEY])
    const together = { message: 'HERALD_TLS_CERT and HERALD_TLS_KEY must be given together.' }
    assert.throws(() => loadConfig({ HERALD_TLS_CERT }), together)
    assert.throws(() => loadConfig({ HERALD_TLS_KEY }), together)
    const pair = { message: 'HERALD_TLS_CERT and HERALD_TLS_KEY must be a certificate and its private key, both in PEM.' }
    assert.throws(() => loadConfig({ HERALD_TLS_CERT, HERALD_TLS_KEY: otherKey }), pair)
    writeFileSync(otherKey, 'not a key')
    assert.throws(() => loadConfig({ HERALD_TLS_CERT, HERALD_TLS_KEY: otherKey }), pair)
  })

  for (const mode of [0o644, 0o604, 0o602, 0o666]) {
    test(`reject a TLS key of the mode ${mode.toString(8)}`, () => {
      const { settings, HERALD_TLS_KEY } = installCertificate('ec')
      chmodSync(HERALD_TLS_KEY, mode)
      assert.throws(() => loadConfig(settings), {
        message: `HERALD_TLS_KEY must be a file that other users can't read: its mode is 0${mode.toString(8)}. Run chmod 600 on it, or chmod 640 to share it with its group.`,
      })
    })
  }

  for (const mode of [0o400, 0o600, 0o640]) {
    test(`accept a TLS key of the mode ${mode.toString(8)}`, () => {
      const { settings, HERALD_TLS_KEY } = installCertificate('ec')
      chmodSync(HERALD_TLS_KEY, mode)
      assert.ok(loadConfig(settings).tls)
    })
  }

  test('require everything for single sign-on together, and a safe address to come back to', () => {
    const oidc = { HERALD_OIDC_ISSUER: 'https://login.example.com', HERALD_OIDC_CLIENT_ID: 'herald', HERALD_OIDC_CLIENT_SECRET: 'CANARY' }
    const all = { ...oidc, HERALD_OIDC_ROLES: 'a=b=operator, staff %2C 1=viewer:12' }
    assert.deepEqual(loadConfig(all).oidc, {
      issuer: 'https://login.example.com',
      clientId: 'herald',
      clientSecret: 'CANARY',
      clientSecretFile: undefined,
      scopes: 'openid email profile',
      rolesClaim: 'groups',
      roles: [
        { value: 'a=b', role: 'operator' },
        { value: 'staff , 1', role: 'viewer', accountId: 12 },
      ],
    })
    for (const name of Object.keys(all)) assert.throws(() => loadConfig({ ...all, [name]: '' }), /must be given together/, name)
    assert.throws(() => loadConfig({ ...all, HERALD_OIDC_CLIENT_SECRET_FILE: import.meta.filename }), /must not both be given/)
    const address = /^Error: HERALD_PUBLIC_URL must begin with https:\/\/ for HERALD_OIDC_ISSUER/
    assert.throws(() => loadConfig({ ...all, HERALD_HOST: '0.0.0.0' }), address)
    assert.throws(() => loadConfig({ ...all, HERALD_PUBLIC_URL: 'http://go.example.com' }), address)
    for (const HERALD_PUBLIC_URL of ['https://go.example.com', 'http://[::1]:8080', 'http://localhost:8080']) {
      assert.ok(loadConfig({ ...all, HERALD_HOST: '0.0.0.0', HERALD_PUBLIC_URL }).oidc)
    }
    assert.ok(loadConfig({ HERALD_OIDC_SCOPES: 'openid', HERALD_HOST: '0.0.0.0' }))
    const shown = readSettings(all).settings.find(({ name }) => name === 'HERALD_OIDC_CLIENT_SECRET')
    assert.equal(shown?.value, '***')
  })

  test('report an unknown HERALD_ variable without failing', () => {
    assert.deepEqual(loadConfig({ HERALD_PROT: '9090', OTHER: 'x' }).unknownVariables, ['HERALD_PROT'])
  })

  test('are all in .env.example with their defaults', () => {
    const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
    const listed = [...example.matchAll(/^#?(HERALD_[A-Z_]+)=(.*)$/gm)]
    const source = readFileSync(new URL('../src/config.ts', import.meta.url), 'utf8')
    const read = [...source.matchAll(/read\('(HERALD_[A-Z_]+)'/g)].map(([, name]) => name)
    assert.deepEqual(new Set(listed.map(([, name]) => name)), new Set(read))
    const values = Object.fromEntries(listed.map(([, name, value]) => [name, value]))
    assert.deepEqual(loadConfig(values), loadConfig({}))
  })
})
