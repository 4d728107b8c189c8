export type Page = { status: number; url: string; headers: Headers; text: string }

type Cookie = { value: string; isStrict: boolean }

let browsers = 0

/**
 * A browser with its cookies: it follows redirects, and sends strict cookies only if no other origin led to the page. `who`: whom it is at the
 * OpenID provider.
 */
export function openBrowser(who?: string) {
  browsers += 1
  // An address of its own on loopback, for a service that trusts the header: refusals are limited by address.
  const address = `127.0.1.${browsers}`
  const jars = new Map<string, Map<string, Cookie>>()

  function jarOf(url: string): Map<string, Cookie> {
    const { origin } = new URL(url)
    const jar = jars.get(origin) ?? new Map()
    jars.set(origin, jar)
    return jar
  }

  async function request(
    url: string,
    options: { method?: string; body?: unknown; isCrossSite?: boolean; accept?: string } = {},
  ): Promise<Page> {
    const { method = 'GET', body, isCrossSite = false, accept = 'text/html,*/*' } = options
    const jar = jarOf(url)
    const cookies = [...jar].filter(([, { isStrict }]) => !(isStrict && isCrossSite)).map(([name, { value }]) => `${name}=${value}`)
    if (who !== undefined) cookies.push(`who=${who}`)
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: {
        accept,
        cookie: cookies.join('; '),
        'x-forwarded-for': address,
        'sec-fetch-site': isCrossSite ? 'cross-site' : 'same-origin',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      const isGone = /max-age=0|expires=thu, 01 jan 1970/i.test(cookie)
      if (isGone) jar.delete(name)
      else jar.set(name, { value, isStrict: /samesite=strict/i.test(cookie) })
    }
    return { status: response.status, url, headers: response.headers, text: await response.text() }
  }

  /** Opens a page and follows redirects, up to the first address that `stopAt` matches, which is not opened. */
  async function open(url: string, stopAt = /\/console$/, from = url): Promise<Page> {
    let page = await request(url, { isCrossSite: new URL(from).origin !== new URL(url).origin })
    let isCrossSite = new URL(from).origin !== new URL(url).origin
    for (let location = page.headers.get('location'); location !== null; location = page.headers.get('location')) {
      const next = new URL(location, page.url).href
      if (stopAt.test(next)) return { ...page, url: next }
      isCrossSite ||= new URL(next).origin !== new URL(page.url).origin
      page = await request(next, { isCrossSite })
    }
    return page
  }

  return { address, request, open, cookies: (url: string) => [...jarOf(url).keys()], jar: jarOf }
}
