//! What is known of binds: which elements are where, and which of them are harmless.
//!
//! What is not in these tables is masked. A table is of the members in any order; where the same tag has several
//! meanings in one place, all of them are in it.

use base::ber::{Tag, universal as u};

/// What an element is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Is {
    /// Its members are of this table.
    Group(&'static [Rule]),
    /// It is harmless, if its octets are those of such a value.
    Clear(Leaf),
    /// A password.
    Secret,
    /// It holds an encoding, after so many octets of its own.
    Inner(&'static [Rule], usize),
    /// It is a ROSE APDU.
    Apdu(Apdu),
}

/// Values that are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// A name or a part of an address.
    Text,
    /// An INTEGER or ENUMERATED, or a BIT STRING: nothing longer than one can be.
    Number,
    /// A selector.
    Selector,
    /// An object identifier.
    Oid,
}

/// ROSE APDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apdu {
    /// ROIV.
    Invoke,
    /// RORS.
    Result,
    /// ROER.
    Error,
    /// RORJ.
    Reject,
}

/// An element that is known in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) tag: Tag,
    pub(super) is: Is,
}

const fn rule(tag: Tag, is: Is) -> Rule {
    Rule { tag, is }
}

const fn group(tag: Tag, members: &'static [Rule]) -> Rule {
    Rule { tag, is: Is::Group(members) }
}

const fn clear(tag: Tag, leaf: Leaf) -> Rule {
    Rule { tag, is: Is::Clear(leaf) }
}

const fn c(number: u32) -> Tag {
    Tag::context(number)
}

use Leaf::{Number, Oid, Selector, Text};

/// User data of CONNECT, ACCEPT and REFUSE: CP, CPA, CPR, or PConnect and PAccept of X.410 (1984).
pub(super) static CONNECT: &[Rule] = &[
    group(
        u::SET,
        &[
            group(c(0), &[clear(c(0), Number)]),
            group(c(1), RTSE),
            group(c(2), NORMAL_MODE),
            // A refusal of X.410 mode.
            clear(c(0), Number),
            group(c(1), BIND_ERROR),
        ],
    ),
    group(u::SEQUENCE, NORMAL_MODE),
    // Of a FINISH or DISCONNECT, and an ARU.
    VALUES,
    group(
        c(0),
        &[
            group(c(0), &[group(u::SEQUENCE, &[clear(u::INTEGER, Number), clear(u::OID, Oid)])]),
            VALUES,
        ],
    ),
];

/// Members of CP, CPA and CPR in normal mode (X.226 8.2).
static NORMAL_MODE: &[Rule] = &[
    clear(c(0), Number),
    clear(c(1), Selector),
    clear(c(2), Selector),
    clear(c(3), Selector),
    group(
        c(4),
        &[group(
            u::SEQUENCE,
            &[
                clear(u::INTEGER, Number),
                clear(u::OID, Oid),
                group(u::SEQUENCE, &[clear(u::OID, Oid)]),
            ],
        )],
    ),
    group(
        c(5),
        &[group(u::SEQUENCE, &[clear(c(0), Number), clear(c(1), Oid), clear(c(2), Number)])],
    ),
    clear(c(8), Number),
    clear(c(9), Number),
    clear(c(10), Number),
    VALUES,
];

/// User data (X.226 8.4.2).
const VALUES: Rule = group(Tag::application(1), VALUE_LISTS);

static VALUE_LISTS: &[Rule] = &[group(
    u::SEQUENCE,
    &[
        clear(u::OID, Oid),
        clear(u::INTEGER, Number),
        group(c(0), ACSE),
        rule(c(1), Is::Inner(ACSE, 0)),
        rule(c(2), Is::Inner(ACSE, 1)),
    ],
)];

/// AARQ, AARE, RLRQ, RLRE and ABRT (X.227 clause 9).
static ACSE: &[Rule] = &[
    group(Tag::application(0), ASSOCIATE),
    group(Tag::application(1), ASSOCIATE),
    group(Tag::application(2), ASSOCIATE),
    group(Tag::application(3), ASSOCIATE),
    group(Tag::application(4), ASSOCIATE),
];

static ASSOCIATE: &[Rule] = &[
    clear(c(0), Number),
    group(c(1), &[clear(u::OID, Oid)]),
    group(c(2), &[clear(u::INTEGER, Number)]),
    group(
        c(3),
        &[group(c(1), &[clear(u::INTEGER, Number)]), group(c(2), &[clear(u::INTEGER, Number)])],
    ),
    group(
        c(30),
        &[group(
            u::EXTERNAL,
            &[
                clear(u::OID, Oid),
                clear(u::INTEGER, Number),
                group(c(0), BIND_APDU),
                rule(c(1), Is::Inner(BIND_APDU, 0)),
                rule(c(2), Is::Inner(BIND_APDU, 1)),
            ],
        )],
    ),
];

/// RTORQ, RTOAC, RTORJ and RTAB; bind argument, result and error of ROSE, which have the same tags.
static BIND_APDU: &[Rule] = &[
    group(c(16), RTSE),
    group(c(17), RTSE),
    group(c(18), BIND_ERROR),
    group(c(22), &[clear(c(0), Number), clear(c(1), Number)]),
];

static RTSE: &[Rule] = &[
    clear(c(0), Number),
    clear(c(1), Number),
    clear(c(2), Number),
    clear(c(4), Number),
    group(c(2), CONNECTION_DATA),
    group(c(3), CONNECTION_DATA),
    group(u::SET, USER_BIND),
];

/// connectionDataRQ and connectionDataAC (X.228 9).
static CONNECTION_DATA: &[Rule] = &[
    group(
        c(0),
        &[group(c(16), BIND), group(c(17), BIND), group(c(1), MTA_BIND), group(u::SET, USER_BIND)],
    ),
    group(
        c(1),
        &[
            clear(u::OCTET_STRING, Text),
            clear(u::TELETEX_STRING, Text),
            clear(u::UTC_TIME, Text),
            clear(c(0), Text),
        ],
    ),
];

static BIND: &[Rule] = &[group(c(1), MTA_BIND), group(u::SET, USER_BIND)];

/// MTABindArgument and MTABindResult (X.411 12.1.1).
static MTA_BIND: &[Rule] = &[clear(c(0), Text), group(c(1), CREDENTIALS)];

/// MTSBindArgument, MTSBindResult, MSBindArgument and MSBindResult (X.411 8.1.1, X.413 7.1).
static USER_BIND: &[Rule] = &[
    group(Tag::application(0), OR_NAME),
    clear(c(0), Text),
    group(c(1), &[group(u::SET, &[group(c(0), QUEUE), group(c(1), QUEUE), group(c(2), QUEUE)])]),
    group(c(2), CREDENTIALS),
    group(c(3), OIDS),
    // message-store of P3, fetch-restrictions and available-attribute-types of P7.
    group(c(4), FOURTH),
    group(c(5), &[rule(u::BOOLEAN, Is::Clear(Number))]),
    group(c(6), &[clear(u::PRINTABLE_STRING, Text), OID_SET]),
];

static QUEUE: &[Rule] = &[clear(c(0), Number), clear(c(1), Number)];

/// Credentials: only a password is known. Strong ones are masked as a whole.
pub(super) static CREDENTIALS: &[Rule] =
    &[rule(u::IA5_STRING, Is::Secret), rule(u::OCTET_STRING, Is::Secret)];

const OID_SET: Rule = group(u::SET, &[clear(u::OID, Oid)]);
static OIDS: &[Rule] = &[OID_SET];

static FOURTH: &[Rule] = &[
    group(u::SEQUENCE, STANDARD),
    group(
        u::SET,
        &[
            // extension-attributes.
            group(u::SEQUENCE, EXTENSION_ATTRIBUTE),
            clear(u::OID, Oid),
            group(c(0), OIDS),
            group(c(1), OIDS),
            group(c(2), &[clear(u::INTEGER, Number)]),
        ],
    ),
    group(c(0), DIRECTORY_NAME),
];

/// ORAddressAndOptionalDirectoryName (X.411 8.5.5).
static OR_NAME: &[Rule] = &[
    group(u::SEQUENCE, STANDARD),
    group(u::SET, &[group(u::SEQUENCE, EXTENSION_ATTRIBUTE)]),
    group(c(0), DIRECTORY_NAME),
];

/// Standard and domain-defined attributes, which have the same tag.
static STANDARD: &[Rule] = &[
    group(Tag::application(1), CHOICE),
    group(Tag::application(2), CHOICE),
    clear(c(0), Text),
    clear(c(1), Text),
    group(c(2), CHOICE),
    clear(c(3), Text),
    clear(c(4), Text),
    group(c(5), PERSON),
    group(c(6), CHOICE),
    group(u::SEQUENCE, CHOICE),
];

static CHOICE: &[Rule] = &[clear(u::NUMERIC_STRING, Text), clear(u::PRINTABLE_STRING, Text)];

static PERSON: &[Rule] =
    &[clear(c(0), Text), clear(c(1), Text), clear(c(2), Text), clear(c(3), Text)];

static EXTENSION_ATTRIBUTE: &[Rule] = &[
    clear(c(0), Number),
    group(
        c(1),
        &[
            clear(u::PRINTABLE_STRING, Text),
            clear(u::NUMERIC_STRING, Text),
            clear(u::TELETEX_STRING, Text),
            group(u::SET, PERSON),
            group(
                u::SEQUENCE,
                &[
                    clear(u::TELETEX_STRING, Text),
                    group(u::SEQUENCE, &[clear(u::TELETEX_STRING, Text)]),
                ],
            ),
        ],
    ),
];

static DIRECTORY_NAME: &[Rule] = &[group(
    u::SEQUENCE,
    &[group(
        u::SET,
        &[group(
            u::SEQUENCE,
            &[
                clear(u::OID, Oid),
                clear(u::PRINTABLE_STRING, Text),
                clear(u::TELETEX_STRING, Text),
                clear(Tag::universal(12), Text),
            ],
        )],
    )],
)];

static BIND_ERROR: &[Rule] = &[
    clear(c(0), Number),
    clear(c(1), Number),
    clear(u::INTEGER, Number),
    clear(u::ENUMERATED, Number),
    group(
        c(1),
        &[
            clear(u::INTEGER, Number),
            clear(u::ENUMERATED, Number),
            clear(c(18), Number),
            group(c(18), &[clear(u::INTEGER, Number)]),
        ],
    ),
    group(u::SET, &[group(c(0), &[clear(u::ENUMERATED, Number)]), group(c(2), OIDS)]),
];

/// User data of a DATA TRANSFER: ROSE APDUs in a PDV-list.
pub(super) static DATA: &[Rule] = &[group(
    Tag::application(1),
    &[group(
        u::SEQUENCE,
        &[
            clear(u::OID, Oid),
            clear(u::INTEGER, Number),
            group(c(0), ROSE),
            rule(c(1), Is::Inner(ROSE, 0)),
            rule(c(2), Is::Inner(ROSE, 1)),
        ],
    )],
)];

static ROSE: &[Rule] = &[
    rule(c(1), Is::Apdu(Apdu::Invoke)),
    rule(c(2), Is::Apdu(Apdu::Result)),
    rule(c(3), Is::Apdu(Apdu::Error)),
    rule(c(4), Is::Apdu(Apdu::Reject)),
];

/// Members of the argument of a change of credentials (X.411 8.4.1.1), and of a register-MS.
pub(super) static CHANGE: &[Rule] = &[group(c(0), CREDENTIALS), group(c(1), CREDENTIALS)];

/// change-credentials of a register-MS (X.413 8.6.1): inside its tag.
pub(super) static CHANGE_IN_REGISTER: &[Rule] = &[group(u::SEQUENCE, CHANGE)];

impl Leaf {
    /// Most octets of such a value. A password that is taken for one is not shown further.
    pub(super) fn most(self) -> u64 {
        match self {
            Text => 256,
            Number => 5,
            Selector => 16,
            Oid => 24,
        }
    }
}
