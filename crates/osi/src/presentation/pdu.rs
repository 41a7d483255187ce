//! PPDUs that are held whole (X.226 clause 8): all but the data.

use super::service::Value;
use base::ber::{
    Element, Error, Fault, Field, Header, Length, Oid, Reader, Tag, Writer, universal as u,
};
use bytes::Bytes;

/// Most contexts a CP may propose here.
const MAX_CONTEXTS: usize = 64;
/// `fully-encoded-data` (8.4.2).
pub(super) const FULLY_ENCODED: Tag = Tag::application(1);
/// `simply-encoded-data` (8.4.2).
pub(super) const SIMPLY_ENCODED: Tag = Tag::application(0);

/// The basic encoding rules' transfer syntax, 2.1.1.
pub(crate) fn ber() -> Oid {
    crate::profiles::oid(&[2, 1, 1])
}

/// One proposed context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) id: i64,
    pub(crate) abstract_syntax: Oid,
    /// Whether BER is among the transfer syntaxes.
    pub(crate) ber: bool,
}

/// One result of context definition (8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Verdict {
    /// 0.
    Acceptance,
    /// 1, user rejection.
    UserRejection,
    /// 2 with this provider-reason: 1 abstract syntax, 2 transfer syntaxes not supported.
    ProviderRejection(u8),
}

/// CP PPDU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cp {
    pub(crate) calling: Option<Bytes>,
    pub(crate) called: Option<Bytes>,
    pub(crate) contexts: Vec<Proposal>,
    pub(crate) values: Vec<Value>,
}

/// Why a CP is not taken up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpError {
    /// mode-selector x410-1984-mode.
    X410Mode,
    /// protocol-version without version 1.
    Version,
    /// default-context-name: all contexts here are named in the list.
    DefaultContext,
    /// Malformed.
    Malformed(Error),
}

impl From<Error> for CpError {
    fn from(e: Error) -> CpError {
        CpError::Malformed(e)
    }
}

/// Provider-reason of a CPR PPDU (8.2).
pub(crate) mod provider_reason {
    pub(crate) const NOT_SPECIFIED: i64 = 0;
    pub(crate) const TEMPORARY_CONGESTION: i64 = 1;
    pub(crate) const LOCAL_LIMIT: i64 = 2;
    pub(crate) const ADDRESS_UNKNOWN: i64 = 3;
    pub(crate) const VERSION: i64 = 4;
    pub(crate) const DEFAULT_CONTEXT: i64 = 5;
    pub(crate) const USER_DATA: i64 = 6;

    /// The reason in words.
    pub(crate) fn name(reason: i64) -> &'static str {
        match reason {
            NOT_SPECIFIED => "reason-not-specified",
            TEMPORARY_CONGESTION => "temporary-congestion",
            LOCAL_LIMIT => "local-limit-exceeded",
            ADDRESS_UNKNOWN => "called-presentation-address-unknown",
            VERSION => "protocol-version-not-supported",
            DEFAULT_CONTEXT => "default-context-not-supported",
            USER_DATA => "user-data-not-readable",
            7 => "no-PSAP-available",
            _ => "a reason without a name",
        }
    }
}

/// CPA PPDU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpa {
    pub(crate) responding: Option<Bytes>,
    pub(crate) results: Vec<Verdict>,
    pub(crate) values: Vec<Value>,
}

/// CPR PPDU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpr {
    pub(crate) results: Vec<Verdict>,
    pub(crate) provider_reason: Option<i64>,
    pub(crate) values: Vec<Value>,
    /// It is one of X.410 mode: the members of an RTORJ.
    pub(crate) x410: bool,
}

/// The user data of S-U-ABORT: ARU or ARP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AbortPpdu {
    /// ARU PPDU: the peer's presentation user.
    User(Vec<Value>),
    /// ARP PPDU: the peer's presentation protocol machine.
    Provider { reason: Option<i64>, event: Option<i64> },
}

/// abort-reason of an ARP PPDU (8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ProviderReason {
    /// 2.
    UnexpectedPpdu = 2,
    /// 3.
    UnexpectedSessionPrimitive = 3,
    /// 6.
    InvalidParameter = 6,
}

fn context(n: u32) -> Tag {
    Tag::context(n)
}

fn mode_selector(w: &mut Writer) {
    w.constructed(context(0), |w| w.integer(context(0), 1));
}

fn optional_octets(w: &mut Writer, tag: Tag, octets: Option<&Bytes>) {
    if let Some(octets) = octets {
        w.string(tag, octets);
    }
}

/// Writes User-data (8.4.2): fully-encoded, one PDV-list for each value.
pub(crate) fn write_values(w: &mut Writer, values: &[Value]) {
    if values.is_empty() {
        return;
    }
    w.constructed(FULLY_ENCODED, |w| {
        for value in values {
            w.constructed(u::SEQUENCE, |w| {
                w.integer(u::INTEGER, value.context);
                w.constructed(context(0), |w| w.raw(&value.octets));
            });
        }
    });
}

/// User-data alone, as S-RELEASE and S-TOKEN-PLEASE carry it.
pub(crate) fn user_data(value: &Value) -> Bytes {
    let mut w = Writer::new();
    write_values(&mut w, std::slice::from_ref(value));
    w.into_vec().into()
}

/// The octets before and after a value of `length` octets that is streamed as User-data; the
/// indefinite form where it is `None`.
pub(super) fn data_frame(id: i64, length: Option<u64>) -> (Bytes, Bytes) {
    let mut w = Writer::new();
    let Some(length) = length else {
        w.header(FULLY_ENCODED, true, Length::Indefinite);
        w.header(u::SEQUENCE, true, Length::Indefinite);
        w.integer(u::INTEGER, id);
        w.header(context(0), true, Length::Indefinite);
        return (w.into_vec().into(), Bytes::from_static(&[0; 6]));
    };
    let mut identifier = Writer::new();
    identifier.integer(u::INTEGER, id);
    let value = Length::Definite(length);
    let list = Header::encoded_size(context(0), value) as u64
        + length
        + identifier.as_slice().len() as u64;
    let all = Header::encoded_size(u::SEQUENCE, Length::Definite(list)) as u64 + list;
    w.header(FULLY_ENCODED, true, Length::Definite(all));
    w.header(u::SEQUENCE, true, Length::Definite(list));
    w.raw(identifier.as_slice());
    w.header(context(0), true, value);
    (w.into_vec().into(), Bytes::new())
}

/// Encodes a CP PPDU.
pub(crate) fn encode_cp(cp: &Cp) -> Bytes {
    let mut w = Writer::new();
    w.constructed(u::SET, |w| {
        mode_selector(w);
        w.constructed(context(2), |w| {
            optional_octets(w, context(1), cp.calling.as_ref());
            optional_octets(w, context(2), cp.called.as_ref());
            w.constructed(context(4), |w| {
                for proposal in &cp.contexts {
                    w.constructed(u::SEQUENCE, |w| {
                        w.integer(u::INTEGER, proposal.id);
                        w.oid(u::OID, &proposal.abstract_syntax);
                        w.constructed(u::SEQUENCE, |w| w.oid(u::OID, &ber()));
                    });
                }
            });
            write_values(w, &cp.values);
        });
    });
    w.into_vec().into()
}

fn write_results(w: &mut Writer, results: &[Verdict]) {
    if results.is_empty() {
        return;
    }
    w.constructed(context(5), |w| {
        for verdict in results {
            w.constructed(u::SEQUENCE, |w| match verdict {
                Verdict::Acceptance => {
                    w.integer(context(0), 0);
                    w.oid(context(1), &ber());
                }
                Verdict::UserRejection => w.integer(context(0), 1),
                Verdict::ProviderRejection(reason) => {
                    w.integer(context(0), 2);
                    w.integer(context(2), i64::from(*reason));
                }
            });
        }
    });
}

/// Encodes a CPA PPDU.
pub(crate) fn encode_cpa(cpa: &Cpa) -> Bytes {
    let mut w = Writer::new();
    w.constructed(u::SET, |w| {
        mode_selector(w);
        w.constructed(context(2), |w| {
            optional_octets(w, context(3), cpa.responding.as_ref());
            write_results(w, &cpa.results);
            write_values(w, &cpa.values);
        });
    });
    w.into_vec().into()
}

/// Encodes a CPR PPDU of normal mode.
pub(crate) fn encode_cpr(cpr: &Cpr) -> Bytes {
    let mut w = Writer::new();
    w.constructed(u::SEQUENCE, |w| {
        write_results(w, &cpr.results);
        if let Some(reason) = cpr.provider_reason {
            w.integer(context(10), reason);
        }
        write_values(w, &cpr.values);
    });
    w.into_vec().into()
}

/// The CPR PPDU that answers a CP of X.410 mode: the members of an RTORJ, with refuseReason
/// validationFailure (X.228 9.1).
pub(crate) fn encode_cpr_x410() -> Bytes {
    let mut w = Writer::new();
    w.constructed(u::SET, |w| w.integer(context(0), 2));
    w.into_vec().into()
}

/// Encodes an ARU PPDU; the identifier list names the transfer syntax of each value's context.
pub(crate) fn encode_aru(value: Option<&Value>) -> Bytes {
    let mut w = Writer::new();
    w.constructed(context(0), |w| {
        let Some(value) = value else { return };
        w.constructed(context(0), |w| {
            w.constructed(u::SEQUENCE, |w| {
                w.integer(u::INTEGER, value.context);
                w.oid(u::OID, &ber());
            });
        });
        write_values(w, std::slice::from_ref(value));
    });
    w.into_vec().into()
}

/// Encodes an ARP PPDU.
pub(crate) fn encode_arp(reason: ProviderReason, event: Option<i64>) -> Bytes {
    let mut w = Writer::new();
    w.constructed(u::SEQUENCE, |w| {
        w.integer(context(0), i64::from(reason as u8));
        if let Some(event) = event {
            w.integer(context(1), event);
        }
    });
    w.into_vec().into()
}

fn read_octets(e: &Element<'_>, name: &'static str) -> Result<Option<Bytes>, Error> {
    Ok(Some(Bytes::from(e.octets().field(name)?.into_owned())))
}

fn read_version(e: &Element<'_>) -> Result<bool, Error> {
    let bits = e.bits().field("protocol-version")?;
    Ok(bits.is_empty() || bits.get(0))
}

/// Decodes User-data held whole.
pub(crate) fn decode_values(octets: &[u8]) -> Result<Vec<Value>, Error> {
    if octets.is_empty() {
        return Ok(Vec::new());
    }
    read_values(&Element::parse(octets).field("User-data")?)
}

fn read_values(e: &Element<'_>) -> Result<Vec<Value>, Error> {
    if e.tag == SIMPLY_ENCODED {
        return Err(Fault::Value("simply-encoded-data with several contexts (X.226 8.4.2)"))
            .field("User-data");
    }
    if e.tag != FULLY_ENCODED {
        return Err(Fault::Unexpected(e.tag)).field("User-data");
    }
    let mut values = Vec::new();
    let mut lists = e.children().field("fully-encoded-data")?;
    while let Some(list) = lists.next().field("PDV-list")? {
        if list.tag != u::SEQUENCE {
            return Err(Fault::Unexpected(list.tag)).field("PDV-list");
        }
        values.push(read_pdv(&list).field("PDV-list")?);
    }
    Ok(values)
}

/// A PDV-list's members, which are also an EXTERNAL's but for the descriptor (X.690 8.18).
fn read_pdv(list: &Element<'_>) -> Result<Value, Error> {
    let mut members = list.children()?;
    members.optional(u::OID).field("transfer-syntax-name")?;
    let id = members.require(u::INTEGER).and_then(|e| e.integer());
    let context = id.field("presentation-context-identifier")?;
    let value = members.next()?.ok_or(Fault::Truncated).field("presentation-data-values")?;
    members.finish()?;
    Ok(Value { context, octets: read_encoding(&value).field("presentation-data-values")? })
}

/// The encoding CHOICE of PDV-list and EXTERNAL: `[0]` single-ASN1-type, `[1]` octet-aligned,
/// `[2]` arbitrary.
pub(crate) fn read_encoding(e: &Element<'_>) -> Result<Bytes, Error> {
    Ok(match e.tag {
        Tag { class: base::ber::Class::Context, number: 0 } => {
            Bytes::copy_from_slice(e.only_child()?.raw)
        }
        Tag { class: base::ber::Class::Context, number: 1 } => e.octets()?.into_owned().into(),
        Tag { class: base::ber::Class::Context, number: 2 } => {
            let bits = e.bits()?;
            if bits.unused != 0 {
                return Err(Fault::Value("BIT STRING of whole octets").into());
            }
            bits.octets.into_owned().into()
        }
        other => return Err(Fault::Unexpected(other).into()),
    })
}

fn read_proposals(e: &Element<'_>) -> Result<Vec<Proposal>, Error> {
    let mut proposals: Vec<Proposal> = Vec::new();
    let mut items = e.children()?;
    while let Some(item) = items.next()? {
        let mut members = item.children()?;
        let id = members.require(u::INTEGER).and_then(|e| e.integer());
        let id = id.field("presentation-context-identifier")?;
        let name = members.require(u::OID).and_then(|e| e.oid());
        let abstract_syntax = name.field("abstract-syntax-name")?;
        let names = members.require(u::SEQUENCE).field("transfer-syntax-name-list")?;
        let mut names = names.children().field("transfer-syntax-name-list")?;
        let mut has_ber = false;
        while let Some(name) = names.next().field("transfer-syntax-name-list")? {
            has_ber |= name.oid().field("transfer-syntax-name")? == ber();
        }
        if proposals.len() >= MAX_CONTEXTS {
            return Err(Fault::TooMany(MAX_CONTEXTS as u64).into());
        }
        if proposals.iter().any(|p| p.id == id) {
            return Err(Fault::Value("presentation-context-identifier used twice").into());
        }
        proposals.push(Proposal { id, abstract_syntax, ber: has_ber });
    }
    Ok(proposals)
}

/// The members of a SET with mode-selector: whether the mode is normal, and the normal-mode
/// parameters where they are present.
fn read_mode<'a>(octets: &'a [u8]) -> Result<(bool, Option<Element<'a>>), Error> {
    let set = Element::parse(octets)?;
    if set.tag != u::SET {
        return Err(Fault::Unexpected(set.tag).into());
    }
    let (mut normal, mut parameters) = (None, None);
    let mut members = set.children()?;
    while let Some(member) = members.next()? {
        let known = [(0, normal.is_some()), (2, parameters.is_some())];
        if known.iter().any(|(number, seen)| *seen && member.tag == context(*number)) {
            return Err(Fault::Unexpected(member.tag).into());
        }
        if member.tag == context(0) {
            let mode = member.only_child().and_then(|e| e.integer()).field("mode-selector")?;
            normal = Some(match mode {
                0 => false,
                1 => true,
                _ => {
                    return Err(Fault::Value("x410-1984-mode(0) or normal-mode(1)"))
                        .field("mode-selector");
                }
            });
        } else if member.tag == context(2) {
            parameters = Some(member);
        }
    }
    let normal = normal.ok_or(Fault::Missing(context(0))).field("mode-selector")?;
    Ok((normal, parameters))
}

/// Decodes a CP PPDU.
pub(crate) fn decode_cp(octets: &[u8]) -> Result<Cp, CpError> {
    let (normal, parameters) = read_mode(octets).field("CP PPDU")?;
    if !normal {
        return Err(CpError::X410Mode);
    }
    let parameters =
        parameters.ok_or(Fault::Missing(context(2))).field("normal-mode-parameters")?;
    let (mut cp, mut version, mut default_context) = (Cp::default(), true, false);
    read_members(&parameters, |e, number| {
        match number {
            Some(0) => version = read_version(e)?,
            Some(1) => cp.calling = read_octets(e, "calling-presentation-selector")?,
            Some(2) => cp.called = read_octets(e, "called-presentation-selector")?,
            Some(6) => default_context = true,
            Some(4) => {
                cp.contexts = read_proposals(e).field("presentation-context-definition-list")?;
            }
            Some(_) => {}
            None => cp.values = read_values(e)?,
        }
        Ok(())
    })
    .field("CP PPDU")?;
    if !version {
        return Err(CpError::Version);
    }
    if default_context {
        return Err(CpError::DefaultContext);
    }
    Ok(cp)
}

/// Walks normal-mode parameters in any order: context tags by number, else `None` for User-data.
fn read_members(
    e: &Element<'_>,
    mut take: impl FnMut(&Element<'_>, Option<u32>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            Tag { class: base::ber::Class::Context, number } => take(&member, Some(number))?,
            _ => take(&member, None)?,
        }
    }
    Ok(())
}

fn read_results(e: &Element<'_>) -> Result<Vec<Verdict>, Error> {
    let mut results = Vec::new();
    let mut items = e.children()?;
    while let Some(item) = items.next()? {
        let (mut result, mut reason) = (None, 0);
        let mut members = item.children()?;
        while let Some(member) = members.next()? {
            if member.tag == context(0) {
                result = Some(member.integer().field("result")?);
            } else if member.tag == context(2) {
                reason = u8::try_from(member.integer().field("provider-reason")?).unwrap_or(0);
            }
        }
        if results.len() >= MAX_CONTEXTS {
            return Err(Fault::TooMany(MAX_CONTEXTS as u64).into());
        }
        results.push(match result {
            Some(0) => Verdict::Acceptance,
            Some(1) => Verdict::UserRejection,
            Some(2) => Verdict::ProviderRejection(reason),
            Some(_) => return Err(Fault::Value("result").into()),
            None => return Err(Fault::Missing(context(0)).into()),
        });
    }
    Ok(results)
}

/// Decodes a CPA PPDU.
pub(crate) fn decode_cpa(octets: &[u8]) -> Result<Cpa, Error> {
    let (normal, parameters) = read_mode(octets).field("CPA PPDU")?;
    if !normal {
        return Err(Fault::Value("mode-selector: normal mode was asked for")).field("CPA PPDU");
    }
    let parameters =
        parameters.ok_or(Fault::Missing(context(2))).field("normal-mode-parameters")?;
    let mut cpa = Cpa::default();
    read_members(&parameters, |e, number| {
        match number {
            Some(3) => cpa.responding = read_octets(e, "responding-presentation-selector")?,
            Some(5) => {
                cpa.results =
                    read_results(e).field("presentation-context-definition-result-list")?;
            }
            Some(_) => {}
            None => cpa.values = read_values(e)?,
        }
        Ok(())
    })
    .field("CPA PPDU")?;
    Ok(cpa)
}

/// Decodes a CPR PPDU; one of X.410 mode (a SET) reads as a CPR without values.
pub(crate) fn decode_cpr(octets: &[u8]) -> Result<Cpr, Error> {
    let e = Element::parse(octets).field("CPR PPDU")?;
    let mut cpr = Cpr::default();
    if e.tag == u::SET {
        cpr.x410 = true;
        return Ok(cpr);
    }
    if e.tag != u::SEQUENCE {
        return Err(Fault::Unexpected(e.tag)).field("CPR PPDU");
    }
    read_members(&e, |e, number| {
        match number {
            Some(5) => {
                cpr.results =
                    read_results(e).field("presentation-context-definition-result-list")?;
            }
            Some(10) => cpr.provider_reason = Some(e.integer().field("provider-reason")?),
            Some(_) => {}
            None => cpr.values = read_values(e)?,
        }
        Ok(())
    })
    .field("CPR PPDU")?;
    Ok(cpr)
}

/// Decodes what S-U-ABORT carries: ARU, ARP, or nothing.
pub(crate) fn decode_abort(octets: &[u8]) -> Result<AbortPpdu, Error> {
    if octets.is_empty() {
        return Ok(AbortPpdu::User(Vec::new()));
    }
    let e = Element::parse(octets).field("ARU or ARP PPDU")?;
    if e.tag == context(0) {
        let mut values = Vec::new();
        read_members(&e, |e, number| {
            if number.is_none() {
                values = read_values(e)?;
            }
            Ok(())
        })
        .field("ARU PPDU")?;
        return Ok(AbortPpdu::User(values));
    }
    if e.tag == u::SET {
        return Ok(AbortPpdu::User(Vec::new()));
    }
    if e.tag != u::SEQUENCE {
        return Err(Fault::Unexpected(e.tag)).field("ARU or ARP PPDU");
    }
    let (mut reason, mut event) = (None, None);
    let mut members: Reader<'_> = e.children().field("ARP PPDU")?;
    while let Some(member) = members.next().field("ARP PPDU")? {
        if member.tag == context(0) {
            reason = Some(member.integer().field("provider-reason")?);
        } else if member.tag == context(1) {
            event = Some(member.integer().field("event-identifier")?);
        }
    }
    Ok(AbortPpdu::Provider { reason, event })
}
