//! ACSE APDUs (X.227 clause 9).

use super::fields::read_encoding;
use super::fields::{named, oid};
use super::{Cause, Layer, Out, rtse};
use base::ber::{Class, Element, Error, Tag, universal as u};

/// result (X.227 9.2).
const RESULTS: [&str; 3] = ["accepted", "rejected-permanent", "rejected-transient"];

/// Diagnostics of acse-service-user.
const USER: [&str; 5] = [
    "null",
    "no-reason-given",
    "application-context-name-not-supported",
    "calling-AP-title-not-recognized",
    "calling-AP-invocation-identifier-not-recognized",
];

/// Diagnostics of acse-service-provider.
const PROVIDER: [&str; 3] = ["null", "no-reason-given", "no-common-acse-version"];

/// Members that have no part in the explanation, by tag.
const NAMES: [(u32, &str); 8] = [
    (4, "responding AP-title"),
    (5, "responding AE-qualifier"),
    (6, "calling AP-title"),
    (7, "calling AE-qualifier"),
    (8, "calling AP-invocation-identifier"),
    (9, "calling AE-invocation-identifier"),
    (29, "implementation-information"),
    (12, "calling-authentication-value"),
];

/// Explains an APDU.
pub(super) fn explain(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut details, mut information) = (Vec::new(), None);
    let (mut zero, mut two, mut three) = (None, None, None);
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match member.tag.number {
            0 => zero = Some(member),
            1 => {
                let name = member.only_child()?.oid()?;
                details.push(format!("application context {}", oid(&name)));
            }
            2 if e.tag.number == 1 => two = Some(member),
            3 if e.tag.number == 1 => three = Some(member),
            30 => information = Some(member),
            number => {
                let name = NAMES.iter().find(|(tag, _)| *tag == number);
                let name = name.map_or_else(|| member.tag.to_string(), |(_, name)| (*name).into());
                details.push(format!("{name}: present, not read"));
            }
        }
    }
    let mut cause = None;
    let text = match e.tag.number {
        0 => "AARQ".to_owned(),
        1 => {
            let (result, why) = answer(two.as_ref(), three.as_ref())?;
            cause = why;
            format!("AARE: {}", named(result, &RESULTS))
        }
        2 => "RLRQ: asks for the release".to_owned(),
        3 => "RLRE: agrees to the release".to_owned(),
        _ => {
            let by_provider = zero.is_some_and(|e| e.integer().is_ok_and(|source| source == 1));
            cause = Some((Cause::AcseAbort, String::new()));
            let source = if by_provider { "its ACSE" } else { "the user of its ACSE" };
            format!("ABRT by {source}")
        }
    };
    if let Some((_, diagnostic)) = cause.as_ref().filter(|(_, text)| !text.is_empty()) {
        details.push(diagnostic.clone());
    }
    out.line(Layer::Acse, text, details);
    if let Some((cause, _)) = cause {
        out.trouble(cause, "X.227 9", e.raw);
    }
    information.map_or(Ok(()), |information| user_information(&information, out))
}

/// The result of an AARE, and why it is not accepted.
fn answer(
    result: Option<&Element<'_>>,
    diagnostic: Option<&Element<'_>>,
) -> Result<(i64, Option<(Cause, String)>), Error> {
    let result = match result {
        Some(e) => e.only_child()?.integer()?,
        None => 0,
    };
    if result == 0 {
        return Ok((0, None));
    }
    let Some(diagnostic) = diagnostic else {
        return Ok((result, Some((Cause::AcseRejected(0), String::new()))));
    };
    let choice = diagnostic.only_child()?;
    let code = choice.only_child()?.integer()?;
    Ok((
        result,
        Some(match (choice.tag.number, code) {
            (1, 2) => (Cause::ApplicationContext, format!("its user: {}", named(code, &USER))),
            (1, _) => (Cause::AcseRejected(code), format!("its user: {}", named(code, &USER))),
            _ => (Cause::AcseRejected(code), format!("its ACSE: {}", named(code, &PROVIDER))),
        }),
    ))
}

/// user-information: EXTERNALs with the APDUs of RTSE.
fn user_information(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let mut externals = e.children()?;
    while let Some(external) = externals.next()? {
        let mut members = external.children()?;
        while let Some(member) = members.next()? {
            let is_encoding = member.tag.class == Class::Context;
            if is_encoding && external.tag == u::EXTERNAL {
                let octets = read_encoding(&member)?;
                rtse::data(&Element::parse(&octets)?, out)?;
            } else if member.tag == Tag::context(0) {
                rtse::data(&member.only_child()?, out)?;
            }
        }
    }
    Ok(())
}
