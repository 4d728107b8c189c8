/** A time axis. Long gaps in which nothing happened are cut, so that a receipt after three hours leaves the first second legible. */
export type Axis = {
  /** Where a time is, from 0 to 1. */
  x: (atMs: number) => number
  marks: { atMs: number; sinceStartMs: number }[]
  cuts: { fromMs: number; toMs: number }[]
}

/** Shorter gaps are never cut. */
const SHORTEST_CUT_MS = 30_000
/** A gap is cut if it is longer than everything else together, by this factor. */
const CUT_FACTOR = 4
const MAX_CUTS = 3
const CUT_WIDTH = 0.14
/** Room for the last dot. */
const END = 0.985
const MARKS = 5
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 30e3, 60e3, 120e3, 300e3, 600e3, 1800e3, 3600e3, 7200e3, 21600e3, 86400e3,
]

type Gap = { fromMs: number; toMs: number; isCut: boolean }

const lengthOf = ({ fromMs, toMs }: Gap) => toMs - fromMs
const total = (gaps: Gap[]) => gaps.reduce((sum, gap) => sum + lengthOf(gap), 0)

export function axisOf(times: number[]): Axis {
  const sorted = [...new Set(times)].sort((a, b) => a - b)
  const gaps = sorted.slice(1).map((toMs, index): Gap => ({ fromMs: sorted[index] as number, toMs, isCut: false }))
  cutLongest(gaps)
  const startMs = sorted[0] ?? 0
  const cuts = gaps.filter(({ isCut }) => isCut)
  const shownMs = total(gaps.filter(({ isCut }) => !isCut))
  return {
    x: positionsOf(gaps, startMs, shownMs === 0 ? 0 : (END - cuts.length * CUT_WIDTH) / shownMs),
    marks: marksOf(gaps, startMs, shownMs),
    cuts: cuts.map(({ fromMs, toMs }) => ({ fromMs, toMs })),
  }
}

function cutLongest(gaps: Gap[]): void {
  for (let cut = 0; cut < MAX_CUTS; cut += 1) {
    const uncut = gaps.filter(({ isCut }) => !isCut).sort((a, b) => lengthOf(b) - lengthOf(a))
    const [longest, ...others] = uncut
    if (longest === undefined || lengthOf(longest) < SHORTEST_CUT_MS || total(others) === 0) return
    if (lengthOf(longest) <= CUT_FACTOR * total(others)) return
    longest.isCut = true
  }
}

function positionsOf(gaps: Gap[], startMs: number, perMs: number): Axis['x'] {
  let x = 0
  const pieces = gaps.map((gap) => {
    const width = gap.isCut ? CUT_WIDTH : lengthOf(gap) * perMs
    const piece = { ...gap, fromX: x, width }
    x += width
    return piece
  })
  return (atMs) => {
    const piece = pieces.find(({ toMs }) => atMs <= toMs) ?? pieces.at(-1)
    if (piece === undefined || atMs <= startMs) return 0
    return piece.fromX + (Math.min(atMs, piece.toMs) - piece.fromMs) * (piece.width / lengthOf(piece))
  }
}

/** Round times in the part before the first cut, and the time after each cut. */
function marksOf(gaps: Gap[], startMs: number, shownMs: number): Axis['marks'] {
  const firstCut = gaps.findIndex(({ isCut }) => isCut)
  const endMs = (firstCut === -1 ? gaps.at(-1)?.toMs : gaps[firstCut]?.fromMs) ?? startMs
  const every = STEPS.find((step) => step >= shownMs / MARKS) ?? shownMs / MARKS
  const rounds = Array.from({ length: every === 0 ? 1 : Math.floor((endMs - startMs) / every) + 1 }, (_, index) => startMs + index * every)
  const afterCuts = gaps.filter(({ isCut }) => isCut).map(({ toMs }) => toMs)
  return [...rounds, ...afterCuts].map((atMs) => ({ atMs, sinceStartMs: atMs - startMs }))
}
