/** What a colour means. The words beside it say the same. */
export type Tone = 'plain' | 'good' | 'bad' | 'warn' | 'wait' | 'info'
