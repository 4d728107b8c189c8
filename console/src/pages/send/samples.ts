/** A content to start from. It shows what RCS can do. */
export const CARD = {
  type: 'CARD',
  content: 'It should be with you tomorrow between 9 and 12.',
  data: { title: 'Your order is on its way' },
  buttons: [
    { id: 'track', type: 'url', text: 'Track the parcel', url: 'https://example.com/parcels/4711' },
    { id: 'change', type: 'quick_reply', text: 'Another day, please', payload: 'change-day' },
  ],
} as const
