//! Whatever is written is read again; a part of it is an error; and no octets make it panic.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use base::ber::{Element, Error, Writer};
use p7::auto_action::{AutoActionDeregistration, AutoActionRegistration, AutoAlert};
use p7::matching::{evaluate, matches};
use p7::operation::*;
use p7::{
    EntryInformation, Filter, MsBindArgument, MsBindError, MsBindResult, MsError, Selector, testing,
};
use proptest::prelude::*;
use std::fmt::Debug;

type Read<T> = fn(&Element<'_>) -> Result<T, Error>;

/// The value written and read is the same, a SET with members of later editions too, and no part of
/// the octets is a value.
fn round_trip<T: PartialEq + Debug>(
    value: &T,
    read: Read<T>,
    write: impl Fn(&T, &mut Writer),
) -> Result<(), TestCaseError> {
    let mut w = Writer::new();
    write(value, &mut w);
    let octets = w.into_vec();
    let element = Element::parse(&octets).unwrap();
    let again = read(&element);
    prop_assert_eq!(again.as_ref(), Ok(value));
    let step = 1 + octets.len() / 200;
    for end in (0..octets.len()).step_by(step) {
        prop_assert!(Element::parse(&octets[..end]).and_then(|e| read(&e)).is_err());
    }
    if element.tag == base::ber::universal::SET {
        let mut w = Writer::new();
        w.constructed(element.tag, |w| {
            w.primitive(base::ber::Tag::context(30), b"later");
            w.raw(element.content);
            w.constructed(base::ber::Tag::private(3), |_| {});
        });
        let again = Element::parse(w.as_slice()).and_then(|e| read(&e));
        prop_assert_eq!(again.as_ref(), Ok(value));
    }
    Ok(())
}

macro_rules! round_trips {
    ($($name:ident $strategy:expr, $type:ty;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(64))]
            $(
                #[test]
                fn $name(value in $strategy) {
                    round_trip(&value, <$type>::read, |value, w| value.write(w))?;
                }
            )*
        }
    };
}

round_trips! {
    filters testing::filter(), Filter;
    selectors testing::selector(), Selector;
    entries testing::entry(), EntryInformation;
    registrations testing::registration(), AutoActionRegistration;
    deregistrations testing::deregistration(), AutoActionDeregistration;
    auto_alerts testing::auto_alert(), AutoAlert;
    bind_arguments testing::bind_argument(), MsBindArgument;
    bind_results testing::bind_result(), MsBindResult;
    bind_errors testing::bind_error(), MsBindError;
    summarize_arguments testing::summarize_argument(), SummarizeArgument;
    summarize_results testing::summarize_result(), SummarizeResult;
    list_arguments testing::list_argument(), ListArgument;
    list_results testing::list_result(), ListResult;
    fetch_arguments testing::fetch_argument(), FetchArgument;
    fetch_results testing::fetch_result(), FetchResult;
    delete_arguments testing::delete_argument(), DeleteArgument;
    delete_results testing::delete_result(), DeleteResult;
    register_arguments testing::register_argument(), RegisterMsArgument;
    register_results testing::register_result(), RegisterMsResult;
    alert_arguments testing::alert_argument(), AlertArgument;
    modify_arguments testing::modify_argument(), ModifyArgument;
    modify_results testing::modify_result(), ModifyResult;
}

/// Reads octets as everything.
fn read_all(octets: &[u8]) {
    let Ok(e) = Element::parse(octets) else { return };
    let _ = (MsBindArgument::read(&e), MsBindResult::read(&e), MsBindError::read(&e));
    let _ = (SummarizeArgument::read(&e), SummarizeResult::read(&e), ListArgument::read(&e));
    let _ = (ListResult::read(&e), FetchArgument::read(&e), FetchResult::read(&e));
    let _ = (DeleteArgument::read(&e), DeleteResult::read(&e), RegisterMsArgument::read(&e));
    let _ = (RegisterMsResult::read(&e), AlertArgument::read(&e), ModifyArgument::read(&e));
    let _ = (ModifyResult::read(&e), AutoAlert::read(&e), Filter::read(&e));
    for code in 0..40 {
        let _ = MsError::read(code, Some(&e));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn errors(error in testing::error()) {
        let mut w = Writer::new();
        error.write_parameter(&mut w);
        let octets = w.into_vec();
        let element = Element::parse(&octets).unwrap();
        let again = MsError::read(error.code(), Some(&element));
        prop_assert_eq!(again, Ok(error.clone()));
        prop_assert!(!error.to_string().is_empty());
        let needs_parameter = ![6, 29].contains(&error.code());
        prop_assert_eq!(MsError::read(error.code(), None).is_err(), needs_parameter);
    }

    #[test]
    fn any_octets_are_answered(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_all(&octets);
    }

    #[test]
    fn damaged_octets_are_answered(
        argument in testing::list_argument(),
        result in testing::fetch_result(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut written = [Writer::new(), Writer::new()];
        argument.write(&mut written[0]);
        result.write(&mut written[1]);
        for w in written {
            let mut octets = w.into_vec();
            for (at, octet) in &damage {
                let at = at.index(octets.len());
                octets[at] = *octet;
            }
            read_all(&octets);
        }
    }

    #[test]
    fn every_filter_has_one_answer(filter in testing::filter(), entry in testing::entry()) {
        let truth = evaluate(&filter, &entry);
        let not = evaluate(&Filter::Not(Box::new(filter.clone())), &entry);
        prop_assert_eq!(truth.is_err(), not.is_err());
        if let (Ok(_), Ok(_)) = (truth, not) {
            let both = Filter::And(vec![filter.clone(), Filter::Not(Box::new(filter))]);
            prop_assert_eq!(matches(&both, &entry), Ok(false));
        }
    }
}
