import { linkHere } from '../../app/place.ts'
import { Button } from '../../kit/controls.tsx'
import { Ago, Empty } from '../../kit/display.tsx'
import { Icon } from '../../kit/icon.tsx'
import { grouped } from '../../kit/phone-number.ts'
import * as say from '../../words/en-phones.ts'
import { iconOf, kindOf, lastText, type PhoneSummary } from './phone.ts'

type Props = { phones: PhoneSummary[]; current: PhoneSummary | undefined; onAdd: () => void }

/** The phones, the most recently used first. A phone that was just added has no entries yet, and is above them. */
export function PhoneList({ phones, current, onAdd }: Props) {
  const isNew = current !== undefined && !phones.some(({ phoneId }) => phoneId === current.phoneId)
  const shown = isNew ? [current, ...phones] : phones
  return (
    <section class="card phone-list" aria-label={say.list}>
      {shown.length === 0 && (
        <Empty icon="smartphone" title={say.none}>
          <p>{say.noneHint}</p>
          <Button icon="plus" onClick={onAdd}>
            {say.add}
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
  const kind = kindOf(phone.behaviour)
  const lastAt = phone.lastSms?.at ?? phone.last?.at
  const href = linkHere(['phones'], { phone: phone.phoneId })
  return (
    <a href={href} aria-current={isCurrent ? 'true' : undefined}>
      <span class="does">
        <Icon name={phone.online ? iconOf(kind) : 'power'} size={16} />
      </span>
      <span>
        <b>{grouped(phone.phone)}</b>
        <small title={lastText(phone)}>{lastText(phone)}</small>
        <em>
          {say.behaviours[kind]}
          {!phone.online && ` · ${say.offline}`}
        </em>
      </span>
      {lastAt !== undefined && <Ago at={lastAt} />}
    </a>
  )
}
