import { count } from './numbers.ts'

// The words of the drawn phones.

export const drawn = { android: 'Android phone', iphone: 'iPhone' }
export const messages = (shown: number) => `The phone shows ${count(shown, 'message')}`
export const onAndroid = 'Messages, as Android shows them'
export const onIPhone = 'Messages, as an iPhone shows them (approximation)'
export const verified = 'verified'
export const video = 'Video'
export const file = 'File'
export const carousel = (cards: number) => `Carousel of ${count(cards, 'card')}`
export const options = 'Options'
export const channel = (channel: string) => `Text Message · ${channel}`
export const smsAt = (at: string | undefined) => (at === undefined ? 'SMS' : `${at} · SMS`)
export const writeRcs = 'RCS message'
export const writeSms = 'Text message'
export const cutHere = 'cut here; a tap shows all'
export const cutAfter = (lines: number) => `cut after ${lines} lines`
export const linkPreview = 'Link preview'
export const stillGif = 'GIFs do not move here'
