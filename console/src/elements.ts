// What the bundler calls for each element of the markup (console/build.ts).
export { Fragment, h } from 'preact'
