import { ICONS } from './icons.ts'
import { SOLID_ICONS } from './solid-icons.ts'

export type IconName = keyof typeof ICONS | keyof typeof SOLID_ICONS

type Props = { name: IconName; size?: number; class?: string; label?: string }

/** Without a label, a screen reader skips the icon. */
export function Icon({ name, size = 18, class: className = '', label }: Props) {
  const isSolid = name in SOLID_ICONS
  const paths = isSolid ? SOLID_ICONS[name as 'badge-check-solid'] : [ICONS[name as 'x']]
  return (
    <svg
      class={`icon ${className} ${isSolid ? 'is-solid' : ''}`}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      {...(label === undefined ? { 'aria-hidden': 'true' } : { role: 'img', 'aria-label': label })}
    >
      {paths.map((path) => (
        <path d={path} />
      ))}
    </svg>
  )
}
