import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { filter, linkTo, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Empty, Pill } from '../../kit/display.tsx'
import { useKeptFocus } from '../../kit/kept-focus.ts'
import { LongTable } from '../../kit/long-table.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-groups.ts'
import * as messageWords from '../../words/en-messages.ts'
import { NumberSearch } from '../replies/number-search.tsx'
import { AddMembers } from './add-members.tsx'
import { type Member, pathOf, type Segment } from './segments.ts'

type Props = { group: Segment; place: Place; onChanged: () => void }

/** The members of a group, in the order of their numbers. */
export function Members({ group, place, onChanged }: Props) {
  const { accountId, role } = useFrame().account
  const [selected, setSelected] = useState<string[]>([])
  const [open, setOpen] = useState<'add' | 'remove'>()
  const [said, setSaid] = useState('')
  const [version, setVersion] = useState(0)
  const part = useKeptFocus<HTMLDivElement>()
  const phone = place.query.get('phone') ?? ''
  // Else a person would remove members that a search has hidden.
  useEffect(() => setSelected([]), [phone])
  const canChange = role !== 'viewer'
  const changed = (text: string) => {
    setSaid(text)
    setSelected([])
    setVersion((last) => last + 1)
    onChanged()
  }
  const close = () => setOpen(undefined)
  const toggle = (each: string) => setSelected((now) => (now.includes(each) ? now.filter((other) => other !== each) : [...now, each]))
  const query = phone && `?phone=${encodeURIComponent(phone)}`
  return (
    <div ref={part} tabIndex={-1}>
      <MemberBar place={place} phone={phone} selected={selected.length} onOpen={setOpen} />
      <p class="said" role="status">
        {said}
      </p>
      <LongTable<Member>
        label={say.members}
        path={pathOf(accountId, group.segmentId, `/members${query}`)}
        version={version + group.members}
        columns={canChange ? [{ title: say.choose }, ...COLUMNS] : COLUMNS}
        keyOf={(member) => member.phone}
        cells={(member) => (
          <>
            {canChange && <Choice phone={member.phone} isChosen={selected.includes(member.phone)} onToggle={toggle} />}
            <Cells member={member} />
          </>
        )}
        empty={
          <Empty icon="users" title={phone === '' ? say.noMembers : say.notMember(phone)}>
            {phone === '' && canChange && <p>{say.noMembersHint}</p>}
          </Empty>
        }
      />
      {open === 'add' && <AddMembers group={group} onClose={close} onAdded={changed} />}
      {open === 'remove' && <RemoveMembers group={group} phones={selected} onClose={close} onRemoved={changed} />}
    </div>
  )
}

const COLUMNS = [
  { title: say.columns.phone },
  { title: say.columns.status },
  { title: say.columns.consents, isWide: true },
  { title: say.columns.timeZone, isWide: true },
  { title: say.attributes, isWide: true },
]

type BarProps = { place: Place; phone: string; selected: number; onOpen: (dialog: 'add' | 'remove') => void }

function MemberBar({ place, phone, selected, onOpen }: BarProps) {
  const { role } = useFrame().account
  return (
    <NumberSearch place={place}>
      {phone !== '' && (
        <Button icon="x" kind="quiet" onClick={() => filter(place, { phone: undefined })}>
          {messageWords.filters.clear}
        </Button>
      )}
      {role !== 'viewer' && (
        <div class="member-actions">
          {selected > 0 && (
            <Button icon="trash-2" kind="danger" onClick={() => onOpen('remove')}>
              {say.remove(selected)}
            </Button>
          )}
          <Button icon="plus" onClick={() => onOpen('add')}>
            {say.addMembers}
          </Button>
        </div>
      )}
    </NumberSearch>
  )
}

function Choice({ phone, isChosen, onToggle }: { phone: string; isChosen: boolean; onToggle: (phone: string) => void }) {
  return (
    <td class="member-choice">
      <label>
        <input type="checkbox" checked={isChosen} onChange={() => onToggle(phone)} aria-label={say.chooseMember(phone)} />
      </label>
    </td>
  )
}

function Cells({ member: { phone, consents, controlGroup, status, timeZone, attributes = {} } }: { member: Member }) {
  const { accountId, role } = useFrame().account
  const list = consents.join(', ')
  return (
    <>
      <td class="member-phone">
        {role === 'viewer' ? (
          grouped(phone)
        ) : (
          <a href={linkTo({ accountId, path: ['messages'], query: { recipient: phone } })}>{grouped(phone)}</a>
        )}
        <small class="is-narrow">{[list, timeZone, ...Object.values(attributes)].filter(Boolean).join(' · ')}</small>
      </td>
      <td>
        <span class="member-status">
          <Pill tone={status === 'active' ? 'good' : 'wait'}>{say.statuses[status]}</Pill>
          {controlGroup && <Pill tone="info">{say.columns.controlGroup}</Pill>}
        </span>
      </td>
      <td class="is-wide">{list}</td>
      <td class="is-wide">{timeZone}</td>
      <td class="is-wide member-attributes">
        {Object.entries(attributes).map(([name, value]) => (
          <span key={name}>
            <b>{name}</b> {value}
          </span>
        ))}
      </td>
    </>
  )
}

type RemoveProps = { group: Segment; phones: string[]; onClose: () => void; onRemoved: (said: string) => void }

/** Asks, and removes members one by one, as the API does. After a failure, a second try goes on with those that are left. */
function RemoveMembers({ group, phones, onClose, onRemoved }: RemoveProps) {
  const { accountId } = useFrame().account
  const removed = useRef(0)
  const run = async () => {
    for (const phone of phones.slice(removed.current)) {
      await ask(pathOf(accountId, group.segmentId, `/members/${encodeURIComponent(phone)}`), { method: 'DELETE' })
      removed.current += 1
    }
  }
  // Those that are gone are gone, also if the person stops after a failure.
  const close = () => {
    if (removed.current > 0) onRemoved(say.removed(removed.current))
    onClose()
  }
  const action = say.remove(phones.length)
  return (
    <Sure title={`${action}?`} action={action} run={run} onDone={close} onClose={close}>
      <p>{say.removeBody(phones.length, group.members)}</p>
    </Sure>
  )
}
