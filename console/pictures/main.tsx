import { type ComponentChildren, render } from 'preact'
import '../src/kit/base.css'
import '../src/kit/kit.css'
import './gallery.css'
import type { Content } from '../src/phone/content.ts'
import type { Entry, Platform } from '../src/phone/drawn.ts'
import { meantOf } from '../src/phone/meant.ts'
import { Phone } from '../src/phone/phone.tsx'
import { BUTTONS, CONTENTS, IMAGE, VARIANTS, withButtons } from '../test/support/samples.ts'

// The sheet of pictures for one phone: every type of content with every type of button, and what else a phone can show. `?iphone` is the other
// phone. test/pictures.test.ts compares it with the stored sheets.

const PLATFORM: Platform = location.search === '?iphone' ? 'iphone' : 'android'
const SENDER = { name: 'Greenhouse', isVerified: true, color: '#0f7a58' }

function Gallery() {
  return (
    <main>
      {Object.entries(CONTENTS).flatMap(([name, content]) =>
        Object.entries(BUTTONS).map(([kind, button]) => <Shown name={`${name} with ${kind}`} content={withButtons(content, button)} />),
      )}
      {Object.entries(VARIANTS).map(([name, content]) => (
        <Shown name={name} content={content} />
      ))}
      <Shown name="a card with several buttons" content={severalOn('CARD')} />
      <Shown name="a text with all buttons" content={severalOn('MESSAGE', 7)} />
      <Shown name="an image that moves" content={{ type: 'CARD', data: { title: 'Spring', imageUrl: 'https://example.com/a.gif' } }} />
      <Shown
        name="an image that is missing"
        content={{ type: 'CARD', data: { title: 'Spring', imageUrl: 'https://example.com/broken.png' } }}
      />
      <Shown
        name="a video whose preview is missing"
        content={{ type: 'VIDEO', data: { videoUrl: 'https://example.com/tour.mp4', thumbnailUrl: 'https://example.com/broken.png' } }}
      />
      <Shown
        name="a link before a comma"
        content={{ type: 'MESSAGE', content: 'See https://example.com/x, and (https://example.com/b).' }}
      />
      <Shown
        name="letters of Central Europe"
        content={{ type: 'CARD', content: 'Zażółć gęślą jaźń.', data: { title: 'Příliš žluťoučký kůň, ő és ű' } }}
      />
      <Shown name="a card with long words" content={{ type: 'CARD', content: WORD.repeat(2), data: { title: 'A long word' } }} />
      <Shown name="a carousel with long words" content={LONG_CAROUSEL} />
      <Cell name="SMS">
        <Phone platform={PLATFORM} sender={SENDER} entries={[{ from: 'sms', id: '1', text: 'Your order is on its way.', at: '10:30' }]} />
      </Cell>
      <Cell name="a conversation" isWhole>
        <Phone platform={PLATFORM} sender={SENDER} entries={CONVERSATION} height={620} />
      </Cell>
    </main>
  )
}

const severalOn = (type: string, count = 4): Content => withButtons(CONTENTS[type] as Content, ...Object.values(BUTTONS).slice(0, count))

const WORD = 'Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz '

const LONG_CAROUSEL: Content = {
  type: 'CAROUSEL',
  data: {
    cardWidth: 'SMALL',
    cards: [
      {
        title: 'Two long words',
        content: WORD.repeat(6),
        height: 'TALL',
        imageUrl: IMAGE,
        buttons: ['Choose another delivery', 'Leave it with a neighbour'].map((text) => ({ id: text, type: 'url', text, url: IMAGE })),
      },
      { title: 'Cactus', content: 'Water it at Easter.' },
    ],
  },
}

const CONVERSATION: Entry[] = [
  { from: 'sender', id: '1', drawn: meantOf(severalOn('MESSAGE')), at: '10:30' },
  { from: 'owner', id: '2', text: 'Another day, please', at: '10:31' },
  { from: 'owner', id: '3', text: '52.22970, 21.01220', icon: 'map-pin', at: '10:31' },
  { from: 'sender', id: '4', drawn: meantOf({ type: 'CARD', data: { imageUrl: IMAGE, title: 'See you', height: 'SHORT' } }), at: '10:32' },
]

function Shown({ name, content }: { name: string; content: Content }) {
  return (
    <Cell name={name}>
      <Phone
        platform={PLATFORM}
        sender={SENDER}
        entries={[{ from: 'sender', id: '1', drawn: meantOf(content) }]}
        isPreview
        onTap={() => {}}
      />
    </Cell>
  )
}

/** Only the message, unless it is the whole phone. */
function Cell({ name, isWhole = false, children }: { name: string; isWhole?: boolean; children: ComponentChildren }) {
  return (
    <section data-cell={name} class={isWhole ? 'whole' : 'message'}>
      {children}
    </section>
  )
}

render(<Gallery />, document.getElementById('app') as HTMLElement)
