//! X.411 abstract services: O/R addresses, envelopes, trace, reports, bind; P1 and P3.
//!
//! Types are plain data in the standard's terms. Each has `read`, which takes one BER element, and
//! `write`, which appends one; what is not modelled (unknown SET members, extension values, facsimile
//! parameters, directory names) is kept as its octets, so that a relay passes it on untouched.
//! [`parser::ApduParser`] takes a whole APDU in pieces of any size and never holds the content.

pub mod apdu;
pub mod bind;
pub mod cms;
pub mod content_type;
pub mod eits;
pub mod envelope;
pub mod extension;
pub mod flags;
pub mod grade;
pub mod names;
pub mod p3;
pub mod parser;
pub mod reason;
pub mod red_book;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod time;
pub mod trace;
pub mod wire;

pub use apdu::{MtsApduHead, Report};
pub use bind::{Credentials, MtaBindArgument, MtaBindError, MtaBindResult, Password};
pub use cms::ContentLabels;
pub use content_type::ContentType;
pub use eits::EncodedInformationTypes;
pub use envelope::clearance::{self, Clearance, ClearanceEntry, NotCleared};
pub use envelope::history;
pub use envelope::security_context::{OutsideContext, SecurityContext};
pub use envelope::security_label::{self, SecurityLabel};
pub use envelope::{
    MessageTransferEnvelope, PerRecipientFields, PerRecipientReportFields, ProbeTransferEnvelope,
    ReportTransferContent, ReportTransferEnvelope, ReportType,
};
pub use extension::{CommonName, Criticality, Defaults, Dialect, ExtensionField, ExtensionType};
pub use extension::{Extensions, Form, Qualifier};
pub use flags::{PerMessageIndicators, PerRecipientIndicators, Priority};
pub use names::{GlobalDomainId, MtaName, MtsIdentifier, ORAddress, ORName};
pub use parser::{ApduParser, Event};
pub use reason::{Diagnostic, NonDeliveryReason};
pub use text::{StringType, Text};
pub use time::Time;
pub use trace::{InternalTraceElement, TraceElement};
