// The filled icons of the drawn phones: Herald's own drawings. Each is a path; a second one is a white line on it (base.css).

const CORNER = 'a1.2 1.2 0 0 1'
const bar = (x: number, y: number, height: number) =>
  `M${x + 1.2} ${y}h1.6${CORNER} 1.2 1.2v${height - 2.4}${CORNER}-1.2 1.2h-1.6${CORNER}-1.2-1.2v${2.4 - height}${CORNER} 1.2-1.2`

export const SOLID_ICONS = {
  'badge-check-solid': [
    'M12 1.5l2.6 2.2 3.4-.3 1 3.3 2.9 1.8-1.2 3.2 1.2 3.2-2.9 1.8-1 3.3-3.4-.3L12 22.5l-2.6-2.8-3.4.3-1-3.3-2.9-1.8 1.2-3.2-1.2-3.2L5 6.7l1-3.3 3.4.3z',
    'M8 12.2l2.7 2.7L16 9.4',
  ],
  'wifi-solid': ['M12 20.5L1.2 7.6C4.2 5.1 8 3.6 12 3.6s7.8 1.5 10.8 4z'],
  'signal-solid': ['M22 2v20H2z'],
  'battery-solid': ['M15.7 4H14V2h-4v2H8.3C7.6 4 7 4.6 7 5.3v15.3c0 .8.6 1.4 1.3 1.4h7.3c.8 0 1.4-.6 1.4-1.3V5.3C17 4.6 16.4 4 15.7 4z'],
  'signal-bars': [bar(1, 15, 6) + bar(7, 11.5, 9.5) + bar(13, 8, 13) + bar(19, 4, 17)],
  'battery-ios': [
    'M4 7h13a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H4a3 3 0 0 1-3-3v-4a3 3 0 0 1 3-3M21.8 10a.8 .8 0 0 1 .8 .8v2.4a.8 .8 0 0 1-1.6 0v-2.4a.8 .8 0 0 1 .8-.8',
  ],
} as const
