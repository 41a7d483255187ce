//! ACSE APDUs (X.227 clause 9).

use crate::presentation::pdu::{ber, read_encoding};
use crate::presentation::service::Value;
use base::ber::{Element, Error, Fault, Field, Oid, Reader, Tag, Writer, universal as u};
use bytes::Bytes;

/// user-information (clause 9.1), in every APDU.
const USER_INFORMATION: Tag = Tag::context(30);

/// Associate-source-diagnostic: its source and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Diagnostic {
    /// acse-service-user.
    User(i64),
    /// acse-service-provider.
    Provider(i64),
}

/// acse-service-user diagnostics used here.
pub(crate) mod diagnostic {
    /// null.
    pub(crate) const NULL: i64 = 0;
    /// no-reason-given.
    pub(crate) const NO_REASON: i64 = 1;
    /// application-context-name-not-supported.
    pub(crate) const APPLICATION_CONTEXT: i64 = 2;
}

/// Associate-result values.
pub(crate) mod result {
    /// accepted.
    pub(crate) const ACCEPTED: i64 = 0;
    /// rejected-permanent.
    pub(crate) const REJECTED_PERMANENT: i64 = 1;
    /// rejected-transient.
    pub(crate) const REJECTED_TRANSIENT: i64 = 2;
}

/// An ACSE APDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Apdu {
    /// AARQ, [APPLICATION 0].
    Aarq {
        /// Whether protocol-version has version 1.
        version1: bool,
        application_context: Oid,
        information: Option<Value>,
    },
    /// AARE, [APPLICATION 1].
    Aare {
        application_context: Oid,
        result: i64,
        diagnostic: Diagnostic,
        information: Option<Value>,
    },
    /// RLRQ, [APPLICATION 2].
    Rlrq,
    /// RLRE, [APPLICATION 3].
    Rlre,
    /// ABRT, [APPLICATION 4].
    Abrt {
        /// Whether the peer's ACPM is the source, not its user.
        provider: bool,
        information: Option<Value>,
    },
}

fn context(n: u32) -> Tag {
    Tag::context(n)
}

fn write_information(w: &mut Writer, information: Option<&Value>) {
    let Some(value) = information else { return };
    w.constructed(USER_INFORMATION, |w| {
        w.constructed(u::EXTERNAL, |w| {
            w.oid(u::OID, &ber());
            w.integer(u::INTEGER, value.context);
            w.constructed(context(0), |w| w.raw(&value.octets));
        });
    });
}

impl Apdu {
    /// The encoding.
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        match self {
            Apdu::Aarq { application_context, information, .. } => {
                w.constructed(Tag::application(0), |w| {
                    w.constructed(context(1), |w| w.oid(u::OID, application_context));
                    write_information(w, information.as_ref());
                });
            }
            Apdu::Aare { application_context, result, diagnostic, information } => {
                w.constructed(Tag::application(1), |w| {
                    w.constructed(context(1), |w| w.oid(u::OID, application_context));
                    w.constructed(context(2), |w| w.integer(u::INTEGER, *result));
                    w.constructed(context(3), |w| {
                        let (choice, code) = match diagnostic {
                            Diagnostic::User(code) => (1, *code),
                            Diagnostic::Provider(code) => (2, *code),
                        };
                        w.constructed(context(choice), |w| w.integer(u::INTEGER, code));
                    });
                    write_information(w, information.as_ref());
                });
            }
            // Reason 0 is normal, in both.
            Apdu::Rlrq => w.constructed(Tag::application(2), |w| w.integer(context(0), 0)),
            Apdu::Rlre => w.constructed(Tag::application(3), |w| w.integer(context(0), 0)),
            Apdu::Abrt { provider, information } => w.constructed(Tag::application(4), |w| {
                w.integer(context(0), i64::from(*provider));
                write_information(w, information.as_ref());
            }),
        }
        w.into_vec().into()
    }

    /// Decodes an APDU.
    pub(crate) fn decode(octets: &[u8]) -> Result<Apdu, Error> {
        let e = Element::parse(octets).field("ACSE APDU")?;
        let fields = || e.children().and_then(Fields::read);
        match (e.tag.class, e.tag.number) {
            (base::ber::Class::Application, 0) => fields()?.aarq().field("AARQ"),
            (base::ber::Class::Application, 1) => fields()?.aare().field("AARE"),
            (base::ber::Class::Application, 2) => fields().field("RLRQ").map(|_| Apdu::Rlrq),
            (base::ber::Class::Application, 3) => fields().field("RLRE").map(|_| Apdu::Rlre),
            (base::ber::Class::Application, 4) => fields()?.abrt().field("ABRT"),
            _ => Err(Fault::Unexpected(e.tag)).field("ACSE APDU"),
        }
    }
}

/// The members of an APDU by tag number; the ones not used here (titles, qualifiers) are left out.
#[derive(Default)]
struct Fields<'a> {
    zero: Option<Element<'a>>,
    one: Option<Element<'a>>,
    two: Option<Element<'a>>,
    three: Option<Element<'a>>,
    information: Option<Element<'a>>,
}

impl<'a> Fields<'a> {
    fn read(mut members: Reader<'a>) -> Result<Fields<'a>, Error> {
        let mut fields = Fields::default();
        while let Some(member) = members.next()? {
            if member.tag.class != base::ber::Class::Context {
                return Err(Fault::Unexpected(member.tag).into());
            }
            match member.tag.number {
                0 => fields.zero = Some(member),
                1 => fields.one = Some(member),
                2 => fields.two = Some(member),
                3 => fields.three = Some(member),
                30 => fields.information = Some(member),
                _ => {}
            }
        }
        Ok(fields)
    }

    fn application_context(&self) -> Result<Oid, Error> {
        let e = self.one.ok_or(Fault::Missing(context(1))).map_err(Error::from);
        e.and_then(|e| e.only_child()?.oid()).field("application-context-name")
    }

    /// The first EXTERNAL of user-information (X.690 8.18).
    fn information(&self) -> Result<Option<Value>, Error> {
        let Some(e) = self.information else { return Ok(None) };
        read_information(&e).field("user-information")
    }

    fn aarq(&self) -> Result<Apdu, Error> {
        let version1 = match &self.zero {
            None => true,
            Some(e) => e.bits().field("protocol-version")?.get(0),
        };
        Ok(Apdu::Aarq {
            version1,
            application_context: self.application_context()?,
            information: self.information()?,
        })
    }

    fn aare(&self) -> Result<Apdu, Error> {
        let result = self.two.ok_or(Fault::Missing(context(2))).map_err(Error::from);
        let result = result.and_then(|e| e.only_child()?.integer()).field("result")?;
        let diagnostic = match &self.three {
            None => Diagnostic::User(diagnostic::NULL),
            Some(e) => read_diagnostic(e).field("result-source-diagnostic")?,
        };
        Ok(Apdu::Aare {
            application_context: self.application_context()?,
            result,
            diagnostic,
            information: self.information()?,
        })
    }

    fn abrt(&self) -> Result<Apdu, Error> {
        let provider = match &self.zero {
            None => false,
            Some(e) => e.integer().field("abort-source")? == 1,
        };
        // There is nothing to answer any more: user information of another form than ours is handed
        // on as it came, under no context.
        let information = self.information().unwrap_or_else(|_| {
            let raw = self.information.map(|e| Bytes::copy_from_slice(e.content));
            raw.map(|octets| Value { context: 0, octets })
        });
        Ok(Apdu::Abrt { provider, information })
    }
}

fn read_diagnostic(e: &Element<'_>) -> Result<Diagnostic, Error> {
    let choice = e.only_child()?;
    let code = choice.only_child()?.integer()?;
    match choice.tag.number {
        1 => Ok(Diagnostic::User(code)),
        2 => Ok(Diagnostic::Provider(code)),
        _ => Err(Fault::Unexpected(choice.tag).into()),
    }
}

fn read_information(e: &Element<'_>) -> Result<Option<Value>, Error> {
    let mut items = e.children()?;
    let Some(external) = items.next()? else { return Ok(None) };
    if external.tag != u::EXTERNAL {
        return Err(Fault::Unexpected(external.tag).into());
    }
    let mut members = external.children()?;
    members.optional(u::OID)?;
    let id = members.require(u::INTEGER).and_then(|e| e.integer());
    let context = id.field("indirect-reference")?;
    members.optional(u::OBJECT_DESCRIPTOR)?;
    let encoding = members.next()?.ok_or(Fault::Truncated).field("encoding")?;
    Ok(Some(Value { context, octets: read_encoding(&encoding).field("encoding")? }))
}
