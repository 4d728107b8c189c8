// The filled icons of the drawn phones: Herald's own drawings.

const bar = (x: string, y: string, height: string) => ['rect', { x, y, width: '4', height, rx: '1.2' }] as const

export const SOLID_ICONS = {
  'badge-check-solid': [
    [
      'path',
      {
        d: 'M12 1.5l2.6 2.2 3.4-.3 1 3.3 2.9 1.8-1.2 3.2 1.2 3.2-2.9 1.8-1 3.3-3.4-.3L12 22.5l-2.6-2.8-3.4.3-1-3.3-2.9-1.8 1.2-3.2-1.2-3.2L5 6.7l1-3.3 3.4.3z',
      },
    ],
    [
      'path',
      {
        d: 'M8 12.2l2.7 2.7L16 9.4',
        fill: 'none',
        stroke: '#fff',
        'stroke-width': '2.2',
        'stroke-linecap': 'round',
        'stroke-linejoin': 'round',
      },
    ],
  ],
  'wifi-solid': [['path', { d: 'M12 20.5L1.2 7.6C4.2 5.1 8 3.6 12 3.6s7.8 1.5 10.8 4z' }]],
  'signal-solid': [['path', { d: 'M22 2v20H2z' }]],
  'battery-solid': [
    ['path', { d: 'M15.7 4H14V2h-4v2H8.3C7.6 4 7 4.6 7 5.3v15.3c0 .8.6 1.4 1.3 1.4h7.3c.8 0 1.4-.6 1.4-1.3V5.3C17 4.6 16.4 4 15.7 4z' }],
  ],
  'signal-bars': [bar('1', '15', '6'), bar('7', '11.5', '9.5'), bar('13', '8', '13'), bar('19', '4', '17')],
  'battery-ios': [
    ['rect', { x: '1', y: '7', width: '19', height: '10', rx: '3' }],
    ['rect', { x: '21', y: '10', width: '1.6', height: '4', rx: '0.8' }],
  ],
} as const
