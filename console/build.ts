import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A file of the console, by its path below /console; the page itself has the path ''. */
export type BuiltFiles = Map<string, Uint8Array>

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const SOURCES = fileURLToPath(new URL('src/', import.meta.url))

/** `inputs`: the sources of the page, without packages, relative to the root of the repository. */
type Bundle = { files: BuiltFiles; inputs: string[] }

/** esbuild, or its program for this platform, is not installed, or cannot start. */
class BundlerMissing extends Error {
  override readonly name = 'BundlerMissing'
}

/** Bundles the console from its sources, which takes about 0.2 s. Throws if the bundler cannot run here. */
export async function bundleConsole(): Promise<BuiltFiles> {
  return (await bundle()).files
}

/** Bundles a page with the console's head. `entry`: its script, which must have the name main.tsx. */
export async function bundlePage(entry: string): Promise<BuiltFiles> {
  return (await bundle(entry)).files
}

export async function bundle(entry = `${SOURCES}main.tsx`): Promise<Bundle> {
  // Imported here, since a service whose console is built already runs without esbuild.
  const esbuild = await import('esbuild').catch(missing)
  try {
    const { outputFiles, metafile } = await esbuild
      .build({
        entryPoints: [entry],
        bundle: true,
        minify: true,
        format: 'esm',
        target: 'es2024',
        // The types take the newer form of calls, which tsconfig.json names. This form has no name for the children: 4 % less script.
        tsconfigRaw: { compilerOptions: { jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment' } },
        inject: [`${SOURCES}elements.ts`],
        loader: { '.svg': 'file', '.woff2': 'file' },
        write: false,
        metafile: true,
        absWorkingDir: ROOT,
        outdir: '/',
        // Each name has a hash of the contents, so browsers may keep the files for ever.
        entryNames: '[name]-[hash]',
        assetNames: '[name]-[hash]',
        legalComments: 'none',
      })
      // A build that fails has a list of errors.
      .catch((error: Error) => (Array.isArray((error as { errors?: unknown }).errors) ? Promise.reject(error) : missing(error)))
    const files: BuiltFiles = new Map(outputFiles.map(({ path, contents }) => [path.slice(1), contents]))
    const inputs = Object.keys(metafile.inputs).filter((path) => !path.includes('node_modules/'))
    return {
      files: files.set('', new TextEncoder().encode(pageWith([...files.keys()]))),
      inputs: [...inputs, 'console/src/index.html', 'console/build.ts'],
    }
  } finally {
    // Ends the bundler's process.
    await esbuild.stop()
  }
}

function missing(cause: unknown): never {
  throw new BundlerMissing('the bundler cannot run', { cause })
}

/** The page, with the names of its script and its stylesheet. */
function pageWith(names: string[]): string {
  const find = (end: string) => names.find((name) => name.startsWith('main-') && extname(name) === end) as string
  return readFileSync(`${SOURCES}index.html`, 'utf8').replace('main.js', find('.js')).replace('main.css', find('.css'))
}
