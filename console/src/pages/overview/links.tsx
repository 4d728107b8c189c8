import type { ComponentChildren } from 'preact'

export type Link = { text: ComponentChildren; href: string; beside: ComponentChildren }

/** A list of links, each with what is to say about it. */
export const Links = ({ links, none }: { links: Link[]; none?: ComponentChildren }) =>
  links.length === 0 ? (
    <p class="soft">{none}</p>
  ) : (
    <ul class="lines">
      {links.map(({ text, href, beside }) => (
        <li>
          <a href={href}>{text}</a>
          <span>{beside}</span>
        </li>
      ))}
    </ul>
  )
