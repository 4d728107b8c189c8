/** Counted for each member in addition to its attributes: its row and index entries take some 150 bytes. */
const MEMBER_BYTES = 150

/** SQL for the bytes that a member counts towards the quota storedBytes. `member` names a row of group_members. */
export const memberBytes = (member: string) =>
  `${MEMBER_BYTES} + 4 * cardinality(${member}.consents) + coalesce(octet_length(${member}.attributes::text), 0)`
