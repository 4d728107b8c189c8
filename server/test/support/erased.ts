import { createErasedPeople } from '../../src/erasure/erased.ts'

/** For tests that start parts of a service by themselves: a service reads its key from the database. */
export const erased = createErasedPeople(Buffer.alloc(32))
