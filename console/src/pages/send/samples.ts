/** Contents to start from. They show what RCS can do, and every button does something. */
export const SAMPLES = {
  replies: {
    type: 'MESSAGE',
    content: 'Good morning! Your courier comes tomorrow. When does it suit you best?',
    buttons: [
      { id: 'morning', type: 'quick_reply', text: '9 to 12', payload: 'morning' },
      { id: 'afternoon', type: 'quick_reply', text: '12 to 15', payload: 'afternoon' },
      { id: 'call', type: 'call', text: 'Call the courier', phoneNumber: '+48500100100' },
    ],
  },
  card: {
    type: 'CARD',
    content: 'It should be with you tomorrow between 9 and 12.',
    data: { title: 'Your order is on its way' },
    buttons: [
      { id: 'track', type: 'url', text: 'Track the parcel', url: 'https://example.com/parcels/4711' },
      { id: 'change', type: 'quick_reply', text: 'Another day, please', payload: 'change-day' },
    ],
  },
} as const
