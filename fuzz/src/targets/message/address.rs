//! The text form of an O/R address.

use base::ber::{Element, Writer};
use p1::names::{ORAddress, ORName};

pub(crate) fn run(octets: &[u8]) {
    // As text, and as what a peer sends.
    if let Ok(address) = String::from_utf8_lossy(octets).parse::<ORAddress>() {
        shown(&address);
        let name = ORName::from(address);
        let mut w = Writer::new();
        name.write(&mut w);
        let octets = w.into_vec();
        assert_eq!(Element::parse(&octets).and_then(|e| ORName::read(&e)), Ok(name));
    }
    if let Ok(name) = Element::parse(octets).and_then(|e| ORName::read(&e)) {
        let address = &name.address;
        assert!(address.same_as(address) && name.same_as(&name));
        assert_eq!(address.matches(address), Some(address.attributes().len()));
        let _ = engine::canonical(address);
        // What a peer may send can be beyond the text form's bounds; what reads is the same.
        if let Ok(again) = address.to_string().parse::<ORAddress>() {
            assert_eq!(again.to_string().parse::<ORAddress>().as_ref(), Ok(&again));
        }
    }
}

/// An address that was read from text is shown as text that reads as the same.
fn shown(address: &ORAddress) {
    let text = address.to_string();
    let again = text.parse::<ORAddress>();
    assert_eq!(again.as_ref(), Ok(address), "{text}");
    assert!(address.same_as(address));
    let canonical = engine::canonical(address);
    if let Ok(again) = canonical.parse::<ORAddress>() {
        assert_eq!(engine::canonical(&again), canonical, "{text}");
    }
}
