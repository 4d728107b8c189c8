import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import * as say from '../words/en-kit.ts'
import { Button } from './controls.tsx'
import './dialog.css'

type Props = {
  title: string
  onClose: () => void
  children: ComponentChildren
  /** The buttons beside the one that closes the dialog. */
  actions?: ComponentChildren
  /** The text of the button that closes the dialog. */
  closing?: string
  /** Whether a click outside closes the dialog, as by default. False for what is shown only once: a stray click would lose it. */
  closesOutside?: boolean
  /**
   * Makes the dialog a form, which an action of the type submit sends. Until the promise has ended, a second submit is ignored, and the dialog
   * stays open: the response may have a secret that is returned only once.
   */
  onSubmit?: () => Promise<void>
}

/** A modal dialog, which is open as long as it is rendered. */
export function Dialog({ title, onClose, children, actions, closing, closesOutside = true, onSubmit }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isOpen = useRef(true)
  // Before the browser handles another key, which might open a second dialog.
  useLayoutEffect(() => {
    const element = dialog.current
    const before = document.activeElement
    element?.showModal()
    return () => {
      isOpen.current = false
      element?.close()
      // The browser does this only for a dialog that is still in the page.
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus()
    }
  }, [])
  // The close event is asynchronous: another dialog may have replaced this one.
  const close = () => {
    if (isOpen.current) onClose()
  }
  const [isSending, setSending] = useState(false)
  // The second click of a double click may come before the dialog is drawn as sending.
  const isRunning = useRef(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (isRunning.current) return
    isRunning.current = true
    setSending(true)
    try {
      await onSubmit?.()
    } finally {
      isRunning.current = false
      setSending(false)
    }
  }
  const closedBy = closesOutside ? 'any' : 'closerequest'
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={id}
      closedby={isSending ? 'none' : closedBy}
      // For browsers without closedby.
      onCancel={(event) => isSending && event.preventDefault()}
      onClose={close}
    >
      <h2 id={id}>{title}</h2>
      <form class="dialog-form" onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">{children}</div>
        <div class="form-end">
          <Button isBusy={isSending} onClick={onClose}>
            {closing ?? (actions === undefined ? say.close : say.cancel)}
          </Button>
          {actions}
        </div>
      </form>
    </dialog>
  )
}
