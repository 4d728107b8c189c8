import type { Config } from '../config.ts'

/** The address at which a person uses a one-time link. Browsers send nothing after the # to a server, so no access log gets the token. */
export function setupLink(base: string, token: string): string {
  return `${base}/console#setup=${token}`
}

/** Where the console is: HERALD_PUBLIC_URL or, without it, where a service with these settings listens. */
export function consoleBase({ publicUrl, tls, host, port }: Pick<Config, 'publicUrl' | 'tls' | 'host' | 'port'>): string {
  const name = host.includes(':') ? `[${host}]` : host
  return publicUrl ?? localUrl(`${tls === undefined ? 'http' : 'https'}://${name}:${port}`)
}

/** Returns a URL for clients on this machine: they can't connect to the URL of a service that listens on all addresses. */
export function localUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
