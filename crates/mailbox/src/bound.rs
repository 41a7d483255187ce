//! The result of a bind (X.413 7.1.1.2).

use crate::attributes::available;
use crate::query::Access;
use base::ber::Writer;
use bytes::Bytes;
use p1::Credentials;
use p7::MsBindResult;
use p7::auto_action::AutoActionKind;
use p7::entry::EntryClass;

/// MSBindResult: what the store can do is in it for who asked (ms-configuration-request).
#[must_use]
pub fn bind_result(access: &Access, wants_configuration: bool, alerted: bool) -> Bytes {
    let mut result = MsBindResult::new(Credentials::simple(""));
    if wants_configuration {
        let actions = [AutoActionKind::AutoForward, AutoActionKind::AutoAlert];
        result.available_auto_actions = actions.map(AutoActionKind::oid).to_vec();
        let attributes = p7::attributes::all().map(p7::attributes::AttributeType::oid);
        result.available_attribute_types =
            attributes.filter(|oid| available(oid).is_some()).collect();
        if access.is_1994 {
            let classes = vec![EntryClass::DELIVERY, EntryClass::STORED_MESSAGE];
            result.of_1994.entry_classes_supported = classes;
        }
    }
    result.alert_indication = alerted;
    let mut w = Writer::new();
    result.write(&mut w);
    w.into_vec().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ber::Element;

    #[test]
    fn the_store_states_what_it_can_do_to_who_asks() {
        let read = |access: &Access, asks| {
            let octets = bind_result(access, asks, true);
            MsBindResult::read(&Element::parse(&octets).unwrap()).unwrap()
        };
        let (of_1988, of_1994) = (Access::default(), Access { is_1994: true, ..Access::default() });
        let silent = read(&of_1994, false);
        assert!(silent.alert_indication && silent.available_attribute_types.is_empty());
        let all = read(&of_1988, true);
        assert_eq!(all.available_auto_actions.len(), 2);
        assert!(all.available_attribute_types.len() > 30);
        assert_eq!(all.of_1994, p7::bind::MsBindResult1994::default());
        assert_eq!(read(&of_1994, true).of_1994.entry_classes_supported.len(), 2);
    }
}
