import { gzipSync } from 'node:zlib'
import { writeBuilt } from '../../server/src/console/built.ts'
import { bundle } from '../build.ts'

// npm run build: writes the console to console/dist. The service serves these files until their sources change. Otherwise it bundles on the first request.

const { files, inputs } = await bundle()
writeBuilt(files, inputs)
const kilobytes = (bytes: number) => `${Math.ceil(bytes / 1_000)} kB`
const code = [...files].filter(([path]) => /\.(?:js|css)$/.test(path))
const size = code.reduce((sum, [, contents]) => sum + gzipSync(contents).length, 0)
process.stdout.write(`Built console/dist: ${files.size} files, ${kilobytes(size)} of script and style when compressed.\n`)
