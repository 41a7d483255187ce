//! Security labels are held against the clearances of users and peers, at every step of a message's way.
//! Two MTAs in virtual time.

use base::Precedence;
use node::Input;
use node::changes::EdgeChanges;
use node::config::NodeConfig;
use node::event::Kind;
use node::listing::QueueRequest;
use node::lists::{List, ListChange, ReportPolicy, SubmitPermission};
use node::operator::Operator;
use p1::Clearance;
use p1::SecurityLabel;
use p1::flags::ReportRequest;
use p1::testing::signed;
use std::time::Duration;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Network, Setup, address};

/// security-error (X.419).
const SECURITY_ERROR: i64 = 12;

fn clearance(entries: &[&str]) -> Clearance {
    Clearance(entries.iter().map(|text| text.parse().unwrap()).collect())
}

/// Naples lets Act have what is confidential. Users of Act are cleared for secret, but LOG for
/// restricted; OPS of Naples for secret.
fn cleared(config: &mut NodeConfig) {
    let is_naples = config.mta.0 == "NAPLES";
    let users = match is_naples {
        true => vec![(address(NAPLES, "OPS"), clearance(&["/secret", "unlabelled"]))],
        false => vec![
            ("/C=XX/ADMD=NATO/PRMD=ACT".to_owned(), clearance(&["/secret"])),
            (address(ACT, "LOG"), clearance(&["/restricted"])),
        ],
    };
    config.clearances.users =
        users.into_iter().map(|(text, clearance)| (text.parse().unwrap(), clearance)).collect();
    if is_naples {
        let peer = config.peers[0].id();
        config.clearances.peers.insert(peer, clearance(&["/confidential", "unlabelled"]));
    }
}

/// Whether a message was taken, who got it, and how many non-delivery reports there were.
type Outcome = (Result<(), i64>, [bool; 2], usize);

struct Labelled {
    network: Network,
    sender: usize,
    readers: [usize; 2],
}

impl Labelled {
    fn new() -> Labelled {
        let mut network = Network::pair(7, Setup { node: cleared, ..NOTHING });
        let sender = network.user(NAPLES, "OPS", true);
        let readers = ["OPS", "LOG"].map(|name| network.user(ACT, name, true));
        network.bind(sender, NAPLES);
        readers.iter().for_each(|reader| network.bind(*reader, ACT));
        Labelled { network, sender, readers }
    }

    /// Sends a message with this label to both; gives whether it was taken, who got it, and how many
    /// non-delivery reports there were.
    fn send(&mut self, label: Option<&str>) -> Outcome {
        // A repetition as a whole would be answered with the first one's identifier.
        let id = format!("{label:?} {}", self.network.users[self.sender].answers.len());
        self.send_content(label, id.as_bytes())
    }

    fn send_content(&mut self, label: Option<&str>, content: &[u8]) -> Outcome {
        let network = &mut self.network;
        network.users[self.sender].label = label.map(|text| text.parse().unwrap());
        let to = ["OPS", "LOG"].map(|name| address(ACT, name));
        let report = ReportRequest::NonDelivery;
        network.submit(self.sender, &to, Precedence::Flash, content, "LABELLED", report);
        network.run_for(Duration::from_secs(20));
        let answer = network.users[self.sender].answers.last().unwrap().clone().map(|_| ());
        let got = self.readers.map(|reader| {
            let wanted = content;
            let is_it = |d: &Delivered| matches!(d, Delivered::Message { content, .. } if content == wanted);
            network.users[reader].delivered.iter().any(is_it)
        });
        let reports = std::mem::take(&mut network.users[self.sender].delivered);
        let undelivered = |d: &Delivered| matches!(d, Delivered::Report { delivered: false, .. });
        assert!(reports.iter().all(undelivered));
        assert_eq!((network.queued(NAPLES), network.queued(ACT)), (0, 0));
        (answer, got, reports.len())
    }
}

#[test]
fn who_is_cleared_gets_it_and_the_originator_learns_of_the_others() {
    let mut labelled = Labelled::new();
    for (label, expected) in [
        (Some("/restricted"), (Ok(()), [true, true], 0)),
        // LOG is not cleared.
        (Some("/confidential"), (Ok(()), [true, false], 1)),
        // Act is not.
        (Some("/secret"), (Ok(()), [false, false], 2)),
        // The originator is not.
        (Some("/top-secret"), (Err(SECURITY_ERROR), [false, false], 0)),
        (Some("1.2.3/restricted"), (Err(SECURITY_ERROR), [false, false], 0)),
        // No user of Act takes what has no label.
        (None, (Ok(()), [false, false], 2)),
    ] {
        assert_eq!(labelled.send(label), expected, "{label:?}");
    }
    let naples = &labelled.network.sites[NAPLES];
    let refused = naples.details(Kind::SubmissionRefused);
    assert_eq!(refused.len(), 2);
    assert!(refused[0].contains("not cleared for top-secret"), "{refused:?}");
    let failed = naples.details(Kind::NonDelivery);
    assert!(
        failed.iter().any(|d| d.contains("the next MTA is not cleared for secret")),
        "{failed:?}"
    );
}

#[test]
fn a_peer_may_send_what_it_is_cleared_for_and_a_change_holds_at_once() {
    let mut labelled = Labelled::new();
    assert_eq!(labelled.send(Some("/restricted")), (Ok(()), [true, true], 0));
    let narrower = |config: &mut NodeConfig| {
        let peer = config.peers[0].id();
        config.clearances.peers.insert(peer, clearance(&["/unclassified"]));
    };
    labelled.network.configure(ACT, narrower, EdgeChanges::default());
    labelled.network.users[labelled.readers[0]].delivered.clear();
    labelled.network.users[labelled.readers[1]].delivered.clear();
    assert_eq!(labelled.send(Some("/restricted")), (Ok(()), [false, false], 2));
    let failed = labelled.network.sites[ACT].details(Kind::NonDelivery);
    let expected = "the MTA it came from is not cleared for restricted: 2 recipients";
    assert!(failed.iter().any(|d| d.starts_with(expected)), "{failed:?}");
    assert_eq!(labelled.send(Some("/unclassified")), (Ok(()), [true, true], 0));
}

#[test]
fn a_label_is_shown_of_one_entry() {
    let mut labelled = Labelled::new();
    let (network, sender) = (&mut labelled.network, labelled.sender);
    network.users[sender].label = "1.2.3/secret".parse().ok();
    let open = |config: &mut NodeConfig| {
        config.clearances = engine::Clearances { open_contents: true, ..Default::default() };
    };
    network.configure(NAPLES, open, EdgeChanges::default());
    let to = [address(NAPLES, "LOG")];
    let content = signed_with("1.2.4/confidential", 9);
    network.submit(sender, &to, Precedence::Flash, &content, "SHOWN", ReportRequest::None);
    network.run_for(Duration::from_secs(5));
    let site = &network.sites[NAPLES];
    let (_, entry) = *site.store.entries.keys().next().unwrap();
    let asked = QueueRequest { entry: Some(entry), limit: 1, ..QueueRequest::default() };
    let page = site.node.queue_page(network.clock(), &asked).unwrap();
    let page = page.describe(|key| site.store.entries.get(&key).cloned());
    let both = "1.2.3/secret, 1.2.4/confidential in the content";
    assert_eq!(page.entries[0].label.as_deref(), Some(both));
    assert_eq!(page.entries[0].content_id.as_deref(), Some("SHOWN"));
}

/// A signed content of this many octets with this label inside.
fn signed_with(label: &str, octets: usize) -> Vec<u8> {
    let mut w = base::ber::Writer::new();
    label.parse::<SecurityLabel>().unwrap().write(&mut w, base::ber::universal::SET);
    signed(&[&[w.as_slice()]], &vec![7; octets])
}

#[test]
fn the_label_inside_a_signed_content_counts_only_where_contents_are_opened() {
    let mut labelled = Labelled::new();
    // The policy of Naples and Act: with the labels inside, which have one.
    for site in [NAPLES, ACT] {
        let configure = |config: &mut NodeConfig| {
            let inside = |clearance: &mut Clearance| {
                let own =
                    clearance.0.iter().filter_map(|entry| format!("1.2.3{entry}").parse().ok());
                let own: Vec<_> = own.collect();
                clearance.0.extend(own);
            };
            config.clearances.peers.values_mut().for_each(inside);
            config.clearances.users.iter_mut().for_each(|(_, clearance)| inside(clearance));
        };
        labelled.network.configure(site, configure, EdgeChanges::default());
    }
    // Closed: it goes as what the envelope makes it.
    let secret = signed_with("1.2.3/secret", 10);
    let outer = Some("/restricted");
    assert_eq!(labelled.send_content(outer, &secret), (Ok(()), [true, true], 0));
    for site in [NAPLES, ACT] {
        let open = |config: &mut NodeConfig| config.clearances.open_contents = true;
        labelled.network.configure(site, open, EdgeChanges::default());
    }
    for (outer, inner, octets, expected) in [
        (None, "1.2.3/restricted", 200_000, (Ok(()), [true, true], 0)),
        (outer, "1.2.3/restricted", 10, (Ok(()), [true, true], 0)),
        // LOG is not cleared, whichever label it is.
        (outer, "1.2.3/confidential", 200_000, (Ok(()), [true, false], 1)),
        (Some("/confidential"), "1.2.3/restricted", 11, (Ok(()), [true, false], 1)),
        // Act is not.
        (outer, "1.2.3/secret", 11, (Ok(()), [false, false], 2)),
        // The originator is not.
        (outer, "1.2.3/top-secret", 10, (Err(SECURITY_ERROR), [false, false], 0)),
        (outer, "1.2.4/unmarked", 10, (Err(SECURITY_ERROR), [false, false], 0)),
    ] {
        let content = signed_with(inner, octets);
        assert_eq!(labelled.send_content(outer, &content), expected, "{outer:?} {inner}");
    }
    // Cut short, it may have a label; signed without a label it has that of the envelope.
    let cut = &secret[..secret.len() - 1];
    assert_eq!(labelled.send_content(outer, cut), (Err(SECURITY_ERROR), [false, false], 0));
    let none = signed(&[&[]], b"none");
    assert_eq!(labelled.send_content(outer, &none), (Ok(()), [true, true], 0));
    let refused = labelled.network.sites[NAPLES].details(Kind::SubmissionRefused);
    let why = "a signed content whose security label cannot be read";
    assert!(refused.last().unwrap().contains(why), "{refused:?}");
}

#[test]
fn what_is_queued_is_compared_again_before_it_goes_and_reported() {
    let mut labelled = Labelled::new();
    let (network, sender) = (&mut labelled.network, labelled.sender);
    network.cut();
    network.line_up = false;
    network.users[sender].label = "/confidential".parse().ok();
    let to = [address(ACT, "OPS")];
    let report = ReportRequest::NonDelivery;
    network.submit(sender, &to, Precedence::Flash, b"1", "QUEUED", report);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.queued(NAPLES), 1);
    let narrower = |config: &mut NodeConfig| {
        let peer = config.peers[0].id();
        config.clearances.peers.insert(peer, clearance(&["/restricted"]));
    };
    network.configure(NAPLES, narrower, EdgeChanges::default());
    network.line_up = true;
    network.run_for(Duration::from_secs(1_200));
    assert_eq!((network.queued(NAPLES), network.queued(ACT)), (0, 0));
    assert_eq!(network.sites[ACT].details(Kind::Received), [""; 0]);
    let rerouted = network.sites[NAPLES].details(Kind::Rerouted);
    assert!(rerouted[0].starts_with("its peer is not cleared for it any more"), "{rerouted:?}");
    let failed = network.sites[NAPLES].details(Kind::NonDelivery);
    let why = "the next MTA is not cleared for confidential";
    assert!(failed.iter().any(|line| line.contains(why)), "{failed:?}");
    let reports = &network.users[sender].delivered;
    assert!(matches!(reports[..], [Delivered::Report { delivered: false, .. }]), "{reports:?}");
}

#[test]
fn what_waits_for_a_user_is_compared_again_before_it_is_delivered() {
    let mut labelled = Labelled::new();
    let (network, sender) = (&mut labelled.network, labelled.sender);
    // LOG of Naples is not bound.
    let reader = network.user(NAPLES, "LOG", true);
    network.users[sender].label = "/secret".parse().ok();
    let to = [address(NAPLES, "LOG")];
    network.submit(sender, &to, Precedence::Flash, b"1", "WAITS", ReportRequest::NonDelivery);
    network.run_for(Duration::from_secs(5));
    let narrower = |config: &mut NodeConfig| {
        let log = address(NAPLES, "LOG").parse().unwrap();
        config.clearances.users.push((log, clearance(&["/restricted"])));
    };
    network.configure(NAPLES, narrower, EdgeChanges::default());
    network.bind(reader, NAPLES);
    network.run_for(Duration::from_secs(5));
    assert!(network.users[reader].delivered.is_empty());
    let reports = &network.users[sender].delivered;
    assert!(matches!(reports[..], [Delivered::Report { delivered: false, .. }]), "{reports:?}");
    assert_eq!(network.queued(NAPLES), 0);
}

/// A delivery that waited, and goes into the message store, is compared as one over P3 is.
#[test]
fn what_waits_is_compared_again_before_it_goes_into_the_message_store() {
    let mut labelled = Labelled::new();
    let (network, sender) = (&mut labelled.network, labelled.sender);
    network.user(NAPLES, "LOG", true);
    network.users[sender].label = "/secret".parse().ok();
    let to = [address(NAPLES, "LOG")];
    network.submit(sender, &to, Precedence::Flash, b"1", "WAITS", ReportRequest::NonDelivery);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.queued(NAPLES), 1);
    let narrower = |config: &mut NodeConfig| {
        let log = address(NAPLES, "LOG").parse().unwrap();
        config.clearances.users.push((log, clearance(&["/restricted"])));
    };
    network.configure(NAPLES, narrower, EdgeChanges::default());
    let addresses = network.sites[NAPLES].config.mailboxes.clone();
    let stored = addresses.iter().filter(|address| address.ends_with("s=log")).cloned().collect();
    network.feed(NAPLES, Input::Mailboxes { addresses, stored, changed: Vec::new() });
    network.run_for(Duration::from_secs(5));
    let reports = &network.users[sender].delivered;
    assert!(matches!(reports[..], [Delivered::Report { delivered: false, .. }]), "{reports:?}");
    assert_eq!(network.queued(NAPLES), 0);
}

/// A report passes whatever its label is, but what it returns does not, also where it waited.
#[test]
fn a_report_that_waited_goes_without_the_content_for_which_nobody_is_cleared_any_more() {
    let mut labelled = Labelled::new();
    let (network, sender) = (&mut labelled.network, labelled.sender);
    network.users[sender].label = "/confidential".parse().ok();
    network.users[sender].wants_content = true;
    let to = [address(ACT, "NOBODY")];
    network.submit(sender, &to, Precedence::Flash, b"secret text", "1", ReportRequest::NonDelivery);
    while network.users[sender].answers.is_empty() {
        network.run_for(Duration::from_millis(1));
    }
    network.close(network.users[sender].end);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.queued(NAPLES), 1, "its report waits");
    let narrower = |config: &mut NodeConfig| {
        config.clearances.users =
            vec![(address(NAPLES, "OPS").parse().unwrap(), clearance(&["/restricted"]))];
    };
    network.configure(NAPLES, narrower, EdgeChanges::default());
    network.bind(sender, NAPLES);
    network.run_for(Duration::from_secs(5));
    let user = &network.users[sender];
    assert!(matches!(user.delivered[..], [Delivered::Report { delivered: false, .. }]));
    assert_eq!((&user.returned[..], network.queued(NAPLES)), (&[None][..], 0));
}

/// Who is below a clearance is compared; a list is not a user, its members are.
#[test]
fn the_members_of_a_list_are_compared_and_not_the_list() {
    let mut labelled = Labelled::new();
    let (network, sender) = (&mut labelled.network, labelled.sender);
    let reader = network.user(NAPLES, "LOG", true);
    network.bind(reader, NAPLES);
    let of_the_domain = |config: &mut NodeConfig| {
        let all = "/C=XX/ADMD=NATO/PRMD=NAPLES".parse().unwrap();
        config.clearances.users.push((all, clearance(&["/restricted"])));
        let log = address(NAPLES, "LOG").parse().unwrap();
        config.clearances.users.push((log, clearance(&["/secret"])));
    };
    network.configure(NAPLES, of_the_domain, EdgeChanges::default());
    let staff = address(NAPLES, "STAFF");
    let list = List {
        address: staff.clone(),
        members: vec![address(NAPLES, "LOG")],
        submit: SubmitPermission::Anyone,
        reports: ReportPolicy::Originator,
        owner: None,
    };
    let change = Box::new(ListChange::Add(list));
    let by = Operator::default();
    network.feed(NAPLES, Input::ChangeList { request: 1, change, by, try_only: false });
    network.users[sender].label = "/secret".parse().ok();
    network.submit(sender, &[staff], Precedence::Flash, b"1", "1", ReportRequest::NonDelivery);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.users[reader].delivered.len(), 1);
    assert!(network.users[sender].delivered.is_empty());
}
