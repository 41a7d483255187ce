use super::*;
use crate::journal::Digest;
use crate::lists::definition::{List, ReportPolicy, SubmitPermission};
use crate::record::Record;
use crate::testing::{
    BAKER, CARTER, JONES, NOBODY, SMITH, address, argument_of, at, content, engine_of, failures,
    message, name, received, report, submission,
};
use crate::{Concluded, NewEntry, NoteKind};
use base::{PeerId, Utc};
use bytes::Bytes;
use p1::apdu::MtsApduHead;
use p1::extension::{Criticality, ExtensionField};
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::history::{
    Expansion, dl_expansion_history, originator_and_dl_expansion_history,
    set_originator_and_dl_expansions,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const STAFF: &str = "C=XX;ADMD=;PRMD=alpha;CN=staff";
const OTHERS: &str = "C=XX;ADMD=;PRMD=beta;CN=others";

fn list(address: &str, members: &[&str]) -> List {
    List {
        address: address.to_owned(),
        members: members.iter().map(|m| (*m).to_owned()).collect(),
        submit: SubmitPermission::Anyone,
        reports: ReportPolicy::Originator,
        owner: None,
    }
}

type Reported = (String, Vec<(u32, crate::testing::Codes)>, bool);

/// Alpha, beta and gamma, each of which is the peer of the others, and the outcome of what was sent.
struct World {
    engines: Vec<Engine>,
    queue: VecDeque<(usize, NewEntry)>,
    /// Addresses that got a message, with the lists on its path; in the order of arrival.
    delivered: Vec<(String, Vec<String>)>,
    /// Addresses that got a report, with what it has of each recipient, and the reporting list.
    reported: Vec<Reported>,
    /// What each site remembers of its expansions.
    seen: Vec<BTreeMap<Digest, Bytes>>,
    steps: usize,
}

const SITES: [&str; 3] = ["alpha", "beta", "gamma"];

impl World {
    fn new(lists: &[List]) -> World {
        let engine = |own: usize| {
            let peers = (0u32..).zip(SITES).filter(|(at, _)| *at as usize != own);
            let peers: Vec<(&str, u32)> = peers.map(|(at, prmd)| (prmd, at)).collect();
            let users = ["Smith", "Jones", "Baker", "Carter"];
            let mut engine = engine_of(SITES[own], "mta1", &users, &peers);
            let its = |list: &&List| list.address.contains(SITES[own]);
            let its: Vec<List> = lists.iter().filter(its).cloned().collect();
            engine.set_lists(&its).unwrap();
            engine
        };
        World {
            engines: (0..SITES.len()).map(engine).collect(),
            queue: VecDeque::new(),
            delivered: Vec::new(),
            reported: Vec::new(),
            seen: vec![BTreeMap::new(); SITES.len()],
            steps: 0,
        }
    }

    /// Smith of alpha sends it, and everything is carried out until nothing is left.
    fn send(&mut self, envelope: &p1::p3::MessageSubmissionEnvelope) {
        let mailbox = canonical(&address(SMITH));
        let done = self.engines[0].submit(at(0), &mailbox, envelope, &content(1_000), &[]).unwrap();
        self.queue.extend(done.accepted.entries.into_iter().map(|entry| (0, entry)));
        self.run();
    }

    fn run(&mut self) {
        while let Some((site, entry)) = self.queue.pop_front() {
            self.steps += 1;
            assert!(self.steps < 5_000, "it does not end");
            let entries = self.step(site, &entry);
            self.queue.extend(entries);
        }
    }

    fn step(&mut self, site: usize, entry: &NewEntry) -> Vec<(usize, NewEntry)> {
        let now = at(self.steps as u64);
        let on =
            |site: usize, entries: Vec<NewEntry>| entries.into_iter().map(|e| (site, e)).collect();
        match &entry.record.next_hop {
            NextHop::Peer(PeerId(peer)) => {
                let there = *peer as usize;
                let head = received(&self.engines[site], entry);
                let arrival = self.engines[there].accept(now, head, &content(1_000), &[]);
                on(there, arrival.accepted.entries)
            }
            NextHop::Mailbox(address) if self.engines[site].is_list(address) => {
                on(site, self.expand(site, now, &entry.record).entries)
            }
            NextHop::Mailbox(address) => match &entry.record.head {
                MtsApduHead::Message(e) => {
                    let history = dl_expansion_history(&e.extensions).unwrap();
                    let lists = history.iter().map(|x| canonical(&x.name.address)).collect();
                    self.delivered.push((address.clone(), lists));
                    on(site, self.engines[site].delivered(now, now, &entry.record).entries)
                }
                _ => {
                    let its = report(entry);
                    let by_list = its.envelope.extensions.standard(number::REPORTING_DL_NAME);
                    self.reported.push((address.clone(), failures(its), by_list.is_some()));
                    Vec::new()
                }
            },
        }
    }

    fn expand(&mut self, site: usize, now: Utc, record: &Record) -> Concluded {
        let key = self.engines[site].expansion_key(record);
        let seen = key.and_then(|key| self.seen[site].get(&key).cloned());
        let done = self.engines[site].expand(now, record, seen.as_ref());
        self.seen[site].extend(done.seen.iter().map(|s| (s.key, s.record.clone())));
        done
    }

    fn who(&self) -> Vec<String> {
        let mut who: Vec<String> = self.delivered.iter().map(|(to, _)| to.clone()).collect();
        who.sort();
        who
    }
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|n| canonical(&address(n))).collect();
    names.sort();
    names
}

#[test]
fn members_here_and_elsewhere_get_it_with_the_list_s_number() {
    let mut world = World::new(&[list(STAFF, &[JONES, BAKER, CARTER])]);
    let mut envelope = submission(&[CARTER, STAFF]);
    envelope.recipients[1].report_request = ReportRequest::Report;
    let mailbox = canonical(&address(SMITH));
    let done = world.engines[0].submit(at(0), &mailbox, &envelope, &content(9), &[]).unwrap();
    let staff = canonical(&address(STAFF));
    let waiting =
        done.accepted.entries.iter().find(|e| e.record.next_hop == NextHop::Mailbox(staff.clone()));
    let expanded = world.engines[0].expand(at(5), &waiting.unwrap().record, None);
    assert_eq!(expanded.notes[0].kind, NoteKind::Expanded);
    let remote = expanded.entries.iter().find(|e| e.record.next_hop == NextHop::Peer(PeerId(1)));
    let head = received(&world.engines[0], remote.unwrap());
    let copy = message(&head);
    let history = dl_expansion_history(&copy.extensions).unwrap();
    assert_eq!((history.len(), &history[0].name), (1, &name(STAFF)));
    assert_eq!(copy.message_identifier.to_string(), done.message);
    assert!(copy.recipients.iter().all(|r| r.number == 2), "the list's");
    let operation = p1::trace::OtherActions::DL_OPERATION;
    assert!(copy.trace.last().unwrap().additional.other_actions.contains(operation));
    let internal = crate::arrival::trace::internal(&copy.extensions);
    assert!(internal.last().unwrap().additional.other_actions.contains(operation));
    world.send(&envelope);
    assert_eq!(world.who(), sorted(&[JONES, BAKER, CARTER, CARTER]), "named twice, entitled twice");
    let numbers: Vec<_> =
        world.reported.iter().map(|(to, r, by)| (to.as_str(), r[0].0, *by)).collect();
    let smith = canonical(&address(SMITH));
    assert_eq!(numbers, [(smith.as_str(), 2, true); 3], "each member's delivery is reported");
}

#[test]
fn a_list_that_was_expanded_before_is_not_again_and_nothing_is_reported() {
    // Lists at two MTAs that have one another as members.
    let mut world = World::new(&[list(STAFF, &[OTHERS, JONES]), list(OTHERS, &[STAFF, BAKER])]);
    let mut envelope = submission(&[STAFF]);
    envelope.recipients[0].report_request = ReportRequest::Report;
    world.send(&envelope);
    assert_eq!(world.who(), sorted(&[JONES, BAKER]));
    assert!(world.reported.iter().all(|(_, r, _)| r.iter().all(|(_, codes)| codes.is_none())));
}

#[test]
fn reports_follow_the_policy_of_each_list() {
    let nobody_elsewhere = "C=XX;ADMD=;PRMD=beta;S=Nobody";
    let unknown = Some((1, Some(0)));
    for (policy, originator, owner) in [
        (ReportPolicy::Originator, vec![unknown], vec![]),
        (ReportPolicy::Owner, vec![], vec![unknown]),
        (ReportPolicy::Both, vec![unknown], vec![unknown]),
        (ReportPolicy::Nobody, vec![], vec![]),
    ] {
        let mut staff = list(STAFF, &[OTHERS]);
        (staff.reports, staff.owner) = (policy, Some(CARTER.to_owned()));
        let mut world = World::new(&[staff, list(OTHERS, &[nobody_elsewhere])]);
        world.send(&submission(&[STAFF]));
        let of = |who: &str| -> Vec<_> {
            let its = world.reported.iter().filter(|(to, _, _)| *to == canonical(&address(who)));
            its.flat_map(|(_, failures, _)| failures.iter().map(|(_, codes)| *codes)).collect()
        };
        assert_eq!((of(SMITH), of(CARTER)), (originator, owner), "{policy:?}");
        assert_eq!(world.delivered, []);
    }
}

/// The owner gets the failures whatever the originator asked for, and the originator what he asked for.
#[test]
fn who_asked_for_no_report_gets_none_where_the_owner_gets_it_too() {
    let nobody_elsewhere = "C=XX;ADMD=;PRMD=beta;S=Nobody";
    for nobody in [nobody_elsewhere, NOBODY] {
        let mut staff = list(STAFF, &[nobody]);
        (staff.reports, staff.owner) = (ReportPolicy::Both, Some(CARTER.to_owned()));
        let mut world = World::new(&[staff]);
        let mut envelope = submission(&[STAFF]);
        envelope.recipients[0].report_request = ReportRequest::None;
        world.send(&envelope);
        let to: Vec<_> = world.reported.iter().map(|(to, _, _)| to.clone()).collect();
        assert_eq!(to, [canonical(&address(CARTER))], "{nobody}");
    }
}

#[test]
fn a_policy_that_hides_the_members_reports_the_expansion() {
    let mut staff = list(STAFF, &[JONES]);
    staff.reports = ReportPolicy::Nobody;
    let mut world = World::new(&[staff]);
    let mut envelope = submission(&[STAFF]);
    envelope.recipients[0].report_request = ReportRequest::Report;
    world.send(&envelope);
    assert_eq!((world.who(), world.reported.len()), (sorted(&[JONES]), 1));
}

#[test]
fn who_may_not_send_to_a_list_gets_a_report_and_a_list_may() {
    let refused = |permission: SubmitPermission| {
        let mut staff = list(STAFF, &[JONES]);
        staff.submit = permission;
        let mut world = World::new(&[staff]);
        world.send(&submission(&[STAFF]));
        (world.who().len(), world.reported.first().map(|(_, r, _)| r[0].1.unwrap()))
    };
    let denied = (0, Some((1, Some(29))));
    assert_eq!(refused(SubmitPermission::Anyone), (1, None));
    assert_eq!(refused(SubmitPermission::Members), denied);
    assert_eq!(refused(SubmitPermission::Only(vec!["C=XX;ADMD=;PRMD=beta".to_owned()])), denied);
    assert_eq!(
        refused(SubmitPermission::Only(vec!["C=XX;ADMD=;PRMD=alpha".to_owned()])),
        (1, None)
    );
    // The list expanded last is who sends.
    let mut others = list(OTHERS, &[BAKER]);
    others.submit = SubmitPermission::Only(vec![STAFF.to_owned()]);
    let mut world = World::new(&[list(STAFF, &[OTHERS]), others]);
    world.send(&submission(&[STAFF, OTHERS]));
    assert_eq!((world.who(), world.reported.len()), (sorted(&[BAKER]), 1));
}

#[test]
fn the_originator_may_prohibit_expansion_and_exempt_members() {
    let mut world = World::new(&[list(STAFF, &[JONES, BAKER])]);
    let none = Criticality::default();
    let mut envelope = submission(&[STAFF]);
    let prohibited = ExtensionField::standard(number::DL_EXPANSION_PROHIBITED, none, |w| {
        w.integer(base::ber::universal::ENUMERATED, 1);
    });
    envelope.extensions.0.push(prohibited);
    world.send(&envelope);
    assert_eq!(world.reported[0].1[0].1, Some((1, Some(28))));
    envelope.extensions.0.clear();
    envelope.extensions.0.push(ExtensionField::standard(
        number::DL_EXEMPTED_RECIPIENTS,
        none,
        |w| {
            w.constructed(base::ber::universal::SET, |w| name(JONES).write(w));
        },
    ));
    world.send(&envelope);
    assert_eq!(world.who(), sorted(&[BAKER]));
}

#[test]
fn a_list_that_is_gone_is_reported_and_a_probe_is_answered() {
    let mut world = World::new(&[list(STAFF, &[JONES])]);
    let mailbox = canonical(&address(SMITH));
    let done =
        world.engines[0].submit(at(0), &mailbox, &submission(&[STAFF]), &content(9), &[]).unwrap();
    world.engines[0].set_lists(&[]).unwrap();
    let gone = world.engines[0].expand(at(1), &done.accepted.entries[0].record, None);
    assert_eq!(failures(report(&gone.entries[0])), [(1, Some((1, Some(0))))]);
}

#[test]
fn definitions_are_checked() {
    let mut alpha = engine_of("alpha", "mta1", &["Smith"], &[("beta", 0)]);
    let error =
        |alpha: &mut Engine, lists: &[List]| alpha.set_lists(lists).unwrap_err().to_string();
    assert!(error(&mut alpha, &[list(STAFF, &[])]).contains("has no member"));
    assert!(error(&mut alpha, &[list(STAFF, &["x"])]).contains("is not an O/R address"));
    let twice = [list(STAFF, &[SMITH]), list("C=xx;ADMD=;PRMD=ALPHA;CN=Staff", &[SMITH])];
    assert!(error(&mut alpha, &twice).contains("two lists"));
    let mut owned = list(STAFF, &[SMITH]);
    owned.reports = ReportPolicy::Owner;
    assert!(error(&mut alpha, &[owned]).contains("--owner"));
    let many: Vec<String> = (0..5_001).map(|n| format!("{STAFF}{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(error(&mut alpha, &[list(STAFF, &many)]).contains("5000"));
    assert!(alpha.may_be_list(&address(SMITH)).unwrap_err().to_string().contains("of a user"));
    assert!(
        alpha.may_be_list(&address(BAKER)).is_err() && alpha.may_be_list(&address(NOBODY)).is_ok()
    );
}

#[test]
fn the_history_of_a_report_names_the_originator_first() {
    let mut world = World::new(&[list(STAFF, &["C=XX;ADMD=;PRMD=beta;S=Nobody"])]);
    let mailbox = canonical(&address(SMITH));
    let done =
        world.engines[0].submit(at(0), &mailbox, &submission(&[STAFF]), &content(9), &[]).unwrap();
    let expanded = world.engines[0].expand(at(1), &done.accepted.entries[0].record, None);
    let head = received(&world.engines[0], &expanded.entries[0]);
    let there = world.engines[1].accept(at(2), head, &content(9), &[]);
    let made = report(&there.accepted.entries[0]);
    assert_eq!(made.envelope.destination, name(STAFF));
    let history = originator_and_dl_expansion_history(&made.envelope.extensions).unwrap();
    let names: Vec<_> = history.into_iter().map(|each| each.name).collect();
    assert_eq!(names, [name(SMITH), name(STAFF)]);
}

#[test]
fn a_report_to_an_owner_that_is_a_list_ends_there() {
    let nobody = "C=XX;ADMD=;PRMD=gamma;S=Nobody";
    let owned = |address: &str, members: &[&str], owner: &str| {
        let mut list = list(address, members);
        (list.reports, list.owner) = (ReportPolicy::Both, Some(owner.to_owned()));
        list
    };
    for (staff, others) in [(STAFF, OTHERS), (OTHERS, STAFF)] {
        let mut world =
            World::new(&[owned(STAFF, &[OTHERS, nobody], staff), owned(OTHERS, &[nobody], others)]);
        world.send(&submission(&[STAFF]));
        let who: Vec<_> = world.reported.iter().map(|(who, _, _)| who.as_str()).collect();
        let smith = canonical(&address(SMITH));
        assert_eq!(who, [smith.as_str(); 2], "one for each copy to nobody");
    }
    // The owner is before the list too: he gets it once.
    let mut world = World::new(&[owned(STAFF, &[nobody], SMITH)]);
    world.send(&submission(&[STAFF]));
    assert_eq!(world.reported.len(), 1);
}

#[test]
fn a_report_goes_back_in_its_history_whatever_that_names() {
    let mut world = World::new(&[list(STAFF, &[OTHERS]), list(OTHERS, &[STAFF])]);
    for (names, ends) in [
        (&[STAFF, STAFF][..], 0),
        (&[SMITH, STAFF, OTHERS, STAFF], 1),
        (&[SMITH, STAFF, STAFF, STAFF], 1),
        (&[OTHERS, STAFF], 0),
        (&[BAKER, OTHERS], 0),
    ] {
        let mut beta = engine_of("beta", "mta1", &[], &[("alpha", 0)]);
        let mailbox = canonical(&address(SMITH));
        let to = submission(&["C=XX;ADMD=;PRMD=beta;S=Nobody"]);
        let done = world.engines[0].submit(at(0), &mailbox, &to, &content(9), &[]).unwrap();
        let head = received(&world.engines[0], &done.accepted.entries[0]);
        let made = beta.accept(at(1), head, &content(9), &[]);
        let MtsApduHead::Report(mut report) = received(&beta, &made.accepted.entries[0]) else {
            panic!()
        };
        report.envelope.destination = name(STAFF);
        let expansion = |n: &&str| Expansion { name: name(n), time: at(0).into() };
        let history: Vec<Expansion> = names.iter().map(expansion).collect();
        set_originator_and_dl_expansions(&mut report.envelope.extensions, &history);
        let arrival = world.engines[0].accept(at(2), MtsApduHead::Report(report), &content(0), &[]);
        world.queue.extend(arrival.accepted.entries.into_iter().map(|entry| (0, entry)));
        (world.steps, world.reported) = (0, Vec::new());
        world.run();
        assert!(world.steps < 10, "{names:?}");
        assert_eq!(world.reported.len(), ends, "{names:?}");
    }
}

/// What a list makes of a message with these fields for it, in bytes of an unknown extension.
fn expanded_with(members: &[String], extension: usize) -> Concluded {
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let mut world = World::new(&[list(STAFF, &members)]);
    let mut envelope = submission(&[CARTER, STAFF]);
    envelope.indicators = PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS;
    let field = ExtensionField::standard(9_000, Criticality::default(), |w| {
        w.primitive(base::ber::universal::OCTET_STRING, &vec![7; extension]);
    });
    envelope.recipients[1].extensions.0.push(field);
    let mailbox = canonical(&address(SMITH));
    let done = world.engines[0].submit(at(0), &mailbox, &envelope, &content(9), &[]).unwrap();
    let is_ours = |e: &&NewEntry| matches!(e.record.next_hop, NextHop::Mailbox(_));
    let waiting = done.accepted.entries.iter().find(is_ours).unwrap();
    world.engines[0].expand(at(5), &waiting.record, None)
}

fn members_of(count: usize, prmd: &str) -> Vec<String> {
    (0..count).map(|n| format!("C=XX;ADMD=;PRMD={prmd};S=Member{n}")).collect()
}

#[test]
fn a_list_that_makes_much_is_divided_and_what_is_too_much_is_reported() {
    for (members, extension) in [(3_426, 10), (3_426, 6_000), (20, 900_000), (35, 900_000)] {
        let made = expanded_with(&members_of(members, "beta"), extension);
        let mut served = 0;
        for entry in &made.entries {
            let record = entry.record.encode();
            assert!(record.len() <= 950_000, "{} octets", record.len());
            let copy = message(&entry.record.head);
            served += copy.recipients.iter().filter(|r| r.indicators.responsible()).count();
        }
        assert_eq!(served, members, "{extension}");
    }
    for (members, extension) in [(3_426, 100_000), (40, 900_000)] {
        let made = expanded_with(&members_of(members, "beta"), extension);
        let [entry] = &made.entries[..] else { panic!("{}", made.entries.len()) };
        assert_eq!(failures(report(entry)), [(2, Some((1, Some(30))))]);
        let note = made.notes.last().unwrap();
        assert_eq!(note.kind, NoteKind::NonDelivery);
        assert!(note.detail.contains("octets"), "{note:?}");
    }
}

#[test]
fn no_copy_names_other_members() {
    let members = [BAKER, "C=XX;ADMD=;PRMD=beta;S=Jones", JONES, SMITH].map(str::to_owned);
    let made = expanded_with(&members, 1);
    assert_eq!(made.entries.len(), 3);
    for entry in &made.entries {
        let named: Vec<_> = message(&entry.record.head)
            .recipients
            .iter()
            .map(|r| (r.number, r.indicators.responsible()))
            .collect();
        let mut expected = vec![(2, true)];
        if entry.record.next_hop == NextHop::Peer(PeerId(1)) {
            expected.push((2, true));
        }
        expected.push((1, false));
        assert_eq!(named, expected, "the other one whom the originator specified");
        if matches!(entry.record.next_hop, NextHop::Mailbox(_)) {
            assert_eq!(others_named(&engine_of("alpha", "mta1", &[], &[]), entry), [name(CARTER)]);
            continue;
        }
        // Another MTA divides it; one that does not know this rule names all.
        let mut alpha = engine_of("alpha", "mta1", &[], &[("", 0)]);
        let mut head = received(&alpha, entry);
        let mut beta = engine_of("beta", "mta1", &["Baker"], &[("", 0)]);
        let there = beta.accept(at(9), head.clone(), &content(9), &[]).accepted.entries;
        let its = there.iter().find(|e| matches!(e.record.next_hop, NextHop::Mailbox(_))).unwrap();
        assert_eq!(others_named(&beta, its), [name(CARTER)]);
        let MtsApduHead::Message(e) = &mut head else { panic!() };
        e.recipients[1].indicators = e.recipients[1].indicators.with_responsibility(false);
        alpha = engine_of("beta", "mta1", &["Baker"], &[]);
        let there = alpha.accept(at(9), head, &content(9), &[]).accepted.entries;
        assert_eq!(others_named(&alpha, &there[0]), [name(CARTER)]);
    }
}

/// other-recipient-names of a delivery.
fn others_named(engine: &Engine, entry: &NewEntry) -> Vec<ORName> {
    argument_of(&engine.delivery_argument(at(10), &entry.record).unwrap()).other_recipients
}

#[test]
fn a_list_that_is_named_twice_is_expanded_once_and_both_are_reported() {
    let mut world = World::new(&[list(STAFF, &[JONES])]);
    let mut envelope = submission(&[STAFF, STAFF]);
    for recipient in &mut envelope.recipients {
        recipient.report_request = ReportRequest::Report;
    }
    world.send(&envelope);
    assert_eq!(world.who(), sorted(&[JONES]));
    let mut numbers: Vec<_> = world.reported.iter().map(|(_, r, _)| r[0].0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn lists_that_contain_one_another_are_each_expanded_once() {
    let address = |n: usize| format!("C=XX;ADMD=;PRMD={};CN=l{n}", SITES[n % 3]);
    let all: Vec<String> = (0..9).map(address).collect();
    let mut members: Vec<&str> = all.iter().map(String::as_str).collect();
    members.push(CARTER);
    let lists: Vec<List> = all.iter().map(|address| list(address, &members)).collect();
    let mut world = World::new(&lists);
    let mut envelope = submission(&[&all[0], &all[1]]);
    for recipient in &mut envelope.recipients {
        recipient.report_request = ReportRequest::Report;
    }
    world.send(&envelope);
    // One copy of each list, for each number that the originator specified.
    assert_eq!(world.who().len(), 9 * 2);
    let numbers: Vec<u32> = world.reported.iter().flat_map(|(_, r, _)| r).map(|r| r.0).collect();
    assert_eq!(numbers.iter().filter(|n| **n == 2).count(), 9);
}

#[test]
fn another_content_under_one_identifier_is_expanded_too() {
    let mut world = World::new(&[list(STAFF, &[JONES])]);
    let mailbox = canonical(&address(SMITH));
    let done =
        world.engines[0].submit(at(0), &mailbox, &submission(&[STAFF]), &content(9), &[]).unwrap();
    let mut record = done.accepted.entries[0].record.clone();
    assert_eq!(world.expand(0, at(1), &record).entries.len(), 1);
    let again = world.expand(0, at(2), &record);
    assert_eq!((again.entries.len(), again.seen.len()), (0, 0));
    assert!(again.notes[0].detail.contains("expanded before"), "{:?}", again.notes);
    record.digest = Some([9; 32]);
    for entries in [1, 0] {
        assert_eq!(world.expand(0, at(3), &record).entries.len(), entries);
    }
    record.digest = done.accepted.entries[0].record.digest;
    assert_eq!(world.expand(0, at(4), &record).entries, [], "both are remembered");
}

#[test]
fn an_owner_is_no_list() {
    let mut staff = list(STAFF, &[JONES]);
    staff.owner = Some(STAFF.to_lowercase());
    let mut alpha = engine_of("alpha", "mta1", &["Smith"], &[("beta", 0)]);
    let key = |address: &str| canonical(&crate::testing::address(address));
    let refused = alpha.lists_with(&key(STAFF), Some(&staff)).unwrap_err().to_string();
    assert!(refused.contains("an owner is a user"), "{refused}");
    staff.owner = Some(OTHERS.to_owned());
    let lists = alpha.lists_with(&key(STAFF), Some(&staff)).unwrap();
    alpha.use_lists(lists);
    let others = alpha.lists_with(&key(OTHERS), Some(&list(OTHERS, &[JONES])));
    assert!(others.is_err(), "it may be one of another MTA only");
}

/// Who gets a copy, by the definitions alone: each list that the message reaches is expanded once,
/// whatever way it comes by.
fn entitled(
    lists: &BTreeMap<usize, Vec<usize>>,
    to: usize,
    expanded: &mut BTreeSet<usize>,
    out: &mut Vec<usize>,
) {
    match lists.get(&to) {
        None => out.push(to),
        Some(members) if expanded.insert(to) => {
            members.iter().for_each(|member| entitled(lists, *member, expanded, out));
        }
        Some(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any lists of any lists at three MTAs: everybody gets one copy of each list that has him and that
    /// the message reaches, no more and no fewer, and it ends.
    #[test]
    fn everybody_gets_the_copies_that_lists_entitle_him_to(
        members in proptest::collection::vec(proptest::collection::btree_set(0usize..9, 1..4), 4),
        to in 0usize..9,
    ) {
        let lists = ["alpha;CN=l0", "beta;CN=l1", "gamma;CN=l2", "alpha;CN=l3"];
        let users = ["alpha;S=Smith", "alpha;S=Jones", "beta;S=Baker", "gamma;S=Carter", "beta;S=Jones"];
        let all: Vec<String> =
            lists.iter().chain(&users).map(|rest| format!("C=XX;ADMD=;PRMD={rest}")).collect();
        let definitions: Vec<List> = members
            .iter()
            .zip(&all)
            .map(|(members, address)| {
                let members: Vec<&str> = members.iter().map(|m| all[*m].as_str()).collect();
                list(address, &members)
            })
            .collect();
        let mut world = World::new(&definitions);
        world.send(&submission(&[&all[to]]));
        let model = members.iter().enumerate().map(|(n, m)| (n, m.iter().copied().collect())).collect();
        let mut expected = Vec::new();
        entitled(&model, to, &mut BTreeSet::new(), &mut expected);
        let expected: Vec<&str> = expected.iter().map(|n| all[*n].as_str()).collect();
        prop_assert_eq!(world.who(), sorted(&expected));
        prop_assert_eq!(&world.reported, &[]);
    }
}
