// What the bundler makes of these imports.
declare module '*.svg' {
  const url: string
  // biome-ignore lint/style/noDefaultExport: the bundler chose it.
  export default url
}
declare module '*.css' {}
