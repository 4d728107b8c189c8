/** Why a network permanently refused a message. Failure reasons in the API and in reports, and docs/errors.md, come from this table. */
export const REFUSALS = {
  NOT_REACHABLE: 'The number can’t be reached by RCS: it has no RCS, RCS is switched off, or the agent is not launched on its network.',
  REJECTED: 'The network refused the message.',
  INVALID_RECIPIENT: 'The network does not accept the recipient’s number.',
  INVALID_SENDER: 'The network does not accept the sender.',
  UNDELIVERABLE: 'The network could not deliver the message.',
} as const satisfies Record<string, string>
export type Refusal = keyof typeof REFUSALS

/** What an error means for the message: it fails for this reason, or Herald tries it again later. */
type Meaning = Refusal | 'RETRY'

type CarrierErrors = {
  /** By the network's code: an HTTP status, or the command_status of SMPP. */
  known: ReadonlyMap<number, { name: string; meaning: Meaning }>
  /** What any other code means. */
  other: Meaning
}

type Row = [code: number, name: string, meaning: Meaning]

const byCode = (rows: Row[]) => new Map(rows.map(([code, name, meaning]) => [code, { name, meaning }]))

/** The errors of the networks. `RETRY`: the network, or the recipient's network, is busy or in the wrong state. */
export const CARRIER_ERRORS = {
  'google-rbm': {
    known: byCode([
      [400, 'INVALID_ARGUMENT', 'REJECTED'],
      [401, 'UNAUTHENTICATED', 'RETRY'],
      // The agent is not launched on the recipient's network, or the service account has no access to it. Google documents 403 in one place
      // and 404 in another.
      [403, 'PERMISSION_DENIED', 'NOT_REACHABLE'],
      [404, 'NOT_FOUND', 'NOT_REACHABLE'],
      [413, 'Content Too Large', 'REJECTED'],
      [429, 'RESOURCE_EXHAUSTED', 'RETRY'],
      [500, 'INTERNAL', 'RETRY'],
      [503, 'UNAVAILABLE', 'RETRY'],
    ]),
    // An undocumented response must not fail a message.
    other: 'RETRY',
  },
  smpp: {
    known: byCode([
      [0x01, 'ESME_RINVMSGLEN', 'REJECTED'],
      [0x02, 'ESME_RINVCMDLEN', 'REJECTED'],
      [0x03, 'ESME_RINVCMDID', 'REJECTED'],
      [0x04, 'ESME_RINVBNDSTS', 'RETRY'],
      [0x05, 'ESME_RALYBND', 'REJECTED'],
      [0x06, 'ESME_RINVPRTFLG', 'REJECTED'],
      [0x07, 'ESME_RINVREGDLVFLG', 'REJECTED'],
      [0x08, 'ESME_RSYSERR', 'RETRY'],
      [0x0a, 'ESME_RINVSRCADR', 'INVALID_SENDER'],
      [0x0b, 'ESME_RINVDSTADR', 'INVALID_RECIPIENT'],
      [0x0c, 'ESME_RINVMSGID', 'REJECTED'],
      [0x0d, 'ESME_RBINDFAIL', 'REJECTED'],
      [0x0e, 'ESME_RINVPASWD', 'REJECTED'],
      [0x0f, 'ESME_RINVSYSID', 'REJECTED'],
      [0x11, 'ESME_RCANCELFAIL', 'REJECTED'],
      [0x13, 'ESME_RREPLACEFAIL', 'REJECTED'],
      [0x14, 'ESME_RMSGQFUL', 'RETRY'],
      [0x15, 'ESME_RINVSERTYP', 'REJECTED'],
      [0x43, 'ESME_RINVESMCLASS', 'REJECTED'],
      [0x45, 'ESME_RSUBMITFAIL', 'REJECTED'],
      [0x48, 'ESME_RINVSRCTON', 'INVALID_SENDER'],
      [0x49, 'ESME_RINVSRCNPI', 'INVALID_SENDER'],
      [0x50, 'ESME_RINVDSTTON', 'INVALID_RECIPIENT'],
      [0x51, 'ESME_RINVDSTNPI', 'INVALID_RECIPIENT'],
      [0x53, 'ESME_RINVSYSTYP', 'REJECTED'],
      [0x54, 'ESME_RINVREPFLAG', 'REJECTED'],
      [0x58, 'ESME_RTHROTTLED', 'RETRY'],
      [0x61, 'ESME_RINVSCHED', 'REJECTED'],
      [0x62, 'ESME_RINVEXPIRY', 'REJECTED'],
      [0x63, 'ESME_RINVDFTMSGID', 'REJECTED'],
      [0x64, 'ESME_RX_T_APPN', 'RETRY'],
      [0x65, 'ESME_RX_P_APPN', 'REJECTED'],
      [0x66, 'ESME_RX_R_APPN', 'REJECTED'],
      [0xc0, 'ESME_RINVOPTPARSTREAM', 'REJECTED'],
      [0xc1, 'ESME_ROPTPARNOTALLWD', 'REJECTED'],
      [0xc2, 'ESME_RINVPARLEN', 'REJECTED'],
      [0xc3, 'ESME_RMISSINGOPTPARAM', 'REJECTED'],
      [0xc4, 'ESME_RINVOPTPARAMVAL', 'REJECTED'],
      [0xfe, 'ESME_RDELIVERYFAILURE', 'UNDELIVERABLE'],
      [0xff, 'ESME_RUNKNOWNERR', 'REJECTED'],
    ]),
    // A network's own code (0x400 and up) is permanent: retrying it for hours would delay all other messages by the back-off.
    other: 'REJECTED',
  },
} as const satisfies Record<string, CarrierErrors>

export function meaningOf(carrier: keyof typeof CARRIER_ERRORS, code: number): Meaning {
  const { known, other } = CARRIER_ERRORS[carrier]
  return known.get(code)?.meaning ?? other
}
