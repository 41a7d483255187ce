//! Hostile input, made by hand: each case is octets, the answer they must get, and what the log must
//! name. After each one, another association of the same MTA still takes a message, and nothing is
//! left of the hostile one. In memory and in virtual time.

mod answer;
mod association;
mod called;
mod case;
mod daemon;
mod envelope;
mod octets;
mod session;
mod store;
mod streams;
mod transfer;
mod transport;
mod user;

use case::Case;

/// The TPKTs of a stream, each whole.
fn packets(mut octets: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let [3, _, high, low, ..] = octets {
        let (packet, rest) = octets.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        packets.push(packet.to_vec());
        octets = rest;
    }
    assert!(octets.is_empty(), "no TPKT: {octets:02X?}");
    packets
}

/// Every case.
fn cases() -> Vec<Case> {
    [
        transport::cases(),
        session::cases(),
        association::cases(),
        transfer::cases(),
        envelope::cases(),
        user::cases(),
        store::cases(),
        called::cases(),
        streams::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn there_are_as_many_cases_as_promised_each_with_its_own_name_and_deeds() {
    let cases = cases();
    let names: std::collections::BTreeSet<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    let mut deeds = std::collections::BTreeMap::new();
    let same: Vec<_> = cases
        .iter()
        .filter_map(|case| Some((deeds.insert(case.deeds(), &case.name)?, &case.name)))
        .collect();
    assert!(same.is_empty(), "these do the same: {same:?}");
    assert!(names.len() >= 630, "{} cases", names.len());
}
