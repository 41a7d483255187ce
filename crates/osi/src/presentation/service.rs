//! The presentation service (X.216) as ACSE, RTSE and ROSE use it.

use crate::session::service as session;
use base::ber::Oid;
use bytes::Bytes;

/// A presentation data value that is held whole: one ASN.1 value in the encoding of its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// Presentation context identifier.
    pub(crate) context: i64,
    /// The encoded value.
    pub(crate) octets: Bytes,
}

/// The defined context set: identifier and abstract syntax of each accepted context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts(pub(crate) Vec<(i64, Oid)>);

impl Contexts {
    /// The identifier of the first context of this abstract syntax.
    pub(crate) fn id_of(&self, syntax: &Oid) -> Option<i64> {
        self.0.iter().find(|(_, s)| s == syntax).map(|(id, _)| *id)
    }

    /// Whether this identifier is in the set.
    pub(crate) fn contains(&self, id: i64) -> bool {
        self.0.iter().any(|(i, _)| *i == id)
    }
}

/// A request of the presentation user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// P-CONNECT.request.
    Connect { reference: session::ConnectionReference, requirements: u16, value: Value },
    /// P-CONNECT.response, accepting.
    Accept { requirements: u16, value: Value },
    /// P-CONNECT.response, refusing.
    Refuse { value: Value },
    /// Begins a P-DATA.request of one value, `length` octets or (`None`) in the indefinite form.
    DataStart { context: i64, length: Option<u64> },
    /// Octets of that value.
    Data { bytes: Bytes, last: bool },
    /// Gives it up: the activity is about to be interrupted or discarded, which cuts it short.
    DataCut,
    /// P-RELEASE.request.
    Release(Value),
    /// P-RELEASE.response.
    ReleaseResponse(Value),
    /// P-U-ABORT.request.
    Abort(Option<Value>),
    /// P-TOKEN-PLEASE.request.
    PleaseTokens(Value),
    /// A primitive that passes through to the session unchanged (6.7 to 6.11).
    Pass(session::Request),
}

/// An indication or confirm of the presentation provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Indication {
    /// P-CONNECT.indication.
    Connect {
        /// Calling session and presentation selectors.
        session_selector: Option<Bytes>,
        presentation_selector: Option<Bytes>,
        reference: session::ConnectionReference,
        requirements: u16,
        contexts: Contexts,
        values: Vec<Value>,
    },
    /// P-CONNECT.confirm, accepting.
    Accepted { values: Vec<Value> },
    /// P-CONNECT.confirm, refusing: values if the peer's presentation user refused; `transient`
    /// if a provider is congested.
    Refused { values: Vec<Value>, transient: bool, detail: String },
    /// P-DATA.indication: a value begins.
    ValueStart { context: i64 },
    /// Octets of it.
    ValueData(Bytes),
    /// It ends.
    ValueEnd,
    /// P-RELEASE.indication.
    Release(Vec<Value>),
    /// P-RELEASE.confirm.
    Released(Vec<Value>),
    /// P-U-ABORT.indication.
    UserAbort(Vec<Value>),
    /// P-P-ABORT.indication.
    ProviderAbort { detail: String },
    /// P-TOKEN-PLEASE.indication.
    PleaseTokens(Vec<Value>),
    /// A primitive that passes through from the session unchanged.
    Pass(session::Indication),
}
