/** The types that phones show. SVG is not one of them, and can contain scripts. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const
export type ImageType = (typeof IMAGE_TYPES)[number]

/** The bytes that a file of each type begins with, in hex. */
const BEGINNINGS: Record<ImageType, RegExp> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  // GIF87a, GIF89a
  'image/gif': /^47494638(37|39)61/,
  // RIFF, the length, WEBPVP8
  'image/webp': /^52494646.{8}57454250565038/,
}

/** The type of a file by its first bytes; undefined if it is none of them. */
export function imageTypeOf(bytes: Buffer): ImageType | undefined {
  const beginning = bytes.toString('hex', 0, 16)
  return IMAGE_TYPES.find((type) => BEGINNINGS[type].test(beginning))
}
