import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

export const SHELL = '/usr/bin/chromium-headless-shell'
/** Undefined: there is no browser on this machine. */
export const PROGRAM = [SHELL, '/usr/bin/chromium'].find((path) => existsSync(path))

/** It may be started as root, for whom the sandbox does not work. Without hinting, texts have the same width everywhere. */
export async function launchChromium(): Promise<Browser> {
  return await chromium.launch({ executablePath: PROGRAM as string, args: ['--no-sandbox', '--font-render-hinting=none'] })
}
