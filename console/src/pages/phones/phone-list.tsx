import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago, Empty } from '../../kit/display.tsx'
import { Icon } from '../../kit/icon.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { words } from '../../words/words.ts'
import { iconOf, kindOf, lastText, type PhoneSummary } from './phone.ts'

type Props = { phones: PhoneSummary[]; current: PhoneSummary | undefined; onAdd: () => void }

/** The phones, the most recently used first. A phone that was just added has no entries yet, and is above them. */
export function PhoneList({ phones, current, onAdd }: Props) {
  const isNew = current !== undefined && !phones.some(({ phoneId }) => phoneId === current.phoneId)
  const shown = isNew ? [current, ...phones] : phones
  return (
    <section class="card phone-list" aria-label={words.phones.list}>
      {shown.length === 0 && (
        <Empty icon="smartphone" title={words.phones.none}>
          <p>{words.phones.noneHint}</p>
          <Button icon="plus" onClick={onAdd}>
            {words.phones.add}
          </Button>
        </Empty>
      )}
      <ul>
        {shown.map((phone) => (
          <li key={phone.phoneId}>
            <Item phone={phone} isCurrent={phone.phoneId === current?.phoneId} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Item({ phone, isCurrent }: { phone: PhoneSummary; isCurrent: boolean }) {
  const { account } = useFrame()
  const kind = kindOf(phone.behaviour)
  const lastAt = phone.lastSms?.at ?? phone.last?.at
  const href = linkTo({ accountId: account.accountId, path: ['phones'], query: { phone: phone.phoneId } })
  return (
    <a href={href} aria-current={isCurrent ? 'true' : undefined}>
      <span class="does">
        <Icon name={phone.online ? iconOf(kind) : 'wifi-off'} size={16} />
      </span>
      <span>
        <b>{grouped(phone.phone)}</b>
        <small title={lastText(phone)}>{lastText(phone)}</small>
        <em>
          {words.phones.behaviours[kind]}
          {!phone.online && ` · ${words.phones.offline}`}
        </em>
      </span>
      {lastAt !== undefined && <Ago at={lastAt} />}
    </a>
  )
}
