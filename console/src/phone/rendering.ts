/**
 * What the two messaging apps do with the same content. If an app changes, change it here.
 *
 * - Heights 112/168/264 dp; an image of another ratio is zoomed and cut from its middle: Google, guides/learn/rich-cards (2026).
 * - Widths 180/296 dp and maximum heights 542/592 dp: copies of Google's guide from 2025 on. Its API reference still says 120/232.
 * - The image of a horizontal card is 128 dp wide: AWS End User Messaging, RCS rich cards.
 * - iPhone: all cards have one height, and GIFs do not move (Infobip, behaviors-and-guidance). Title and text have six lines together; several
 *   actions of a card fold into a menu; below a message, more than two actions fold behind "Options", and replies stay a list (Postscript,
 *   iOS 26.2).
 */
export const ANDROID = {
  mediaHeightDp: { SHORT: 112, MEDIUM: 168, TALL: 264 },
  carouselWidthDp: { SMALL: 180, MEDIUM: 296 },
  carouselMaxHeightDp: { SMALL: 542, MEDIUM: 592 },
  /** As many lines of 20 dp as a card of the maximum height has room for, without its media and buttons. */
  carouselMaxLines: 27,
  horizontalMediaDp: 128,
} as const

export const IPHONE = {
  /** Google's guide for both platforms (iOS 18.4): 3:2, with what matters inside 16:9. */
  mediaRatio: 3 / 2,
  carouselMediaRatio: 4 / 3,
  cardLines: 6,
  cardActionsBeforeMenu: 1,
  actionsBeforeMenu: 2,
} as const
