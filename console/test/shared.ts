// All files share one browser, which ends after the last of them.
import './support/browser.ts'
