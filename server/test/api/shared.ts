// One after the other: two services that start at once in one process delay each other's first responses.
await import('./messages-service.ts')
await import('./templates-service.ts')
