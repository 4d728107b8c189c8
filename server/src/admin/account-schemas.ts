import { Type } from 'typebox'
import { MAX_QUARANTINE_HOURS, MODULES } from '../accounts/accounts.ts'
import { QUOTAS, type Quota } from '../accounts/quotas.ts'
import { ROLES } from '../people/roles.ts'
import { OutgoingTime } from '../schemas.ts'
import { ShownWindow } from '../windows/window.ts'

const object = { additionalProperties: false }

export const ACCOUNTS_TAG = { name: 'Accounts', description: 'Accounts, their modules, quotas and suspension.' }

const AccountName = Type.String({ minLength: 1, maxLength: 200 })
const ModuleList = Type.Array(Type.Enum([...MODULES]), { description: 'What the account may use.' })
const QuarantineHours = Type.Integer({
  minimum: 0,
  maximum: MAX_QUARANTINE_HOURS,
  description: 'The minimum hours between two SMS to a recipient, for SMS with `"quarantine": true`.',
})

const ACCOUNT = {
  accountId: Type.Integer(),
  name: Type.String(),
  modules: ModuleList,
  quarantineHours: Type.Integer(),
  campaignWindow: ShownWindow,
  suspendedAt: Type.Optional(Type.Unsafe<Date>({ ...OutgoingTime, description: 'Absent unless the account is suspended.' })),
}
export const AccountBody = Type.Object(ACCOUNT, { $id: 'Account', ...object })
export const ListedAccount = Type.Object({ ...ACCOUNT, role: Type.Enum([...ROLES], { description: 'Your role in the account.' }) }, object)

export const NewAccount = Type.Object({ name: AccountName, modules: Type.Optional(ModuleList) }, object)
export const AccountChange = Type.Object(
  { name: Type.Optional(AccountName), modules: Type.Optional(ModuleList), quarantineHours: Type.Optional(QuarantineHours) },
  { ...object, minProperties: 1 },
)

export const WaitingBody = Type.Object(
  {
    messages: Type.Integer({ description: 'Messages in the queue.' }),
    sms: Type.Integer(),
    campaigns: Type.Integer({ description: 'Running campaigns.' }),
  },
  object,
)

export const TroublesBody = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          accountId: Type.Integer(),
          oldestDueMs: Type.Unsafe<number | null>({
            anyOf: [{ type: 'integer' }, { type: 'null' }],
            description: 'For how long the oldest message has been due that could be sent now.',
          }),
          failingEndpoints: Type.Integer({ description: 'Webhook endpoints that fail, or were disabled because they failed.' }),
          accepted: Type.Integer({ description: 'Messages accepted in the last 24 hours.' }),
          failed: Type.Integer({ description: 'Messages that failed or expired in the last 24 hours, and for which no SMS was sent.' }),
          quotaUsed: Type.Number({ description: 'The larger share of its quotas that is used: messages of the day, or stored bytes.' }),
        },
        object,
      ),
    ),
  },
  object,
)

const QUOTA = {
  quota: Type.Integer(),
  isDefault: Type.Boolean({ description: 'Whether it is the default, and not set for the account.' }),
}
const Used = Type.Object({ ...QUOTA, used: Type.Integer() }, object)
export const QuotasBody = Type.Object(
  {
    accountId: Type.Integer(),
    messagesPerDay: Used,
    templates: Used,
    storedBytes: Used,
    exports: Type.Object(QUOTA, { ...object, description: 'Concurrent exports on a node.' }),
  },
  { $id: 'Quotas', ...object },
)

const NewQuota = Type.Optional(
  Type.Unsafe<number | null>({
    anyOf: [{ type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }, { type: 'null' }],
    description: 'Null: the default.',
  }),
)
export const QuotasChange = Type.Object(Object.fromEntries((Object.keys(QUOTAS) as Quota[]).map((quota) => [quota, NewQuota])), {
  ...object,
  minProperties: 1,
})
