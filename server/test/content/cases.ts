type Fields = Record<string, unknown>

/** A content and its violations, each as `path: reason`. A valid content has none. */
export type Case = [name: string, message: unknown, ...violations: string[]]

const url = 'https://example.com/a.jpg'
const HTTPS = 'must be an https address, such as https://example.com/a.jpg'
const WEB = 'must be an http or https address, such as https://example.com/a'
const PUBLIC = 'must be at a public host: no private or reserved address, no local name'
const CREDENTIALS = 'must not contain credentials'
const PHONE = 'must be an international phone number, such as +48500100200'
const EMPTY = 'must be empty or absent'
const REQUIRED = 'is required'
const UNKNOWN = 'is not known here; is it misspelt?'
const NOT_EMPTY = 'must not be empty'
const TIME = 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'
const ENCODED = 'must have at most 2048 characters after percent-encoding'
const BUTTON_ID = 'must be 1 to 64 letters (A to Z, a to z), digits, `.`, `_` or `-`'
const UNIQUE = 'must be unique in the message; an earlier button has the same id'
const NUL = 'must not contain the character NUL'
const SURROGATE = 'must not contain half of a surrogate pair'
const TYPES = 'must be one of MESSAGE, AUDIO, VIDEO, FILE, CARD, CAROUSEL, CONTACT, LOCATION'
const BUTTON_TYPES = 'must be one of url, quick_reply, call, calendar, location, trigger_template'
const BOTH_COORDINATES = 'must have both latitude and longitude, or neither to ask for the recipient’s location'
const NOTHING = 'must have at least one of content, data.title and data.imageUrl'
const ORIENTATIONS = 'must be one of VERTICAL, HORIZONTAL'
const notOf = (type: string) => `is not a field of type ${type}; is it misspelt?`
const atMost = (limit: number) => `must have at most ${limit} characters`
const items = (limit: number) => `must have at most ${limit} items`

const text = (fields: Fields = {}) => ({ type: 'MESSAGE', content: 'Hello', ...fields })
const reply = (id: string) => ({ id, type: 'quick_reply', text: 'Yes', payload: 'yes' })
const replies = (count: number) => Array.from({ length: count }, (_, index) => reply(`b${index}`))
const withButton = (fields: Fields) => text({ buttons: [{ id: 'b', text: 'Go', ...fields }] })
const card = (data: Fields = {}, fields: Fields = {}) => ({ type: 'CARD', content: 'Text', data, ...fields })
const carousel = (cards: unknown, data: Fields = {}) => ({ type: 'CAROUSEL', data: { cards, ...data } })
const twoCards = (fields: Fields) => [{ title: 'A' }, { title: 'B', ...fields }]
const file = (type: string, data: Fields, fields: Fields = {}) => ({ type, data, ...fields })
const contact = (data: Fields = {}, fields: Fields = {}) =>
  file('CONTACT', { name: 'Shop', phoneNumbers: ['+48500100200'], ...data }, fields)
const location = (data: Fields = {}, fields: Fields = {}) => file('LOCATION', { latitude: 52.2, longitude: 21, ...data }, fields)
const words = (list: string) => list.trim().split(/\s+/)
const image = (imageUrl: string) => card({ imageUrl })
const calendar = (fields: Fields = {}) =>
  withButton({ type: 'calendar', title: 'Visit', startTime: '2026-12-01T10:00:00Z', endTime: '2026-12-01T11:00:00Z', ...fields })

const GENERAL: Case[] = [
  ['an inline content, as a message request has it', { inline: text() }, `/inline: ${UNKNOWN}`, `/type: ${REQUIRED}`],
  ['an unknown type with an unknown field', { type: 'POLL', colour: 1 }, `/colour: ${UNKNOWN}`, `/type: ${TYPES}`],
  ['no type', { content: 'Hello' }, `/type: ${REQUIRED}`],
  ['an unknown type', { type: 'POLL', content: 'Hello' }, `/type: ${TYPES}`],
  ['a type in small letters', { type: 'message', content: 'Hello' }, `/type: ${TYPES}`],
  ['a type that is no text', { type: 5, content: 'Hello' }, `/type: ${TYPES}`],
  ['a type of every object', { type: 'toString', content: 'Hello' }, `/type: ${TYPES}`],
  ['a list', [text()], ': must be an object'],
  ['a text', 'Hello', ': must be an object'],
  ['an unknown field', text({ contnet: 'x' }), `/contnet: ${notOf('MESSAGE')}`],
  ['a field of a message request', text({ recipient: '+48500100200' }), `/recipient: ${notOf('MESSAGE')}`],
  ['a field named __proto__', JSON.parse('{"type":"MESSAGE","content":"x","__proto__":{}}'), `/__proto__: ${notOf('MESSAGE')}`],
  ['a field whose name needs escaping', text({ 'a/b~c': 1 }), `/a~1b~0c: ${notOf('MESSAGE')}`],
  ['buttons that are no list', text({ buttons: { 0: reply('b') } }), '/buttons: must be an array'],
  ['a button that is no object', text({ buttons: ['b'] }), '/buttons/0: must be an object'],
  ['data that is no object', text({ data: 'x' }), '/data: must be an object'],
  ['data that is a list', text({ data: [] }), '/data: must be an object'],
  [
    'everything wrong at once',
    { type: 'CARD', content: 5, x: 1, buttons: [{}], data: { height: 'HUGE', y: 2 } },
    `/x: ${notOf('CARD')}`,
    '/content: must be a string',
    `/buttons/0/type: ${REQUIRED}`,
    `/data/y: ${UNKNOWN}`,
    '/data/height: must be one of SHORT, MEDIUM, TALL',
    `: ${NOTHING}`,
  ],
]

const TEXTS: Case[] = [
  ['a text', text()],
  ['a text with empty buttons and data', text({ buttons: [], data: {} })],
  ['no content', { type: 'MESSAGE' }, `/content: ${REQUIRED}`],
  ['an empty content', text({ content: '' }), `/content: ${NOT_EMPTY}`],
  ['a content that is a number', text({ content: 5 }), '/content: must be a string'],
  ['3072 characters', text({ content: 'a'.repeat(3072) })],
  ['3072 emoji', text({ content: '😀'.repeat(3072) })],
  ['3073 characters', text({ content: 'a'.repeat(3073) }), `/content: ${atMost(3072)}`],
  ['3073 emoji', text({ content: '😀'.repeat(3073) }), `/content: ${atMost(3072)}`],
  ['data', text({ data: { title: 'x' } }), `/data: ${EMPTY}`],
  ['NUL in the text', text({ content: 'a\0b' }), `/content: ${NUL}`],
  ['half a surrogate pair in the text', text({ content: 'a\ud800b' }), `/content: ${SURROGATE}`],
  ['both halves in the wrong order', text({ content: '\udc00\ud800' }), `/content: ${SURROGATE}`],
  ['NUL in the name of a field', text({ 'a\0': 1 }), `/a\ufffd: ${notOf('MESSAGE')}`],
  ['line breaks, tabs and other control characters', text({ content: 'a\r\n\tb\u0001\u200d' })],
  ['only a space', text({ content: ' ' })],
]

const FILES: Case[] = [
  ['an audio by http', file('AUDIO', { audioUrl: 'http://example.com/a' }), `/data/audioUrl: ${HTTPS}`],
  ['an audio at a private host', file('AUDIO', { audioUrl: 'https://10.0.0.1/a' }), `/data/audioUrl: ${PUBLIC}`],
  ['a video by http', file('VIDEO', { videoUrl: 'http://example.com/a' }), `/data/videoUrl: ${HTTPS}`],
  ['a video at a private host', file('VIDEO', { videoUrl: 'https://10.0.0.1/a' }), `/data/videoUrl: ${PUBLIC}`],
  ['a file by http', file('FILE', { fileUrl: 'http://example.com/a' }), `/data/fileUrl: ${HTTPS}`],
  ['a file at a private host', file('FILE', { fileUrl: 'https://10.0.0.1/a' }), `/data/fileUrl: ${PUBLIC}`],
  ['an audio', file('AUDIO', { audioUrl: url })],
  ['an audio with an empty content', file('AUDIO', { audioUrl: url }, { content: '' })],
  ['an audio with a content', file('AUDIO', { audioUrl: url }, { content: 'x' }), `/content: ${EMPTY}`],
  ['an audio without data', { type: 'AUDIO' }, `/data: ${REQUIRED}`],
  ['an audio with empty data', file('AUDIO', {}), `/data/audioUrl: ${REQUIRED}`],
  ['an audio with the field of a video', file('AUDIO', { audioUrl: url, videoUrl: url }), `/data/videoUrl: ${UNKNOWN}`],
  ['an audio with eleven buttons', { type: 'AUDIO', data: { audioUrl: url }, buttons: replies(11) }],
  ['a video', file('VIDEO', { videoUrl: url })],
  [
    'a video with text, thumbnail and button',
    { type: 'VIDEO', content: 'x'.repeat(2000), data: { videoUrl: url, thumbnailUrl: url }, buttons: replies(1) },
  ],
  ['a video with an empty content', file('VIDEO', { videoUrl: url }, { content: '' })],
  ['a video with 2001 characters', file('VIDEO', { videoUrl: url }, { content: 'x'.repeat(2001) }), `/content: ${atMost(2000)}`],
  ['a video without its address', file('VIDEO', { thumbnailUrl: url }), `/data/videoUrl: ${REQUIRED}`],
  ['a video with a bad thumbnail', file('VIDEO', { videoUrl: url, thumbnailUrl: 'x' }), `/data/thumbnailUrl: ${HTTPS}`],
  ['a file', file('FILE', { fileUrl: url, fileName: 'Bill.pdf', thumbnailUrl: url })],
  ['a file with a content', file('FILE', { fileUrl: url }, { content: 'x' }), `/content: ${EMPTY}`],
  ['a file with an empty name', file('FILE', { fileUrl: url, fileName: '' }), `/data/fileName: ${NOT_EMPTY}`],
  ['a file with a name of 256 characters', file('FILE', { fileUrl: url, fileName: 'x'.repeat(256) }), `/data/fileName: ${atMost(255)}`],
  ['a file without its address', file('FILE', { fileName: 'x' }), `/data/fileUrl: ${REQUIRED}`],
]

const CARDS: Case[] = [
  ['a horizontal card with image and title', { type: 'CARD', data: { title: 'x', imageUrl: url, orientation: 'HORIZONTAL' } }],
  ['a card whose orientation is a number', card({ orientation: 5 }), `/data/orientation: ${ORIENTATIONS}`],
  ['a card with a content alone', card()],
  ['a card without data', { type: 'CARD', content: 'x' }],
  ['a card with a title alone', { type: 'CARD', data: { title: 'x' } }],
  ['a card with an image alone', { type: 'CARD', data: { imageUrl: url } }],
  ['a card with all', card({ title: 'x', imageUrl: url, orientation: 'VERTICAL', height: 'TALL' }, { buttons: replies(4) })],
  ['a horizontal card', card({ imageUrl: url, orientation: 'HORIZONTAL', imageAlignment: 'RIGHT' })],
  ['a card with nothing', { type: 'CARD' }, `: ${NOTHING}`],
  ['a card with an empty content alone', { type: 'CARD', content: '', data: {} }, `: ${NOTHING}`],
  ['a card with only a height', { type: 'CARD', data: { height: 'TALL' } }, `: ${NOTHING}`],
  ['a card with an empty title', card({ title: '' }), `/data/title: ${NOT_EMPTY}`],
  ['a card with a title of 200', card({ title: 'ż'.repeat(200) })],
  ['a card with a title of 201', card({ title: 'ż'.repeat(201) }), `/data/title: ${atMost(200)}`],
  ['a card with 2001 characters', card({}, { content: 'x'.repeat(2001) }), `/content: ${atMost(2000)}`],
  ['a card with five buttons', card({}, { buttons: replies(5) }), `/buttons: ${items(4)}`],
  ['a card with an unknown orientation', card({ orientation: 'DIAGONAL' }), `/data/orientation: ${ORIENTATIONS}`],
  ['a card with an unknown height', card({ height: 'tall' }), '/data/height: must be one of SHORT, MEDIUM, TALL'],
  [
    'a horizontal card with a height',
    card({ orientation: 'HORIZONTAL', height: 'SHORT' }),
    '/data/height: is allowed only with the orientation VERTICAL',
  ],
  [
    'a vertical card with an alignment',
    card({ orientation: 'VERTICAL', imageAlignment: 'LEFT' }),
    '/data/imageAlignment: is allowed only with the orientation HORIZONTAL',
  ],
  [
    'an alignment without an orientation',
    card({ imageAlignment: 'RIGHT' }),
    '/data/imageAlignment: is allowed only with the orientation HORIZONTAL',
  ],
  [
    'a horizontal card with only an image',
    { type: 'CARD', data: { imageUrl: url, orientation: 'HORIZONTAL' } },
    '/data/imageUrl: requires a title, a content or a button in a horizontal card',
  ],
  ['a horizontal card with image and button', { type: 'CARD', data: { imageUrl: url, orientation: 'HORIZONTAL' }, buttons: replies(1) }],
  ['a card with the field of a carousel', card({ cardWidth: 'SMALL' }), `/data/cardWidth: ${UNKNOWN}`],
]

const CAROUSELS: Case[] = [
  ['two cards', carousel([{ title: 'A' }, { content: 'B' }])],
  [
    'ten cards with all',
    carousel(
      Array.from({ length: 10 }, (_, i) => ({ title: 'T', content: 'x', imageUrl: url, height: 'TALL', buttons: [reply(`c${i}`)] })),
      { cardWidth: 'MEDIUM' },
    ),
  ],
  ['one card', carousel([{ title: 'A' }]), '/data/cards: must have at least 2 items'],
  ['eleven cards', carousel(Array.from({ length: 11 }, () => ({ title: 'A' }))), `/data/cards: ${items(10)}`],
  ['no cards', { type: 'CAROUSEL', data: { cardWidth: 'SMALL' } }, `/data/cards: ${REQUIRED}`],
  ['cards that are no list', carousel({ 0: { title: 'A' } }), '/data/cards: must be an array'],
  ['a content', { ...carousel(twoCards({})), content: 'x' }, `/content: ${EMPTY}`],
  ['an empty content', { ...carousel(twoCards({})), content: '' }],
  ['a card with nothing', carousel([{ title: 'A' }, {}]), '/data/cards/1: must have at least one of title, content and imageUrl'],
  [
    'a card with buttons only',
    carousel([{ title: 'A' }, { buttons: [reply('b')] }]),
    '/data/cards/1: must have at least one of title, content and imageUrl',
  ],
  ['a card with five buttons', carousel(twoCards({ buttons: replies(5) })), `/data/cards/1/buttons: ${items(4)}`],
  ['a card with a title of 201', carousel(twoCards({ title: 'x'.repeat(201) })), `/data/cards/1/title: ${atMost(200)}`],
  ['a card with 2001 characters', carousel(twoCards({ content: 'x'.repeat(2001) })), `/data/cards/1/content: ${atMost(2000)}`],
  ['a card with an orientation', carousel(twoCards({ orientation: 'VERTICAL' })), `/data/cards/1/orientation: ${UNKNOWN}`],
  ['a card with a private image', carousel(twoCards({ imageUrl: 'https://10.0.0.1/a' })), `/data/cards/1/imageUrl: ${PUBLIC}`],
  [
    'tall cards in a small width',
    carousel(twoCards({ height: 'TALL' }), { cardWidth: 'SMALL' }),
    '/data/cards/1/height: must be SHORT or MEDIUM if cardWidth is SMALL',
  ],
  ['an unknown width', carousel(twoCards({}), { cardWidth: 'LARGE' }), '/data/cardWidth: must be one of SMALL, MEDIUM'],
  ['eleven buttons beside it', { ...carousel(twoCards({ buttons: [reply('c')] })), buttons: replies(11) }],
  ['twelve buttons beside it', { ...carousel(twoCards({})), buttons: replies(12) }, `/buttons: ${items(11)}`],
  [
    'the same id on two cards',
    carousel([
      { title: 'A', buttons: [reply('x')] },
      { title: 'B', buttons: [reply('x')] },
    ]),
    `/data/cards/1/buttons/0/id: ${UNIQUE}`,
  ],
  [
    'the same id on a card and beside it',
    { ...carousel(twoCards({ buttons: [reply('x')] })), buttons: [reply('x')] },
    `/data/cards/1/buttons/0/id: ${UNIQUE}`,
  ],
]

const CONTACTS_AND_PLACES: Case[] = [
  ['a contact with an empty organization', contact({ organization: '' }), `/data/organization: ${NOT_EMPTY}`],
  ['a contact with an organization of 201', contact({ organization: 'x'.repeat(201) }), `/data/organization: ${atMost(200)}`],
  ['a contact with an email address of 254', contact({ email: `${'x'.repeat(242)}@example.com` })],
  ['a contact with an email address of 255', contact({ email: `${'x'.repeat(243)}@example.com` }), `/data/email: ${atMost(254)}`],
  ['a contact with twelve buttons', contact({}, { buttons: replies(12) }), `/buttons: ${items(10)}`],
  ['a contact with eleven buttons', contact({}, { buttons: replies(11) }), `/buttons: ${items(10)}`],
  ['a contact', contact()],
  ['a contact with all', contact({ email: 'a@example.com', organization: 'Shop Ltd', url: 'http://example.com' }, { content: 'Call us' })],
  ['a contact without data', { type: 'CONTACT', content: 'x' }, `/data: ${REQUIRED}`],
  ['a contact without a name', { type: 'CONTACT', data: { phoneNumbers: ['+48500100200'] } }, `/data/name: ${REQUIRED}`],
  ['a contact with an empty name', contact({ name: '' }), `/data/name: ${NOT_EMPTY}`],
  ['a contact with a name of 201', contact({ name: 'x'.repeat(201) }), `/data/name: ${atMost(200)}`],
  ['a contact without a number', contact({ phoneNumbers: [] }), '/data/phoneNumbers: must have at least 1 item'],
  ['a contact with six numbers', contact({ phoneNumbers: Array(6).fill('+48500100200') }), `/data/phoneNumbers: ${items(5)}`],
  ['a contact with a number that is none', contact({ phoneNumbers: ['+48500100200', 'call me'] }), `/data/phoneNumbers/1: ${PHONE}`],
  ['a contact with a bad email address', contact({ email: 'a.example.com' }), '/data/email: must be an email address'],
  ['a contact with a bad URL', contact({ url: 'ftp://example.com' }), `/data/url: ${WEB}`],
  ['a contact with ten buttons and one number', contact({}, { buttons: replies(10) })],
  [
    'a contact with ten buttons and two numbers',
    contact({ phoneNumbers: ['+48500100200', '+48500100201'] }, { buttons: replies(10) }),
    '/buttons: must have at most 9 items: each phone number adds one',
  ],
  ['a contact that fills the text to the last character', contact({}, { content: 'x'.repeat(3072 - 2 - 17) })],
  [
    'a contact that is one character too long',
    contact({}, { content: 'x'.repeat(3072 - 2 - 16) }),
    ': is sent as one text of 3073 characters; content and data together must have at most 3072',
  ],
  ['a contact whose content alone is too long', contact({}, { content: 'x'.repeat(3073) }), `/content: ${atMost(3072)}`],
  ['a location', location()],
  ['a location with text and label', location({ label: 'x'.repeat(100) }, { content: 'Here' })],
  ['a location at the corners of the map', location({ latitude: -90, longitude: 180 })],
  ['a location at zero', location({ latitude: 0, longitude: 0 })],
  ['a location beyond the pole', location({ latitude: 90.0001 }), '/data/latitude: must be at most 90'],
  ['a location beyond the date line', location({ longitude: -180.5 }), '/data/longitude: must be at least -180'],
  ['a location as text', location({ latitude: '52' }), '/data/latitude: must be a number'],
  ['a location without a longitude', { type: 'LOCATION', data: { latitude: 5 } }, `/data/longitude: ${REQUIRED}`],
  ['a location with a label of 101', location({ label: 'x'.repeat(101) }), `/data/label: ${atMost(100)}`],
  ['a location with ten buttons', location({}, { buttons: replies(10) })],
  ['a location with eleven buttons', location({}, { buttons: replies(11) }), `/buttons: ${items(10)}`],
]

const NO_PHONES = [
  ...words('+48500100200;ext=5 tel:+48500100200 -48500100200 (48)500100200 +48500100200x'),
  ...['+48500100200 ext 5', '00 48 500 100 200', ''],
]

const BUTTONS: Case[] = [
  [
    'two ids that are the same number',
    text({
      buttons: [
        { ...reply('a'), id: 1 },
        { ...reply('a'), id: 1 },
      ],
    }),
    '/buttons/0/id: must be a string',
    '/buttons/1/id: must be a string',
  ],
  ['a URL of 2048 that lacks its last slash', withButton({ type: 'url', url: `https://example.com?${'a'.repeat(2028)}` })],
  [
    'a URL of emoji, short in characters and long once encoded',
    withButton({ type: 'url', url: `https://example.com/${'😀'.repeat(1100)}` }),
    `/buttons/0/url: ${ENCODED}`,
  ],
  ['a URL whose host has 5,000 letters', withButton({ type: 'url', url: `https://${'ą'.repeat(1900)}.com/` }), `/buttons/0/url: ${WEB}`],
  ...NO_PHONES.map(
    (phoneNumber): Case => [`a call to "${phoneNumber}"`, withButton({ type: 'call', phoneNumber }), `/buttons/0/phoneNumber: ${PHONE}`],
  ),
  ['eleven buttons', text({ buttons: replies(11) })],
  ['twelve buttons', text({ buttons: replies(12) }), `/buttons: ${items(11)}`],
  ['the same id twice', text({ buttons: [reply('a'), reply('A'), reply('a')] }), `/buttons/2/id: ${UNIQUE}`],
  ['no type', withButton({}), `/buttons/0/type: ${REQUIRED}`],
  ['an unknown type', withButton({ type: 'share' }), `/buttons/0/type: ${BUTTON_TYPES}`],
  ['no id', text({ buttons: [{ type: 'location', text: 'Go' }] }), `/buttons/0/id: ${REQUIRED}`],
  ['an empty id', text({ buttons: [reply('')] }), `/buttons/0/id: ${BUTTON_ID}`],
  ['an id with every kind of character', text({ buttons: [reply('aZ09._-')] })],
  ['an id of 64', text({ buttons: [reply('x'.repeat(64))] })],
  ['an id of 65', text({ buttons: [reply('x'.repeat(65))] }), `/buttons/0/id: ${BUTTON_ID}`],
  ['an id with a space', text({ buttons: [reply('a b')] }), `/buttons/0/id: ${BUTTON_ID}`],
  ['an id with a line break at its end', text({ buttons: [reply('a\n')] }), `/buttons/0/id: ${BUTTON_ID}`],
  ['an id with an accent', text({ buttons: [reply('ą')] }), `/buttons/0/id: ${BUTTON_ID}`],
  ['an id that is a number', text({ buttons: [{ ...reply('a'), id: 1 }] }), '/buttons/0/id: must be a string'],
  ['no label', text({ buttons: [{ id: 'a', type: 'location' }] }), `/buttons/0/text: ${REQUIRED}`],
  ['an empty label', withButton({ type: 'location', text: '' }), `/buttons/0/text: ${NOT_EMPTY}`],
  ['a label of 25 emoji', withButton({ type: 'location', text: '😀'.repeat(25) })],
  ['a label of 26', withButton({ type: 'location', text: 'x'.repeat(26) }), `/buttons/0/text: ${atMost(25)}`],
  ['NUL in a label', withButton({ type: 'location', text: 'a\0' }), `/buttons/0/text: ${NUL}`],
  ['a URL', withButton({ type: 'url', url: 'http://example.com' })],
  ['a URL on a local host, which the phone may well reach', withButton({ type: 'url', url: 'http://192.168.0.1:8080/x?y#z' })],
  ['a URL with other letters', withButton({ type: 'url', url: 'https://żółw.example/ą?b=ć' })],
  ['no URL', withButton({ type: 'url' }), `/buttons/0/url: ${REQUIRED}`],
  ['a URL by another scheme', withButton({ type: 'url', url: 'javascript:alert(1)' }), `/buttons/0/url: ${WEB}`],
  ['a URL without a scheme', withButton({ type: 'url', url: 'example.com' }), `/buttons/0/url: ${WEB}`],
  ['a URL without a host', withButton({ type: 'url', url: 'https:///x' }), `/buttons/0/url: ${WEB}`],
  ['a URL with a space', withButton({ type: 'url', url: 'https://example.com/a b' }), `/buttons/0/url: ${WEB}`],
  ['an empty URL', withButton({ type: 'url', url: '' }), `/buttons/0/url: ${WEB}`],
  ['a URL of 2048', withButton({ type: 'url', url: `https://example.com/${'a'.repeat(2028)}` })],
  ['a URL of 2049', withButton({ type: 'url', url: `https://example.com/${'a'.repeat(2029)}` }), `/buttons/0/url: ${atMost(2048)}`],
  ['a URL too long once encoded', withButton({ type: 'url', url: `https://example.com/${'ą'.repeat(400)}` }), `/buttons/0/url: ${ENCODED}`],
  ['a URL with a payload', withButton({ type: 'url', url: 'https://example.com', payload: 'x' }), `/buttons/0/payload: ${notOf('url')}`],
  ['no payload', withButton({ type: 'quick_reply' }), `/buttons/0/payload: ${REQUIRED}`],
  ['an empty payload', withButton({ type: 'quick_reply', payload: '' }), `/buttons/0/payload: ${NOT_EMPTY}`],
  ['a payload of 2048', withButton({ type: 'quick_reply', payload: 'x'.repeat(2048) })],
  ['a payload of 2049', withButton({ type: 'quick_reply', payload: 'x'.repeat(2049) }), `/buttons/0/payload: ${atMost(2048)}`],
  [
    'a reply with a URL',
    withButton({ type: 'quick_reply', payload: 'x', url: 'https://example.com' }),
    `/buttons/0/url: ${notOf('quick_reply')}`,
  ],
  ['a call', withButton({ type: 'call', phoneNumber: '+48 500 100 200' })],
  ['a call by bare digits', withButton({ type: 'call', phoneNumber: '48500100200' })],
  ['a call to nobody', withButton({ type: 'call' }), `/buttons/0/phoneNumber: ${REQUIRED}`],
  ['a call to a word', withButton({ type: 'call', phoneNumber: 'mum' }), `/buttons/0/phoneNumber: ${PHONE}`],
  ['a call to a number too short', withButton({ type: 'call', phoneNumber: '+4812' }), `/buttons/0/phoneNumber: ${PHONE}`],
  ['a call to a number too long', withButton({ type: 'call', phoneNumber: '+4850010020012345' }), `/buttons/0/phoneNumber: ${PHONE}`],
  ['a call to a country that is none', withButton({ type: 'call', phoneNumber: '+999500100200' }), `/buttons/0/phoneNumber: ${PHONE}`],
  ['a call to a number', withButton({ type: 'call', phoneNumber: 48500100200 }), '/buttons/0/phoneNumber: must be a string'],
]

const DATES_AND_TARGETS: Case[] = [
  ['an event with an empty title', calendar({ title: '' }), `/buttons/0/title: ${NOT_EMPTY}`],
  ['an event', calendar({ description: 'x'.repeat(500) })],
  ['an event in two zones', calendar({ startTime: '2026-12-01T10:00:00+02:00', endTime: '2026-12-01T08:00:00.001Z' })],
  ['an event that ends as it begins', calendar({ endTime: '2026-12-01T10:00:00Z' }), '/buttons/0/endTime: must be later than startTime'],
  [
    'an event that ends before, by its zone',
    calendar({ startTime: '2026-12-01T10:00:00Z', endTime: '2026-12-01T11:00:00+02:00' }),
    '/buttons/0/endTime: must be later than startTime',
  ],
  ['a time without a zone', calendar({ startTime: '2026-12-01T10:00:00' }), `/buttons/0/startTime: ${TIME}`],
  ['a day that does not exist', calendar({ startTime: '2026-02-30T10:00:00Z' }), `/buttons/0/startTime: ${TIME}`],
  ['a time that does not exist', calendar({ endTime: '2026-12-01T24:00:00Z' }), `/buttons/0/endTime: ${TIME}`],
  ['a time as a number', calendar({ startTime: 1796119200 }), '/buttons/0/startTime: must be a string'],
  ['an event without a title', calendar({ title: undefined }), `/buttons/0/title: ${REQUIRED}`],
  ['an event with a title of 101', calendar({ title: 'x'.repeat(101) }), `/buttons/0/title: ${atMost(100)}`],
  ['an event with a description of 501', calendar({ description: 'x'.repeat(501) }), `/buttons/0/description: ${atMost(500)}`],
  ['an event without an end', calendar({ endTime: undefined }), `/buttons/0/endTime: ${REQUIRED}`],
  ['a request for the recipient’s location', withButton({ type: 'location' })],
  ['a location on the map', withButton({ type: 'location', latitude: 52.2, longitude: 21, label: 'Shop' })],
  ['a latitude alone', withButton({ type: 'location', latitude: 52.2 }), `/buttons/0: ${BOTH_COORDINATES}`],
  ['a longitude alone', withButton({ type: 'location', longitude: 52.2, label: 'Shop' }), `/buttons/0: ${BOTH_COORDINATES}`],
  ['a label alone', withButton({ type: 'location', label: 'Shop' }), '/buttons/0/label: requires latitude and longitude'],
  ['a location off the map', withButton({ type: 'location', latitude: 91, longitude: 21 }), '/buttons/0/latitude: must be at most 90'],
  ['a template', withButton({ type: 'trigger_template', templateId: 5 })],
  ['no template', withButton({ type: 'trigger_template' }), `/buttons/0/templateId: ${REQUIRED}`],
  ['template 0', withButton({ type: 'trigger_template', templateId: 0 }), '/buttons/0/templateId: must be at least 1'],
  ['a template as text', withButton({ type: 'trigger_template', templateId: '5' }), '/buttons/0/templateId: must be a whole number'],
  ['half a template', withButton({ type: 'trigger_template', templateId: 1.5 }), '/buttons/0/templateId: must be a whole number'],
  [
    'a template beyond what JSON carries exactly',
    withButton({ type: 'trigger_template', templateId: 2 ** 53 }),
    '/buttons/0/templateId: must be at most 9007199254740991',
  ],
]

// Just outside of each reserved range, and names that only look local.
const PUBLIC_URLS = words(`
  https://example.com HTTPS://EXAMPLE.COM/a https://cdn.example.com:8443/a.png?x=1#y https://8.8.8.8/a https://[2606:4700::1111]/a
  https://shop.example/ą.jpg https://internal.example.com/a https://example.com./a https://172.15.0.1/ https://172.32.0.1/
  https://100.63.0.1/ https://100.128.0.1/ https://198.17.0.1/ https://198.20.0.1/ https://192.0.1.1/ https://192.167.1.1/
  https://192.169.1.1/ https://126.0.0.1/ https://128.0.0.1/ https://169.253.0.1/ https://223.255.255.1/ https://[2003::1]/
  https://a_b.example.com/ https://${'x'.repeat(63)}.com/`)
const NO_HTTPS_URLS = [
  ...words(`http://example.com/a ftp://example.com/a data:image/png;base64,AA== //example.com/a https:example.com https:/example.com https://
    https:///a https:\\\\example.com https://exa%00mple.com https://example.com:99999/a https://[::1/a`),
  ...[' https://example.com/a', 'https://example.com/a b', 'https://exam\nple.com/a', 'https://ex ample.com', ''],
]
const CREDENTIALS_BEFORE_HOST = words('user@ user:secret@ @ :@ :secret@')
// Addresses of every reserved range, in every spelling that a URL parser accepts, and local names.
const PRIVATE_HOSTS = words(`
  10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 127.0.0.1 127.255.0.9 169.254.169.254 0.0.0.0 100.64.0.1 198.18.0.1 192.0.2.1
  203.0.113.9 224.0.0.1 255.255.255.255
  2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.1 127.0.1 0 0x0 3232235777 0xA9FEA9FE 127.0.0.1. 1２7.0.0.1 127%2e0.0.1
  ①②⑦.0.0.1
  [::1] [::] [fe80::1] [fc00::1] [fd12:3456::1] [ff02::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:10.0.0.1] [::127.0.0.1]
  [64:ff9b::10.0.0.1] [2002:7f00:1::] [2001::1] [2001:db8::1] [100::1]
  localhost LOCALHOST localhost. a.localhost intranet printer.local a.b.LOCAL. db.internal metadata.google.internal ⓛocalhost a..com`)

const ADDRESSES: Case[] = [
  ...PUBLIC_URLS.map((address): Case => [address, image(address)]),
  ...NO_HTTPS_URLS.map((address): Case => [JSON.stringify(address), image(address), `/data/imageUrl: ${HTTPS}`]),
  ...CREDENTIALS_BEFORE_HOST.map((user): Case => [`user ${user}`, image(`https://${user}example.com/a`), `/data/imageUrl: ${CREDENTIALS}`]),
  ...PRIVATE_HOSTS.map((host): Case => [`https://${host}/a`, image(`https://${host}/a`), `/data/imageUrl: ${PUBLIC}`]),
  ['an address of 2048', image(`https://example.com/${'a'.repeat(2028)}`)],
  ['an address of 2049', image(`https://example.com/${'a'.repeat(2029)}`), `/data/imageUrl: ${atMost(2048)}`],
  ['an address that is all wrong', image('https://me@10.0.0.1/a'), `/data/imageUrl: ${CREDENTIALS}`, `/data/imageUrl: ${PUBLIC}`],
]

const BASIC: Case[] = [
  ['a text of 160 bytes', text({ content: 'a'.repeat(160) })],
  ['a text of 161 bytes', text({ content: 'a'.repeat(161) }), '/content: has 161 bytes in UTF-8; Basic mode allows 160'],
  ['80 letters of two bytes', text({ content: 'ą'.repeat(80) })],
  ['81 letters of two bytes', text({ content: 'ą'.repeat(81) }), '/content: has 162 bytes in UTF-8; Basic mode allows 160'],
  ['53 euro signs and a letter', text({ content: `${'€'.repeat(53)}a` })],
  ['54 euro signs', text({ content: '€'.repeat(54) }), '/content: has 162 bytes in UTF-8; Basic mode allows 160'],
  ['40 emoji', text({ content: '😀'.repeat(40) })],
  ['41 emoji', text({ content: '😀'.repeat(41) }), '/content: has 164 bytes in UTF-8; Basic mode allows 160'],
  ['empty buttons and data', text({ buttons: [], data: {} })],
  ['a button', text({ buttons: replies(1) }), '/buttons: must be empty or absent in Basic mode'],
  ['a card', card(), '/type: must be MESSAGE in Basic mode'],
  ['an audio', file('AUDIO', { audioUrl: url }), '/type: must be MESSAGE in Basic mode'],
  ['no type', { content: 'x' }, `/type: ${REQUIRED}`],
]

export const CASES: Record<string, Case[]> = {
  'a message': GENERAL,
  'a text': TEXTS,
  'audio, video or a file': FILES,
  'a card': CARDS,
  'a carousel': CAROUSELS,
  'a contact or location': CONTACTS_AND_PLACES,
  'a button': BUTTONS,
  'a calendar, location or template button': DATES_AND_TARGETS,
  'the address of a file': ADDRESSES,
  'in Basic mode': BASIC,
}
