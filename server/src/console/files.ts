import { extname } from 'node:path'
import { pageHeaders, type SendFile, staticFile } from '../http/static-file.ts'
import { readBuilt } from './built.ts'

/** The console talks to this service and to no other host. */
export const HEADERS = pageHeaders(["img-src 'self' data:", "font-src 'self'", "connect-src 'self'"])

const TYPES: Record<string, string> = {
  '': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

type Files = Map<string, SendFile>

/** Anybody can request the console, so a build that fails is not repeated for each request. */
const RETRY_AFTER_MS = 10_000

/**
 * Loads the files of the console, by their path below /console: those of `npm run build` if they are current, and otherwise bundled from the
 * sources, which takes a fraction of a second. Nothing is loaded before the first request. After a failure, requests get the same error for
 * 10 s; then the next request tries again.
 */
export function createConsoleFiles(load = loadFiles, now = () => performance.now()): () => Promise<Files> {
  let loading: Promise<Files> | undefined
  let failedAt: number | undefined
  return async () => {
    if (failedAt !== undefined && now() - failedAt >= RETRY_AFTER_MS) loading = failedAt = undefined
    loading ??= load().catch((error: unknown) => {
      failedAt = now()
      throw error
    })
    return await loading
  }
}

async function loadFiles(): Promise<Files> {
  const files = readBuilt() ?? (await (await import('../../../console/build.ts')).bundleConsole())
  return new Map([...files].map(([path, contents]) => [path, toFile(path, contents)]))
}

/** All names but that of the page have the hash of their contents, so browsers keep these files. */
function toFile(path: string, contents: Uint8Array): SendFile {
  const type = TYPES[extname(path)] ?? 'application/octet-stream'
  return staticFile(contents, type, { 'Cache-Control': path === '' ? 'no-cache' : 'public, max-age=31536000, immutable' })
}
