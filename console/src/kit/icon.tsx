import { ICONS } from './icons.ts'
import { SOLID_ICONS } from './solid-icons.ts'

export type IconName = keyof typeof ICONS | keyof typeof SOLID_ICONS

type Shapes = readonly (readonly [string, Readonly<Record<string, string>>])[]
type Props = { name: IconName; size?: number; class?: string; label?: string }

/** Without a label, a screen reader skips the icon. */
export function Icon({ name, size = 18, class: className = '', label }: Props) {
  const isSolid = name in SOLID_ICONS
  const shapes = { ...ICONS, ...SOLID_ICONS }[name] as Shapes
  return (
    <svg
      class={`icon ${className}`}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill={isSolid ? 'currentColor' : 'none'}
      stroke={isSolid ? 'none' : 'currentColor'}
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      {...(label === undefined ? { 'aria-hidden': 'true' } : { role: 'img', 'aria-label': label })}
    >
      {shapes.map(([tag, attributes]) => {
        const Shape = tag as 'path'
        return <Shape {...attributes} />
      })}
    </svg>
  )
}
