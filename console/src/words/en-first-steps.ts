// The words of the first steps of the overview.

export const label = 'The first steps'
export const noAgent = 'All agents in the simulated network are inactive.'
export const done = 'done'
export const send = 'Send to a phone on this page'
export const sendHint = 'A card with buttons. No real phone gets it.'
export const sendNow = 'Send a first message'
export const tap = 'Tap a button'
export const tapHint = 'Be the recipient.'
export const webhook = 'Add a webhook endpoint'
export const webhookHint = 'Your server gets every event.'
export const sendRealHint = 'Messages of this account go to real phones. Begin with your own number.'
