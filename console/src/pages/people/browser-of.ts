import * as sessionWords from '../../words/en-sessions.ts'

// The first that fits: Edge and Opera also name Chrome, and all of them name Safari.
const BROWSERS: Record<string, RegExp> = { Edge: /Edg/, Opera: /OPR/, Firefox: /Firefox|FxiOS/, Chrome: /Chrom|CriOS/, Safari: /Safari/ }

// Android names Linux, and an iPhone names Mac OS X.
const SYSTEMS: Record<string, RegExp> = {
  Windows: /Windows/,
  Android: /Android/,
  iPhone: /iPhone/,
  iPad: /iPad/,
  macOS: /Mac OS X/,
  Linux: /Linux/,
}

const nameIn = (names: Record<string, RegExp>, userAgent: string) => Object.keys(names).find((name) => names[name]?.test(userAgent))

/** A browser as people call it, from what it says about itself. The whole text says more than most people want to read. */
export function browserOf(userAgent: string): string {
  const browser = (nameIn(BROWSERS, userAgent) ?? userAgent.split(/[ /]/)[0]) || sessionWords.unknown
  const system = nameIn(SYSTEMS, userAgent)
  return system === undefined ? browser : sessionWords.browserOn(browser, system)
}
