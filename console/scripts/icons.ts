import { readFileSync, writeFileSync } from 'node:fs'

// Takes the drawings that the console uses from lucide-static (67 MB, which nobody else should install), and writes src/kit/icons.ts:
//   npm install --no-save lucide-static@1.62.0 && node console/scripts/icons.ts && npm run format

const NAMES = `arrow-left arrow-right audio-lines ban bot building-2 calendar-plus check chevron-left chevron-right chevrons-up-down
circle-alert circle-dot circle-plus circle-x clock code compass copy corner-down-right ellipsis-vertical external-link eye file-text hand
history house image-off info key-round link list log-out map-pin menu message-circle-reply message-square mic mouse-pointer-click pause
phone play plus power radio-tower refresh-cw rotate-ccw search send shield-check smartphone sparkles timer trash-2 triangle-alert video
webhook wifi-off x zap`.split(/\s+/)

const FOLDER = process.argv[2] ?? 'node_modules/lucide-static/icons'

const icons = Object.fromEntries(
  NAMES.map((name) => {
    const svg = readFileSync(`${FOLDER}/${name}.svg`, 'utf8')
    const shapes = [...svg.matchAll(/<(path|circle|rect|line|polyline|polygon|ellipse)\s([^>]*?)\/>/g)]
    const attributesOf = (text: string) =>
      Object.fromEntries([...text.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]))
    return [name, shapes.map(([, tag, text = '']) => [tag, attributesOf(text)])]
  }),
)
const head = '// Made by scripts/icons.ts from lucide-static 1.62.0 (ISC licence, https://lucide.dev/license).\n'
writeFileSync('console/src/kit/icons.ts', `${head}export const ICONS = ${JSON.stringify(icons)} as const\n`)
