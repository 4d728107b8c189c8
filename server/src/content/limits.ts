// The limits of the RCS Business Messaging platform. Lengths are in Unicode code points unless they say bytes.

export const TEXT_MAX_LENGTH = 3072
export const CARD_TEXT_MAX_LENGTH = 2000
export const CARD_TITLE_MAX_LENGTH = 200

/** The limits for buttons below a message and on a card. */
export const MAX_BUTTONS = 11
export const MAX_CARD_BUTTONS = 4

export const MAX_PHONE_NUMBERS = 5

/** In UTF-8. Networks also bill a text of at most this length, without buttons, as a basic message. */
export const BASIC_MAX_BYTES = 160
