import type { Button, CardWidth, Content, MediaHeight } from '../../src/phone/content.ts'

// One content of each type, and one button of each kind: a location button opens a map or asks for a place.

export const IMAGE = 'https://example.com/tulips.png'

export const BUTTONS: Record<string, Button> = {
  url: { id: 'url', type: 'url', text: 'Track the parcel', url: 'https://example.com/track?id=4711' },
  quick_reply: { id: 'reply', type: 'quick_reply', text: 'Another day, please', payload: 'another-day' },
  call: { id: 'call', type: 'call', text: 'Call the courier', phoneNumber: '+48 500 100 200' },
  calendar: {
    id: 'calendar',
    type: 'calendar',
    text: 'Add to my calendar',
    title: 'Delivery',
    startTime: '2027-01-31T08:00:00+01:00',
    endTime: '2027-01-31T09:00:00+01:00',
  },
  map: { id: 'map', type: 'location', text: 'Show the way', latitude: 52.2297, longitude: 21.0122, label: 'Shop' },
  share: { id: 'share', type: 'location', text: 'Share my location' },
  trigger_template: { id: 'template', type: 'trigger_template', text: 'Opening hours', templateId: 7 },
}

const card = (data: Extract<Content, { type: 'CARD' }>['data']): Content => ({
  type: 'CARD',
  content: 'In the shop until Saturday, six o’clock.',
  data: { title: 'Your tulips are ready', imageUrl: IMAGE, ...data },
})

const carousel = (cardWidth: CardWidth, height: MediaHeight): Content => ({
  type: 'CAROUSEL',
  data: {
    cardWidth,
    cards: [
      { title: 'Tulips in a pot', content: '9.60 € instead of 12.00 €. In flower now.', imageUrl: IMAGE, height },
      { title: 'Cactus', content: 'Water it at Easter.' },
    ],
  },
})

const LONG =
  'It should be with you tomorrow between 9 and 12. Somebody has to be at home. If that does not suit you, choose another day below until six o’clock this evening; after that it is on the van, and we can only leave it with a neighbour or take it back to the shop.'

export const CONTENTS: Record<string, Content> = {
  MESSAGE: { type: 'MESSAGE', content: 'Good morning! Your courier comes tomorrow: https://example.com/4711' },
  AUDIO: { type: 'AUDIO', data: { audioUrl: 'https://example.com/greeting.mp3' } },
  VIDEO: { type: 'VIDEO', data: { videoUrl: 'https://example.com/tour.mp4', thumbnailUrl: IMAGE } },
  FILE: { type: 'FILE', data: { fileUrl: 'https://example.com/files/invoice%204711.pdf', fileName: 'Invoice.pdf' } },
  CARD: card({}),
  CAROUSEL: carousel('MEDIUM', 'MEDIUM'),
  CONTACT: {
    type: 'CONTACT',
    content: 'Your courier',
    data: { name: 'Anna Nowak', phoneNumbers: ['+48 500 100 200'], email: 'anna@example.com', organization: 'Couriers' },
  },
  LOCATION: { type: 'LOCATION', data: { latitude: 52.2297, longitude: 21.0122, label: 'Our shop in the old town centre' } },
}

/** What a type of content can also look like. */
export const VARIANTS: Record<string, Content> = {
  'card, short': card({ height: 'SHORT' }),
  'card, tall': card({ height: 'TALL' }),
  'card, horizontal, left': card({ orientation: 'HORIZONTAL' }),
  'card, horizontal, right': card({ orientation: 'HORIZONTAL', imageAlignment: 'RIGHT' }),
  'card without image': { type: 'CARD', data: { title: 'Your tulips are ready' } },
  'card, image only': { type: 'CARD', data: { imageUrl: IMAGE, height: 'SHORT' } },
  'card, long': { type: 'CARD', content: LONG, data: { title: 'Your order 4711 from the Greenhouse is on its way', imageUrl: IMAGE } },
  'carousel, small, short': carousel('SMALL', 'SHORT'),
  'carousel, small, medium': carousel('SMALL', 'MEDIUM'),
  'carousel, medium, short': carousel('MEDIUM', 'SHORT'),
  'carousel, medium, tall': carousel('MEDIUM', 'TALL'),
  'card, an image without an ending': card({ imageUrl: 'https://example.com/photo-1?w=600' }),
  'video with a text': { type: 'VIDEO', content: 'A tour of the shop', data: { videoUrl: 'https://example.com/tour.mp4' } },
  'file with a preview': { type: 'FILE', data: { fileUrl: 'https://example.com/plan.pdf', thumbnailUrl: IMAGE } },
  'image file': { type: 'FILE', data: { fileUrl: IMAGE } },
  'contact, all fields': {
    type: 'CONTACT',
    data: { name: 'Anna Nowak', phoneNumbers: ['+48500100200', '+48 500 100 201'], url: 'https://example.com/anna' },
  },
  'place with a text': { type: 'LOCATION', content: 'Come and see us', data: { latitude: 0, longitude: -21.0122 } },
}

/** The content with buttons where it can have them: a carousel also on its first card. */
export function withButtons(content: Content, ...buttons: Button[]): Content {
  if (content.type !== 'CAROUSEL') return { ...content, buttons }
  const onCard = buttons.map((button) => ({ ...button, id: `card-${button.id}` }))
  const cards = content.data.cards.map((each, index) => (index === 0 ? { ...each, buttons: onCard } : each))
  return { ...content, data: { ...content.data, cards }, buttons }
}
