import { readFileSync, writeFileSync } from 'node:fs'

// Takes the drawings that the console uses from lucide-static (67 MB, which nobody else should install), and writes src/kit/icons.ts:
//   npm install --no-save lucide-static@1.62.0 && node console/scripts/icons.ts && npm run format
// Each drawing becomes one path with a tenth of a unit: at 16 pixels, finer parts can't be seen.

const NAMES = `arrow-left arrow-right audio-lines ban bot building-2 calendar-plus chart-column check
chevron-left chevron-right chevrons-up-down circle-alert circle-dot circle-plus circle-x clock code compass copy
download ellipsis-vertical external-link eye file-text hand heart-pulse history house image info
key-round layout-template link list log-out map-pin megaphone menu message-circle-reply message-square mic
mouse-pointer-click pause pencil phone play plus power radio-tower refresh-cw rotate-ccw search send
shield-check smartphone trash-2 triangle-alert undo-2 upload user-round users video
webhook x`.split(/\s+/)

const FOLDER = process.argv[2] ?? 'node_modules/lucide-static/icons'

type Attributes = Record<string, string>

/** The numbers of a path, with a tenth of a unit, and without the characters that it does not need. */
function short(path: string): string {
  return path.replace(/([a-zA-Z])([^a-zA-Z]*)/g, (_, command: string, text: string) => {
    const numbers = numbersOf(command, text)
    // A line of no points, before another command.
    if (numbers.length === 0 && command === 'l') return ''
    return command + numbers.map(rounded).reduce(joined, '')
  })
}

/** The two flags of an arc may stand without a space before the next number. */
function numbersOf(command: string, text: string): number[] {
  const numbers: number[] = []
  for (let rest = text; ; ) {
    const isFlag = /a/i.test(command) && [3, 4].includes(numbers.length % 7)
    const match = (isFlag ? /^[\s,]*([01])/ : /^[\s,]*(-?(?:\d+\.?\d*|\.\d+))/).exec(rest)
    if (match === null) return numbers
    numbers.push(Number(match[1]))
    rest = rest.slice(match[0].length)
  }
}

const rounded = (value: number) => String(Math.round(value * 10) / 10 || 0).replace(/^(-?)0\./, '$1.')

const joined = (path: string, number: string) => (path === '' || number.startsWith('-') ? path + number : `${path} ${number}`)

const ellipse = (cx: number, cy: number, rx: number, ry: number) =>
  `M${cx - rx} ${cy}a${rx} ${ry} 0 1 0 ${2 * rx} 0 ${rx} ${ry} 0 1 0 ${-2 * rx} 0`

function pathOf(tag: string, attributes: Attributes): string {
  const [x1, y1, x2, y2, cx, cy, r, x, y, width, height] = 'x1 y1 x2 y2 cx cy r x y width height'
    .split(' ')
    .map((name) => Number(attributes[name] ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const rx = Number(attributes.rx ?? 0)
  switch (tag) {
    case 'path':
      // Within one path, a relative start would begin at the end of the shape before. The points after it stay relative.
      return (attributes.d as string).replace(/^m(-?[\d.]+[ ,]?-?[\d.]+)/, 'M$1l')
    case 'line':
      return `M${x1} ${y1}L${x2} ${y2}`
    case 'circle':
      return ellipse(cx, cy, r, r)
    case 'ellipse':
      return ellipse(cx, cy, rx, Number(attributes.ry))
    case 'rect': {
      // The line itself rounds its corners by one.
      if (rx <= 1) return `M${x} ${y}h${width}v${height}h${-width}z`
      const [wide, high, corner] = [width - 2 * rx, height - 2 * rx, `a${rx} ${rx} 0 0 1`]
      return `M${x + rx} ${y}h${wide}${corner} ${rx} ${rx}v${high}${corner} ${-rx} ${rx}h${-wide}${corner} ${-rx} ${-rx}v${-high}${corner} ${rx} ${-rx}`
    }
    default:
      throw new Error(`a drawing has the shape ${tag}, which this script does not know`)
  }
}

const icons = Object.fromEntries(
  NAMES.map((name) => {
    const svg = readFileSync(`${FOLDER}/${name}.svg`, 'utf8')
    const shapes = [...svg.matchAll(/<(path|circle|rect|line|polyline|polygon|ellipse)\s([^>]*?)\/>/g)]
    const attributesOf = (text: string) =>
      Object.fromEntries([...text.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key as string, value as string]))
    return [name, shapes.map(([, tag = '', text = '']) => short(pathOf(tag, attributesOf(text)))).join('')]
  }),
)
const head = `// Made by scripts/icons.ts from lucide-static 1.62.0 (ISC licence, https://lucide.dev/license). Each is a path.\n`
writeFileSync('console/src/kit/icons.ts', `${head}export const ICONS = ${JSON.stringify(icons, null, 2)} as const\n`)
