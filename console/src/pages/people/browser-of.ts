import * as sessionWords from '../../words/en-sessions.ts'

// The first that fits: Edge and Opera also name Chrome, and all of them name Safari.
const BROWSERS: Record<string, RegExp> = { Edge: /Edg/, Opera: /OPR/, Firefox: /Firefox|FxiOS/, Chrome: /Chrom|CriOS/, Safari: /Safari/ }

/** A browser as people call it, from what it says about itself. The whole text says more than most people want to read. */
export function browserOf(userAgent: string): string {
  const browser = Object.keys(BROWSERS).find((name) => BROWSERS[name]?.test(userAgent))
  return (browser ?? userAgent.split(/[ /]/)[0]) || sessionWords.unknown
}
