//! ExtensionField of X.411: the standard's later fields and everyone's private ones.

mod dialect;
mod form;

pub use dialect::{CommonName, Dialect};
pub use form::{Defaults, Form, Qualifier};

use crate::trace::explicit_internal_trace;
use crate::wire::{bits, keep, keep_child, list, write_bits};
use base::ber::{Element, Error, Fault, Field, Oid, Tag, Writer, universal};
use bytes::Bytes;

/// extension-type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionType {
    /// standard-extension, by number (see [`number`]).
    Standard(i64),
    /// private-extension.
    Private(Oid),
}

/// criticality: for which steps an extension must be understood (X.411 9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Criticality {
    /// for-submission.
    pub for_submission: bool,
    /// for-transfer: an MTA that does not understand it must not relay, but report non-delivery.
    pub for_transfer: bool,
    /// for-delivery.
    pub for_delivery: bool,
}

/// One extension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionField {
    /// extension-type.
    pub kind: ExtensionType,
    /// How `kind` was encoded, or is to be.
    pub dialect: Dialect,
    /// criticality.
    pub criticality: Criticality,
    /// The whole element of the value, inside the explicit tag; NULL where it was absent.
    pub value: Bytes,
    /// The whole field as it came, which is what is relayed; `None` for one made here or changed.
    pub raw: Option<Bytes>,
}

/// The extensions of an envelope or of a recipient's fields, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extensions(pub Vec<ExtensionField>);

const STANDARD: Tag = Tag::context(0);
const PRIVATE: Tag = Tag::context(3);
const CRITICALITY: Tag = Tag::context(1);
const VALUE: Tag = Tag::context(2);

/// The value of an extension that gives none.
const NULL: [u8; 2] = [5, 0];

impl ExtensionType {
    fn read(e: &Element<'_>) -> Result<(ExtensionType, Dialect), Error> {
        match (e.tag, e.constructed) {
            (STANDARD, false) => Ok((ExtensionType::Standard(e.integer()?), Dialect::Modern)),
            (PRIVATE, false) => Ok((ExtensionType::Private(e.oid()?), Dialect::Modern)),
            (STANDARD, true) => {
                let inner = e.only_child()?;
                let kind = match inner.tag {
                    universal::INTEGER => ExtensionType::Standard(inner.integer()?),
                    universal::OID => ExtensionType::Private(inner.oid()?),
                    other => return Err(Fault::Unexpected(other).into()),
                };
                Ok((kind, Dialect::BlueBook1988))
            }
            (other, _) => Err(Fault::Unexpected(other).into()),
        }
    }

    fn write(&self, w: &mut Writer, dialect: Dialect) {
        match (self, dialect) {
            (ExtensionType::Standard(n), Dialect::Modern) => w.integer(STANDARD, *n),
            (ExtensionType::Private(oid), Dialect::Modern) => w.oid(PRIVATE, oid),
            // 1984 has no extensions: none come here.
            (ExtensionType::Standard(n), Dialect::BlueBook1988 | Dialect::RedBook1984(_)) => {
                w.constructed(STANDARD, |w| w.integer(universal::INTEGER, *n));
            }
            (ExtensionType::Private(oid), Dialect::BlueBook1988 | Dialect::RedBook1984(_)) => {
                w.constructed(STANDARD, |w| w.oid(universal::OID, oid));
            }
        }
    }
}

/// The name of a standard extension, else its number or object identifier.
impl std::fmt::Display for ExtensionType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExtensionType::Standard(n) => match standard_name(*n) {
                Some(name) => f.write_str(name),
                None => write!(f, "{n}"),
            },
            ExtensionType::Private(oid) => write!(f, "{oid}"),
        }
    }
}

impl Criticality {
    /// Critical for transfer alone.
    pub const TRANSFER: Criticality =
        Criticality { for_submission: false, for_transfer: true, for_delivery: false };

    fn from_bits(bits: u32) -> Criticality {
        Criticality {
            for_submission: bits & 1 != 0,
            for_transfer: bits & 2 != 0,
            for_delivery: bits & 4 != 0,
        }
    }

    fn bits(self) -> u32 {
        u32::from(self.for_submission)
            | u32::from(self.for_transfer) << 1
            | u32::from(self.for_delivery) << 2
    }
}

impl ExtensionField {
    /// A standard extension made here, its value written by `value`.
    pub fn standard(
        number: i64,
        criticality: Criticality,
        value: impl FnOnce(&mut Writer),
    ) -> ExtensionField {
        let mut w = Writer::new();
        value(&mut w);
        ExtensionField {
            kind: ExtensionType::Standard(number),
            dialect: Dialect::Modern,
            criticality,
            value: w.into_vec().into(),
            raw: None,
        }
    }

    /// Whether this dialect has a form for it: that of 1988 has none for a private extension, whose
    /// extension-type is an INTEGER, and that of 1984 for none at all.
    pub fn has_form(&self, dialect: Dialect) -> bool {
        match (&self.kind, dialect) {
            (_, Dialect::Modern) | (ExtensionType::Standard(_), Dialect::BlueBook1988) => true,
            (ExtensionType::Private(_), Dialect::BlueBook1988) => false,
            (_, Dialect::RedBook1984(_)) => false,
        }
    }

    /// Whether it is internal-trace-information, which is between the MTAs of a domain.
    pub fn is_internal_trace(&self) -> bool {
        self.kind == ExtensionType::Standard(number::INTERNAL_TRACE_INFORMATION)
    }

    /// Whether this MTA may have made it: it is of the standard, or the priority-level-qualifier.
    fn is_known(&self) -> bool {
        let is_standard =
            matches!(self.kind, ExtensionType::Standard(n) if standard_name(n).is_some());
        is_standard || self.is_priority_level_qualifier()
    }

    /// Whether it is the priority-level-qualifier (see [`crate::grade`]).
    pub fn is_priority_level_qualifier(&self) -> bool {
        matches!(&self.kind, ExtensionType::Private(oid) if oid.content() == crate::grade::QUALIFIER)
    }

    /// Reads one, in either dialect.
    ///
    /// # Errors
    /// Malformed, or a type in neither dialect.
    pub fn read(e: &Element<'_>) -> Result<ExtensionField, Error> {
        let mut inner = e.children().field("extension")?;
        let kind = inner.next().field("extension-type")?.ok_or(Fault::Missing(STANDARD));
        let (kind, dialect) =
            ExtensionType::read(&kind.field("extension-type")?).field("extension-type")?;
        let criticality = match inner.optional(CRITICALITY).field("criticality")? {
            Some(e) => Criticality::from_bits(bits(&e).field("criticality")?),
            None => Criticality::default(),
        };
        let value = match inner.optional(VALUE).field("extension-value")? {
            Some(e) => keep_child(&e).field("extension-value")?,
            None => Bytes::from_static(&NULL),
        };
        inner.finish().field("extension")?;
        Ok(ExtensionField { kind, dialect, criticality, value, raw: Some(keep(e)) })
    }

    /// Writes it: as it came, or in its dialect where it was made here, or lacks a member that is to be written. One that is
    /// not known here is passed on as it came in any case.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        let stays = |raw: &&Bytes| {
            defaults != Defaults::Explicit || !self.is_known() || self.is_explicit(raw)
        };
        if let Some(raw) = self.raw.as_ref().filter(stays) {
            return w.raw(raw);
        }
        w.constructed(universal::SEQUENCE, |w| {
            self.kind.write(w, self.dialect);
            if defaults.writes_later(&self.criticality, &Criticality::default()) {
                // Its three bits, as other MTAs write it.
                let least = if self.criticality == Criticality::default() { 3 } else { 0 };
                write_bits(w, CRITICALITY, self.criticality.bits(), least);
            }
            if defaults.writes_later(&&self.value[..], &&NULL[..]) {
                w.constructed(VALUE, |w| w.raw(&self.value_in(defaults)));
            }
        });
    }

    /// The value: an internal trace has members with a DEFAULT itself. Its last element is ours, so that it is made
    /// here anyway, whether its octets are kept by now or not.
    fn value_in(&self, defaults: Defaults) -> Bytes {
        let is_made = self.is_internal_trace() && defaults == Defaults::Explicit;
        let explicit = is_made.then(|| explicit_internal_trace(&self.value)).flatten();
        explicit.unwrap_or_else(|| self.value.clone())
    }

    /// Whether the octets of the field have all members: criticality and value have a DEFAULT.
    fn is_explicit(&self, raw: &[u8]) -> bool {
        let members = || {
            let mut inner = Element::parse(raw)?.children()?;
            inner.next()?;
            let criticality = inner.optional(CRITICALITY)?;
            Ok::<_, Error>(criticality.is_some() && inner.optional(VALUE)?.is_some())
        };
        !self.is_internal_trace() && members().unwrap_or(true)
    }
}

impl Extensions {
    /// Reads a SET OF extensions, under whichever tag.
    ///
    /// # Errors
    /// One of them malformed.
    pub fn read(e: &Element<'_>) -> Result<Extensions, Error> {
        Ok(Extensions(list(e, usize::MAX, ExtensionField::read).field("extensions")?))
    }

    /// Writes them under `tag`; nothing where there are none, which is the DEFAULT.
    pub fn write_as(&self, w: &mut Writer, tag: Tag) {
        self.write_in(w, tag, Defaults::LeftOut);
    }

    /// As [`Extensions::write_as`], with the members of the value of their DEFAULT that are to be written.
    pub fn write_in(&self, w: &mut Writer, tag: Tag, defaults: Defaults) {
        if defaults.writes_later(&self.0.len(), &0) {
            w.constructed(tag, |w| self.0.iter().for_each(|e| e.write(w, defaults)));
        }
    }

    /// The extension of this type.
    pub fn get(&self, kind: &ExtensionType) -> Option<&ExtensionField> {
        self.0.iter().find(|e| e.kind == *kind)
    }

    /// The standard extension of this number (see [`number`]).
    pub fn standard(&self, number: i64) -> Option<&ExtensionField> {
        self.get(&ExtensionType::Standard(number))
    }

    /// Puts an extension in the place of the one of the same type, or after the others.
    pub fn set(&mut self, field: ExtensionField) {
        match self.0.iter_mut().find(|e| e.kind == field.kind) {
            Some(place) => *place = field,
            None => self.0.push(field),
        }
    }

    /// Takes an extension out.
    pub fn remove(&mut self, kind: &ExtensionType) {
        self.0.retain(|e| e.kind != *kind);
    }

    /// Brings all of them into this form: what is in its dialect already stays as it came, the rest loses
    /// the form it came in. Those that it does not have ([`Form::has`]) are taken out; gives how many those are. The
    /// internal trace is not counted: it is of no use to a peer whose dialect has none.
    pub fn set_form(&mut self, form: Form) -> usize {
        let dialect = form.dialect;
        let is_lost = |field: &&ExtensionField| !form.has(field) && !field.is_internal_trace();
        let lost = self.0.iter().filter(is_lost).count();
        self.0.retain(|field| form.has(field));
        for field in self.0.iter_mut().filter(|field| field.dialect != dialect) {
            field.dialect = dialect;
            field.raw = None;
        }
        lost
    }
}

/// Declares the standard extensions once: a constant each, and the table of names.
macro_rules! standard_extensions {
    ($($konst:ident = $number:literal $name:literal,)*) => {
        /// Numbers of standard extensions (X.411, StandardExtension).
        pub mod number {
            $(#[doc = $name] pub const $konst: i64 = $number;)*
        }

        /// The name X.411 gives a standard extension.
        pub fn standard_name(number: i64) -> Option<&'static str> {
            match number {
                $($number => Some($name),)*
                _ => None,
            }
        }
    };
}

standard_extensions! {
    RECIPIENT_REASSIGNMENT_PROHIBITED = 1 "recipient-reassignment-prohibited",
    ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT = 2 "originator-requested-alternate-recipient",
    DL_EXPANSION_PROHIBITED = 3 "dl-expansion-prohibited",
    CONVERSION_WITH_LOSS_PROHIBITED = 4 "conversion-with-loss-prohibited",
    LATEST_DELIVERY_TIME = 5 "latest-delivery-time",
    REQUESTED_DELIVERY_METHOD = 6 "requested-delivery-method",
    PHYSICAL_FORWARDING_PROHIBITED = 7 "physical-forwarding-prohibited",
    PHYSICAL_FORWARDING_ADDRESS_REQUEST = 8 "physical-forwarding-address-request",
    PHYSICAL_DELIVERY_MODES = 9 "physical-delivery-modes",
    REGISTERED_MAIL_TYPE = 10 "registered-mail-type",
    RECIPIENT_NUMBER_FOR_ADVICE = 11 "recipient-number-for-advice",
    PHYSICAL_RENDITION_ATTRIBUTES = 12 "physical-rendition-attributes",
    ORIGINATOR_RETURN_ADDRESS = 13 "originator-return-address",
    PHYSICAL_DELIVERY_REPORT_REQUEST = 14 "physical-delivery-report-request",
    ORIGINATOR_CERTIFICATE = 15 "originator-certificate",
    MESSAGE_TOKEN = 16 "message-token",
    CONTENT_CONFIDENTIALITY_ALGORITHM_IDENTIFIER = 17 "content-confidentiality-algorithm-identifier",
    CONTENT_INTEGRITY_CHECK = 18 "content-integrity-check",
    MESSAGE_ORIGIN_AUTHENTICATION_CHECK = 19 "message-origin-authentication-check",
    MESSAGE_SECURITY_LABEL = 20 "message-security-label",
    PROOF_OF_SUBMISSION_REQUEST = 21 "proof-of-submission-request",
    PROOF_OF_DELIVERY_REQUEST = 22 "proof-of-delivery-request",
    CONTENT_CORRELATOR = 23 "content-correlator",
    PROBE_ORIGIN_AUTHENTICATION_CHECK = 24 "probe-origin-authentication-check",
    REDIRECTION_HISTORY = 25 "redirection-history",
    DL_EXPANSION_HISTORY = 26 "dl-expansion-history",
    PHYSICAL_FORWARDING_ADDRESS = 27 "physical-forwarding-address",
    RECIPIENT_CERTIFICATE = 28 "recipient-certificate",
    PROOF_OF_DELIVERY = 29 "proof-of-delivery",
    ORIGINATOR_AND_DL_EXPANSION_HISTORY = 30 "originator-and-DL-expansion-history",
    REPORTING_DL_NAME = 31 "reporting-DL-name",
    REPORTING_MTA_CERTIFICATE = 32 "reporting-MTA-certificate",
    REPORT_ORIGIN_AUTHENTICATION_CHECK = 33 "report-origin-authentication-check",
    ORIGINATING_MTA_CERTIFICATE = 34 "originating-MTA-certificate",
    PROOF_OF_SUBMISSION = 35 "proof-of-submission",
    FORWARDING_REQUEST = 36 "forwarding-request",
    TRACE_INFORMATION = 37 "trace-information",
    INTERNAL_TRACE_INFORMATION = 38 "internal-trace-information",
    REPORTING_MTA_NAME = 39 "reporting-MTA-name",
    MULTIPLE_ORIGINATOR_CERTIFICATES = 40 "multiple-originator-certificates",
    BLIND_COPY_RECIPIENTS = 41 "blind-copy-recipients",
    DL_EXEMPTED_RECIPIENTS = 42 "dl-exempted-recipients",
    BODY_PART_ENCRYPTION_TOKEN = 43 "body-part-encryption-token",
    FORWARDED_CONTENT_TOKEN = 44 "forwarded-content-token",
    CERTIFICATE_SELECTORS = 45 "certificate-selectors",
    CERTIFICATE_SELECTORS_OVERRIDE = 46 "certificate-selectors-override",
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8]) -> ExtensionField {
        ExtensionField::read(&Element::parse(octets).unwrap()).unwrap()
    }

    fn written(field: &ExtensionField) -> Vec<u8> {
        let mut w = Writer::new();
        field.write(&mut w, Defaults::LeftOut);
        w.into_vec()
    }

    #[test]
    fn both_dialects_are_read() {
        let modern = [0x30, 0x80, 0x80, 1, 38, 0x81, 2, 6, 0x40, 0xa2, 2, 0x30, 0, 0, 0];
        let blue = [0x30, 9, 0xa0, 3, 2, 1, 38, 0xa2, 2, 0x30, 0];
        let blue_private = [0x30, 6, 0xa0, 4, 6, 2, 0x51, 1];
        let (m, b, p) = (read(&modern), read(&blue), read(&blue_private));
        assert_eq!((&m.kind, m.dialect), (&ExtensionType::Standard(38), Dialect::Modern));
        assert_eq!(m.criticality, Criticality::TRANSFER);
        assert_eq!((&b.kind, b.dialect), (&m.kind, Dialect::BlueBook1988));
        assert_eq!(b.value, m.value);
        assert_eq!(p.kind, ExtensionType::Private("2.1.1".parse().unwrap()));
        assert_eq!(p.value[..], NULL);
        // Relayed as they came, the indefinite length too.
        assert_eq!(written(&m), modern);
        assert_eq!(written(&b), blue);
    }

    #[test]
    fn all_are_brought_into_a_dialect_and_what_has_no_form_in_it_is_taken_out() {
        let blue = [0x30, 9, 0xa0, 3, 2, 1, 38, 0xa2, 2, 0x30, 0];
        let modern = [0x30, 7, 0x80, 1, 38, 0xa2, 2, 0x30, 0];
        let mut e = Extensions(vec![read(&blue)]);
        assert_eq!(e.set_form(Dialect::BlueBook1988.into()), 0);
        assert_eq!(written(&e.0[0]), blue);
        assert_eq!(e.set_form(Dialect::Modern.into()), 0);
        assert_eq!(written(&e.0[0]), modern);
        let own = ExtensionField::standard(38, Criticality::default(), |w| {
            w.constructed(universal::SEQUENCE, |_| {});
        });
        e.set(own);
        assert_eq!(e.0.len(), 1);
        e.set_form(Dialect::BlueBook1988.into());
        assert_eq!(written(&e.0[0]), blue);
        // What is in the dialect stays as it came, its lengths and an empty criticality too.
        let odd = [0x30, 0x80, 0xa0, 0x80, 2, 1, 38, 0, 0, 0x81, 2, 5, 0, 0xa2, 2, 0x30, 0, 0, 0];
        e.set(read(&odd));
        e.set_form(Dialect::BlueBook1988.into());
        assert_eq!(written(&e.0[0]), odd);
        e.set_form(Dialect::Modern.into());
        assert_eq!(written(&e.0[0]), modern);
        // A private one, in either form.
        e.set(read(&[0x30, 4, 0x83, 2, 0x51, 1]));
        e.set(read(&[0x30, 6, 0xa0, 4, 6, 2, 0x51, 2]));
        assert_eq!((e.set_form(Dialect::Modern.into()), e.0.len()), (0, 3));
        assert_eq!(written(&e.0[2]), [0x30, 4, 0x83, 2, 0x51, 2]);
        assert_eq!((e.set_form(Dialect::BlueBook1988.into()), e.0.len()), (2, 1));
        e.remove(&ExtensionType::Standard(38));
        assert_eq!(e, Extensions::default());
    }

    #[test]
    fn the_table_has_the_names() {
        assert_eq!(standard_name(number::MESSAGE_SECURITY_LABEL), Some("message-security-label"));
        assert_eq!(ExtensionType::Standard(38).to_string(), "internal-trace-information");
        assert_eq!(ExtensionType::Standard(99).to_string(), "99");
    }
}
