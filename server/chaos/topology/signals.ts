import { spawnSync } from 'node:child_process'

/** A process that has ended meanwhile is skipped. */
export function signal(pids: (number | undefined)[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      if (pid !== undefined) process.kill(pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

export function childrenOf(pid: number | undefined): number[] {
  const lines = spawnSync('ps', ['-A', '-o', 'pid=,ppid=']).stdout.toString().split('\n')
  return lines.map((line) => line.trim().split(/\s+/).map(Number)).flatMap(([child = 0, parent]) => (parent === pid ? [child] : []))
}

/** Freezes a PostgreSQL server. The postmaster comes first, so that it starts no more processes. */
export function freezeAll(postmaster: number | undefined): void {
  signal([postmaster], 'SIGSTOP')
  signal(childrenOf(postmaster), 'SIGSTOP')
}

export function thawAll(postmaster: number | undefined): void {
  signal([...childrenOf(postmaster), postmaster], 'SIGCONT')
}
