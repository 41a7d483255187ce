//! The messages of the scenario, and its users.

use base::Precedence;
use p1::flags::ReportRequest;
use testkit::{ACT, NAPLES};

/// A message of the scenario.
pub(crate) struct Planned {
    /// The index of its originator in [`USERS`].
    pub from: usize,
    /// To whom it is addressed, if not to those who are to get it.
    pub address: Option<(usize, &'static str)>,
    /// Who are to get it.
    pub to: &'static [(usize, &'static str)],
    pub size: usize,
    pub precedence: Precedence,
    pub report: ReportRequest,
}

/// The users, by site and name.
pub(crate) const USERS: [(usize, &str); 4] =
    [(NAPLES, "OPS"), (ACT, "OPS"), (ACT, "LOG"), (NAPLES, "LOG")];

/// The message whose content is in a file.
pub(crate) const LONG: usize = 2;

/// The message that an operator holds.
pub(crate) const HELD: usize = 5;

/// The message that is accepted although the disk is full.
pub(crate) const URGENT: usize = 6;

/// The messages that an operator deletes, expires, and reroutes while the line is down.
pub(crate) const DELETED: usize = 7;
pub(crate) const EXPIRED: usize = 8;
pub(crate) const REROUTED: usize = 9;

/// The message to a distribution list.
pub(crate) const LISTED: usize = 10;

/// The message to nobody, with an alternate that its originator requests.
pub(crate) const REDIRECTED: usize = 11;

/// The message that waits for its deferred delivery time, until its originator cancels it.
pub(crate) const CANCELLED: usize = 12;

/// To a mailbox at the own site; to two at the other one, with reports; a long one, whose transfer is cut;
/// one to nobody; one in the other direction; one that an operator holds; an urgent one at the end;
/// those of which an operator orders something else; one to a list; one to nobody with an alternate; and one that its
/// originator cancels.
pub(crate) static PLAN: [Planned; 13] = [
    Planned {
        from: 0,
        address: None,
        to: &[(NAPLES, "LOG")],
        size: 500,
        precedence: Precedence::Priority,
        report: ReportRequest::Report,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "OPS"), (ACT, "LOG")],
        size: 60,
        precedence: Precedence::Flash,
        report: ReportRequest::Report,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "LOG")],
        size: 60_000,
        precedence: Precedence::Routine,
        report: ReportRequest::None,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "NOBODY")],
        size: 300,
        precedence: Precedence::Immediate,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 1,
        address: None,
        to: &[(NAPLES, "OPS")],
        size: 9_000,
        precedence: Precedence::Routine,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "OPS")],
        size: 7_000,
        precedence: Precedence::Deferred,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(NAPLES, "LOG"), (ACT, "LOG")],
        // So that it fits into a spare segment.
        size: 40,
        precedence: Precedence::Flash,
        report: ReportRequest::None,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "OPS")],
        size: 80,
        precedence: Precedence::Routine,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "OPS")],
        size: 90,
        precedence: Precedence::Routine,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "OPS")],
        size: 6000,
        precedence: Precedence::Routine,
        report: ReportRequest::None,
    },
    Planned {
        from: 0,
        address: Some((NAPLES, "STAFF")),
        to: &[(NAPLES, "LOG"), (ACT, "OPS"), (ACT, "LOG")],
        size: 5_000,
        precedence: Precedence::Priority,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 0,
        address: Some((ACT, "GONE")),
        to: &[(ACT, "OPS")],
        size: 120,
        precedence: Precedence::Routine,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        from: 0,
        address: None,
        to: &[(ACT, "OPS")],
        size: 8_000,
        precedence: Precedence::Immediate,
        report: ReportRequest::NonDelivery,
    },
];
