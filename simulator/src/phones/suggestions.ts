/** A button as a phone shows it. */
export type Suggestion = { kind: 'reply' | 'action'; text: string; postbackData: string }

type Json = Record<string, unknown>

/** Returns all buttons of a valid message: first the chips under it, then the buttons of its cards, in their order. */
export function suggestionsOf(agentMessage: { contentMessage: Json }): Suggestion[] {
  const content = agentMessage.contentMessage
  const richCard = content.richCard as { standaloneCard?: { cardContent: Json }; carouselCard?: { cardContents: Json[] } } | undefined
  const cards = richCard?.carouselCard?.cardContents ?? (richCard?.standaloneCard ? [richCard.standaloneCard.cardContent] : [])
  return [content, ...cards].flatMap((part) => ((part.suggestions ?? []) as Json[]).map(readSuggestion))
}

function readSuggestion(suggestion: Json): Suggestion {
  const kind = suggestion.reply ? 'reply' : 'action'
  const { text, postbackData } = suggestion[kind] as { text: string; postbackData: string }
  return { kind, text, postbackData }
}

/** The button with this postback, this text or this index, in that order of precedence. */
export function findSuggestion(suggestions: Suggestion[], button: string | number): Suggestion | undefined {
  if (typeof button === 'number') return suggestions[button]
  return suggestions.find(({ postbackData }) => postbackData === button) ?? suggestions.find(({ text }) => text === button)
}
