//! Every vector is decoded, and encoded again to the same octets.

use crate::association::written;
use crate::vector::{Kind, Vector, all, folder};
use base::ber::{Element, Error};
use p7::auto_action::{AutoActionKind, AutoAlert};
use p7::auto_forward::AutoForward;
use p7::operation as op;
use p7::{MsBindArgument, MsBindError, MsBindResult, MsError};
use std::collections::BTreeSet;

/// Decodes the vector and encodes it.
fn again(vector: &Vector) -> Result<Vec<u8>, Error> {
    let e = Element::parse(&vector.octets)?;
    macro_rules! same {
        ($type:ty) => {{
            let value = <$type>::read(&e)?;
            written(|w| value.write(w))
        }};
    }
    let out = match vector.kind {
        Kind::BindArgument => same!(MsBindArgument),
        Kind::BindResult => same!(MsBindResult),
        Kind::BindError => same!(MsBindError),
        Kind::Argument(op::SUMMARIZE) => same!(op::SummarizeArgument),
        Kind::Result(op::SUMMARIZE) => same!(op::SummarizeResult),
        Kind::Argument(op::LIST) => same!(op::ListArgument),
        Kind::Result(op::LIST) => same!(op::ListResult),
        Kind::Argument(op::FETCH) => same!(op::FetchArgument),
        Kind::Result(op::FETCH) => same!(op::FetchResult),
        Kind::Argument(op::DELETE) => same!(op::DeleteArgument),
        Kind::Result(op::DELETE) => same!(op::DeleteResult),
        Kind::Argument(op::REGISTER_MS) => {
            let mut value = op::RegisterMsArgument::read(&e)?;
            // The parameters of auto-actions are decoded, too.
            let registrations = value.auto_action_registrations.iter_mut();
            for action in registrations.filter(|action| action.parameter.is_some()) {
                *action = match AutoActionKind::from_oid(&action.auto_action_type) {
                    Some(AutoActionKind::AutoForward) => {
                        AutoForward::from_registration(action)?.registration(action.identifier)
                    }
                    Some(AutoActionKind::AutoAlert) => {
                        AutoAlert::from_registration(action)?.registration(action.identifier)
                    }
                    _ => continue,
                };
            }
            let is_of_1994 = vector.edition == 1994;
            assert_eq!(value.is_of_1994(), is_of_1994, "{}", vector.name);
            written(|w| value.write(w))
        }
        Kind::Result(op::REGISTER_MS) => same!(op::RegisterMsResult),
        Kind::Argument(op::ALERT) => same!(op::AlertArgument),
        Kind::Result(op::ALERT) => op::EMPTY_RESULT.to_vec().into(),
        Kind::Argument(op::MODIFY) => same!(op::ModifyArgument),
        Kind::Result(op::MODIFY) => same!(op::ModifyResult),
        Kind::Error(code) => {
            let value = MsError::read(code, Some(&e))?;
            assert_eq!(value.code(), code);
            written(|w| value.write_parameter(w))
        }
        kind => panic!("{}: {kind:?}", vector.name),
    };
    Ok(out.to_vec())
}

#[test]
fn every_vector_is_encoded_to_the_same_octets() {
    for vector in all() {
        let out = again(&vector).unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        let hex = |octets: &[u8]| octets.iter().map(|o| format!("{o:02X}")).collect::<String>();
        assert_eq!(hex(&out), hex(&vector.octets), "{}", vector.name);
    }
}

#[test]
fn a_cut_vector_is_an_error() {
    for vector in all() {
        for end in 0..vector.octets.len() {
            let cut = Vector { octets: vector.octets[..end].to_vec(), ..vector.clone() };
            assert!(again(&cut).is_err(), "{} cut at {end}", vector.name);
        }
    }
}

#[test]
fn every_operation_and_error_has_a_vector() {
    let of = |edition: u16| -> BTreeSet<Kind> {
        all().iter().filter(|vector| vector.edition == edition).map(|v| v.kind).collect()
    };
    let binds = [Kind::BindArgument, Kind::BindResult, Kind::BindError];
    let operations = |codes: std::ops::RangeInclusive<i64>| {
        codes.flat_map(|code| [Kind::Argument(code), Kind::Result(code)])
    };
    let of_1988 = binds.into_iter().chain(operations(20..=25)).chain((21..=29).map(Kind::Error));
    let lacking: Vec<Kind> = of_1988.filter(|kind| !of(1988).contains(kind)).collect();
    assert_eq!(lacking, []);
    // 1994 added nothing to alert, and members to all other operations.
    let errors = [21, 22, 23, 27, 30, 31, 32, 33, 34].map(Kind::Error);
    let of_1994 = binds.into_iter().chain(operations(20..=24)).chain(operations(26..=26));
    let lacking: Vec<Kind> =
        of_1994.chain(errors).filter(|kind| !of(1994).contains(kind)).collect();
    assert_eq!(lacking, []);
}

/// The page names what is not proven, and nothing else as such.
#[test]
fn the_page_names_what_is_unproven() {
    let page = std::fs::read_to_string(folder().join("../../../docs/conformance.md")).unwrap();
    let (_, page) = page.split_once("## Unproven").unwrap();
    let (page, _) = page.split_once("## Bounds").unwrap();
    let named: BTreeSet<&str> =
        page.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    let unproven = all();
    let unproven = unproven.iter().filter(|vector| vector.unproven.is_some());
    let unproven: BTreeSet<&str> = unproven.map(|vector| vector.name.as_str()).collect();
    assert_eq!(named, unproven);
}
