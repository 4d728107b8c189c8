/** Check an id that a caller sent against this before it goes to PostgreSQL, which fails a statement on any other text. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The campaign of a queue entry or a counter that has none. Null would not compare equal. */
export const NO_CAMPAIGN = '00000000-0000-0000-0000-000000000000'
