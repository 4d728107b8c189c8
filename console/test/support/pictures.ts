import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { type BuiltFiles, bundlePage } from '../../build.ts'
import type { Platform } from '../../src/phone/drawn.ts'
import { openPage } from './browser.ts'

// Draws the sheets of console/pictures in the browser, and compares them there. Nothing comes from a network: every request gets its response here.

const HOST = 'http://pictures.test'
const FOLDER = fileURLToPath(new URL('../../pictures/', import.meta.url))
const TYPES: Record<string, string> = { css: 'text/css', js: 'text/javascript', woff2: 'font/woff2' }
const TULIP = `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="400"><rect width="600" height="400" fill="#f6c9d6"/>
  <path d="M300 330V180" stroke="#2e8b57" stroke-width="18"/><path d="M240 100l30 40 30-50 30 50 30-40v50a60 60 0 0 1-120 0z" fill="#d6336c"/></svg>`

export type Sheet = { platform: Platform; isDark: boolean }

export const fileOf = ({ platform, isDark }: Sheet) => `${FOLDER}${platform}-${isDark ? 'dark' : 'light'}.png`

let bundling: Promise<BuiltFiles> | undefined

async function respond(url: URL): Promise<{ status?: number; contentType: string; body: Buffer | string }> {
  if (url.pathname.endsWith('/media')) {
    const isBroken = url.search.includes('broken')
    return isBroken ? { status: 404, contentType: 'text/plain', body: '' } : { contentType: 'image/svg+xml', body: TULIP }
  }
  if (url.pathname === '/compare') return { contentType: 'text/html', body: '<!doctype html><title>Compare</title>' }
  bundling ??= bundlePage(`${FOLDER}main.tsx`)
  const files = await bundling
  const name = url.pathname.replace(/^\/(?:console\/)?/, '')
  const file = files.get(name)
  if (file === undefined) return { status: 204, contentType: 'text/plain', body: '' }
  return { contentType: TYPES[name.split('.').at(-1) ?? ''] ?? 'text/html', body: Buffer.from(file) }
}

export type Cell = { name: string; x: number; y: number; width: number; height: number }
export type Drawing = { png: Buffer; cells: Cell[] }

/** Draws a sheet. `change`: changes the page before. */
export async function drawSheet({ platform, isDark }: Sheet, change: (page: Page) => Promise<void> = async () => {}): Promise<Drawing> {
  const { page, close } = await openPage({ base: HOST, isDark, width: 2100, height: 1000 })
  await page.route(`${HOST}/**`, async (route) => await route.fulfill(await respond(new URL(route.request().url()))))
  await page.goto(platform === 'iphone' ? '/?iphone' : '/')
  await page.locator('[data-cell="a conversation"]').waitFor()
  await page.evaluate('Promise.all([document.fonts.ready, ...[...document.images].map((image) => image.decode().catch(() => {}))])')
  await page.locator('.ph-broken').first().waitFor()
  await change(page)
  const cells = await page.evaluate<Cell[]>(`[...document.querySelectorAll('[data-cell]')].map((cell) => {
    const { x, y, width, height } = cell.getBoundingClientRect()
    return { name: cell.dataset.cell, x: Math.floor(x), y: Math.floor(y), width: Math.ceil(width), height: Math.ceil(height) }
  })`)
  const png = await page.screenshot({ fullPage: true })
  await close()
  return { png, cells }
}

// Runs in the browser. Two pixels differ if a channel differs by more than a tenth, which another rounding of an edge does not reach.
const IN_BROWSER = `
  const pixelsOf = async (base64) => {
    const response = await fetch('data:application/octet-stream;base64,' + base64)
    const image = await createImageBitmap(new Blob([await response.arrayBuffer()]))
    const canvas = new OffscreenCanvas(image.width, image.height)
    const context = canvas.getContext('2d')
    context.drawImage(image, 0, 0)
    return { width: image.width, height: image.height, data: context.getImageData(0, 0, image.width, image.height).data }
  }
  const isDifferent = (one, other, at) => [0, 1, 2].some((channel) => Math.abs(one[at + channel] - other[at + channel]) > 26)
`

async function inBrowser<T>(script: string, argument: unknown): Promise<T> {
  const { page, close } = await openPage({ base: HOST })
  await page.route(`${HOST}/**`, async (route) => await route.fulfill(await respond(new URL(route.request().url()))))
  await page.goto('/compare')
  const result = await page.evaluate(`(async (argument) => { ${IN_BROWSER} ${script} })(${JSON.stringify(argument)})`)
  await close()
  return result as T
}

/** The share of pixels that differ from the stored sheet, by cell; undefined if the sheet is missing or has another size. */
export async function compareSheet(sheet: Sheet, { png, cells }: Drawing): Promise<Map<string, number> | undefined> {
  if (!existsSync(fileOf(sheet))) return undefined
  const stored = readFileSync(fileOf(sheet)).toString('base64')
  const script = `
    const [drawn, stored] = [await pixelsOf(argument.drawn), await pixelsOf(argument.stored)]
    if (drawn.width !== stored.width || drawn.height !== stored.height) return null
    return argument.cells.map(({ name, x, y, width, height }) => {
      let count = 0
      for (let row = y; row < y + height; row++)
        for (let column = x; column < x + width; column++)
          if (isDifferent(drawn.data, stored.data, (row * drawn.width + column) * 4)) count++
      return [name, count / (width * height)]
    })`
  const shares = await inBrowser<[string, number][] | null>(script, { drawn: png.toString('base64'), stored, cells })
  return shares === null ? undefined : new Map(shares)
}

/** The share of pixels that differ between two pictures; 1 if they have different sizes. */
export async function differentShare(one: Buffer, other: Buffer): Promise<number> {
  const script = `
    const [one, other] = [await pixelsOf(argument.one), await pixelsOf(argument.other)]
    if (one.width !== other.width || one.height !== other.height) return 1
    let count = 0
    for (let at = 0; at < one.data.length; at += 4) if (isDifferent(one.data, other.data, at)) count++
    return count / (one.width * one.height)`
  return await inBrowser<number>(script, { one: one.toString('base64'), other: other.toString('base64') })
}
