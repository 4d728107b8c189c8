import { render } from 'preact'
import { App } from './app/app.tsx'
import './kit/base.css'
import './kit/kit.css'
import './app/frame.css'

render(<App />, document.getElementById('app') as HTMLElement)
