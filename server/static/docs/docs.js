// The page is complete without this script, except for the filter and the copy buttons, which the script shows.

// The examples call the service that the page came from, including the prefix that a proxy may add.
const origin = new URL('.', location.href).href.replace(/\/$/, '')
if (location.protocol.startsWith('http')) for (const place of document.querySelectorAll('[data-origin]')) place.textContent = origin

const menu = document.getElementById('menu')
menu.addEventListener('click', (event) => {
  if (event.target.closest('a') && menu.matches(':popover-open')) menu.hidePopover()
})

const filter = document.getElementById('filter')
filter.hidden = false
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\s+/)
  for (const list of menu.querySelectorAll('ul')) {
    for (const item of list.children) {
      const text = `${item.textContent} ${item.dataset.path ?? ''}`.toLowerCase()
      item.hidden = !words.every((word) => text.includes(word))
    }
    const isEmpty = [...list.children].every((item) => item.hidden)
    list.hidden = isEmpty
    if (list.previousElementSibling.matches('h2')) list.previousElementSibling.hidden = isEmpty
  }
})
filter.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') menu.querySelector('li:not([hidden]) > a')?.click()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.matches('input')) return
  event.preventDefault()
  filter.focus()
})

// Browsers offer the clipboard only over HTTPS and on localhost.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll('.copy')) button.hidden = false
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('.copy')
    if (!button) return
    await navigator.clipboard.writeText(button.closest('.panel').querySelector('pre').textContent)
    button.textContent = 'Copied'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 1500)
  })
}

// Marks the current section in the contents: the one that crosses a line a fifth of the window below its top.
const visible = new Set()
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? visible.add(target) : visible.delete(target)
    const current = sections.findLast((section) => visible.has(section))
    if (!current) return
    for (const link of menu.querySelectorAll('[aria-current]')) link.removeAttribute('aria-current')
    const link = menu.querySelector(`a[href="#${CSS.escape(current.id)}"]`)
    link?.setAttribute('aria-current', 'true')
    link?.scrollIntoView({ block: 'nearest' })
  },
  { rootMargin: '-20% 0px -79% 0px' },
)
const sections = [...document.querySelectorAll('#introduction, #authentication, article')]
for (const section of sections) observer.observe(section)
