//! What several nodes tracked, copied into one database and found there.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use base::{Precedence, Utc};
use common::*;
use database::Relay;
use postgres_store::{Own, TrackedArchive, TrackedEvents};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use tracking::event::Parties;
use tracking::page::Page;
use tracking::ship::{Archive, Origin, Shipper};
use tracking::source::{ALWAYS, Joined, Source};
use tracking::way::{Wanted, Way, list};
use tracking::{Event, Key, Reader, Tracker};

/// The site's limit, where it does not matter.
const LONG: u64 = 1 << 40;

fn pause(milliseconds: u64) {
    let (_keep, never) = channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(milliseconds));
}

/// Until it is so, at most twenty seconds.
fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let is_so = (0..400).any(|_| {
        let is_so = is();
        if !is_so {
            pause(50);
        }
        is_so
    });
    assert!(is_so, "never: {what}");
}

fn at(time: u64, kind: &'static str, message: u64) -> Event {
    Event {
        time: Utc(1_000_000_000_000_000 + time * 1_000),
        kind: kind.into(),
        message: Some(format!("[/C=IT/;{message}]")),
        entry: Some(message),
        precedence: Some(Precedence::Flash),
        ..Event::default()
    }
}

fn submitted(time: u64, message: u64) -> Event {
    let parties = Parties {
        originator: Some("/c=it/s=ops".to_owned()),
        recipients: vec![format!("/c=it/s=u{}", message % 3)],
        count: 1,
        content_id: Some(format!("m{message}")),
        copies: Some(1),
    };
    Event { parties: Some(parties), ..at(time, "submitted", message) }
}

/// A node: its directory, and the tracker that writes there while its thread copies.
struct Node {
    directory: tempfile::TempDir,
    name: &'static str,
    running: Option<(Tracker, Shipper)>,
}

impl Node {
    fn new(name: &'static str, site: &Site, url: &str, directory: u128) -> Node {
        let mut new = Node { directory: tempfile::tempdir().unwrap(), name, running: None };
        new.start(site, url, directory);
        new
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn start(&mut self, site: &Site, url: &str, directory: u128) {
        let origin = Origin::open(self.path(), self.name, directory).unwrap();
        let mut archive = TrackedArchive::new(url, &site.options).unwrap();
        let copied = archive.begin(&origin).unwrap();
        let tracker = Tracker::start_after(self.path(), 1 << 30, copied).unwrap();
        let durable = tracker.durable();
        let shipper = Shipper::start(self.path(), origin, durable, LONG, archive).unwrap();
        self.running = Some((tracker, shipper));
    }

    fn put(&self, event: Event) {
        self.running.as_ref().unwrap().0.put(event);
    }

    /// Ends in order, and copies the rest.
    fn stop(&mut self) {
        let (tracker, shipper) = self.running.take().unwrap();
        drop(tracker);
        drop(shipper);
    }

    /// Ends without an order. Its thread that copies is left to itself: that one of before goes on beside the next
    /// one is worse than a kill.
    fn kill(&mut self) {
        let (tracker, shipper) = self.running.take().unwrap();
        std::mem::forget(shipper);
        drop(tracker);
    }

    fn own(&self) -> Own {
        let origin = Origin::read(self.path(), self.name).unwrap().unwrap();
        Own { origin, from: Reader::open(self.path()).unwrap().start().unwrap() }
    }

    /// The site as this node sees it.
    fn view(&self, site: &Site) -> Joined {
        let all = TrackedEvents::open(&site.url(), &site.options, Some(&self.own()), None).unwrap();
        let own = Reader::open(self.path()).unwrap().of_node(self.name);
        Joined(vec![Box::new(own), Box::new(all)])
    }
}

/// The copy alone.
fn copied(site: &Site) -> TrackedEvents {
    TrackedEvents::open(&site.url(), &site.options, None, None).unwrap()
}

fn all(source: &dyn Source) -> Vec<(String, String)> {
    let mut all = Vec::new();
    source.scan(ALWAYS, &mut |event| {
        let node = event.node.as_deref().unwrap_or("-").to_owned();
        all.push((node, format!("{} {}", event.kind, (event.time.0 / 1_000) % 1_000_000)));
        ControlFlow::Continue(())
    });
    all
}

fn count(source: &dyn Source) -> usize {
    all(source).len()
}

#[test]
fn each_node_shows_the_steps_of_both_and_names_them_when_one_is_dead() {
    let Some(site) = Site::if_installed() else { return };
    let mut one = Node::new("n1", &site, &site.url(), 1);
    let mut two = Node::new("n2", &site, &site.url(), 2);
    one.put(submitted(0, 7));
    two.put(at(5, "transfer_started", 7));
    one.put(at(3, "held", 7));
    two.put(at(9, "transfer_confirmed", 7));
    wait_until("four events are copied", || count(&copied(&site)) == 4);
    let expected = [
        ("n1", "submitted 0"),
        ("n1", "held 3"),
        ("n2", "transfer_started 5"),
        ("n2", "transfer_confirmed 9"),
    ];
    let expected = expected.map(|(node, what)| (node.to_owned(), what.to_owned()));
    for view in [&one.view(&site) as &dyn Source, &two.view(&site), &copied(&site)] {
        assert_eq!(all(view), expected);
        let mut newest = Vec::new();
        view.scan_newest(ALWAYS, &mut |event| {
            newest.push(event.time);
            ControlFlow::Continue(())
        });
        assert!(newest.len() == 4 && newest.iter().rev().is_sorted());
        let way = Way::read(view, "[/C=IT/;7]").unwrap();
        assert_eq!(way.nodes(), ["n1", "n2"]);
        assert!(way.outcome().is_known() && way.outcome().transferred.len() == 1);
        for id in ["[/C=IT/;7]", "m7", "e7"] {
            let wanted = Wanted { id: Some(id.to_owned()), ..Wanted::default() };
            assert_eq!(list(view, &wanted).messages, ["[/C=IT/;7]"], "{id}");
        }
    }
    // The second one is killed: the first one knows what it did, and that more may have been.
    two.kill();
    let view = one.view(&site);
    assert_eq!(all(&view), expected);
    let note = view.notes().join("; ");
    assert!(note.contains("n2 does not run, and did not end in order"), "{note}");
    // It comes back, has tracked the same, and ends in order.
    two.start(&site, &site.url(), 2);
    two.put(at(12, "report_made", 7));
    two.stop();
    let view = one.view(&site);
    assert_eq!(count(&view), 5);
    assert!(!view.notes().join("; ").contains("n2"), "{:?}", view.notes());
    one.stop();
    // One of them alone.
    let only = TrackedEvents::open(&site.url(), &site.options, None, Some("n2")).unwrap();
    assert!(all(&only).iter().all(|(node, _)| node == "n2") && count(&only) == 3);
    assert_eq!(only.nodes(), ["n1", "n2"]);
}

#[test]
fn the_own_files_are_shown_before_they_are_copied_and_not_twice_after() {
    let Some(site) = Site::if_installed() else { return };
    let relay = Relay::start(site.server.unwrap().address()).unwrap();
    let url = site.server.unwrap().url_at(relay.address(), RUNS);
    let mut one = Node::new("n1", &site, &url, 1);
    let mut two = Node::new("n2", &site, &site.url(), 2);
    for n in 0..50 {
        one.put(submitted(n * 2, n));
        two.put(at(n * 2 + 1, "delivered", n));
    }
    wait_until("all are copied", || count(&copied(&site)) == 100);
    relay.cut();
    for n in 50..80 {
        one.put(submitted(n * 2, n));
    }
    wait_until("the files have them", || count(&Reader::open(one.path()).unwrap()) == 80);
    assert_eq!(count(&one.view(&site)), 130, "of the own node the files count");
    assert_eq!(count(&two.view(&site)), 100, "they are not copied yet");
    relay.resume();
    wait_until("they are copied", || count(&two.view(&site)) == 130);
    assert_eq!(count(&one.view(&site)), 130);
    assert!(all(&one.view(&site)).iter().filter(|(node, _)| node == "n1").count() == 80);
    one.stop();
    two.stop();
}

#[test]
fn an_outage_and_a_kill_between_batches_neither_lose_nor_double() {
    let Some(site) = Site::if_installed() else { return };
    let relay = Relay::start(site.server.unwrap().address()).unwrap();
    let url = site.server.unwrap().url_at(relay.address(), RUNS);
    let mut node = Node::new("n1", &site, &url, 1);
    let mut next = 0;
    for round in 0..6 {
        for _ in 0..400 {
            node.put(at(next, "delivered", next));
            next += 1;
        }
        pause(400 + round * 130);
        match round % 3 {
            0 => {
                relay.cut();
                pause(300);
                relay.resume();
            }
            1 => {
                node.kill();
                node.start(&site, &url, 1);
            }
            _ => {}
        }
    }
    node.stop();
    let events = all(&copied(&site));
    let delivered: Vec<String> = (0..next).map(|n| format!("delivered {n}")).collect();
    let got: Vec<&String> =
        events.iter().map(|(_, what)| what).filter(|w| w.starts_with("del")).collect();
    assert_eq!(got, delivered.iter().collect::<Vec<_>>());
}

#[test]
fn who_lost_an_answer_adds_nothing_twice_and_two_of_one_name_do_not_mix() {
    let Some(site) = Site::if_installed() else { return };
    let directory = tempfile::tempdir().unwrap();
    let tracker = Tracker::start(directory.path(), 1 << 30).unwrap();
    (0..10).for_each(|n| tracker.put(at(n, "delivered", n)));
    drop(tracker);
    let page = |n: u64| {
        let event = at(n, "delivered", n);
        let payload = postcard::to_allocvec(&event).unwrap();
        let mut octets = vec![1];
        octets.extend((payload.len() as u32).to_be_bytes());
        octets.extend(payload);
        let hashes = vec![Key::Entry(n).hash()];
        Page { at: place(n), times: (event.time, event.time), count: 1, octets, hashes }
    };
    fn place(n: u64) -> tracking::page::Place {
        tracking::page::Place((1 << 32) + n)
    }
    let open = || TrackedArchive::new(&site.url(), &site.options).unwrap();
    let origin = Origin { directory: 9, node: "n1".to_owned() };
    let (mut first, mut second) = (open(), open());
    let start = first.begin(&origin).unwrap();
    assert_eq!(second.begin(&origin).unwrap(), start);
    assert!(first.append(start, place(1), &[page(0)]).unwrap());
    assert!(!first.append(start, place(1), &[page(0)]).unwrap(), "the same once more");
    assert!(!second.append(start, place(2), &[page(1)]).unwrap(), "it is not so far");
    assert_eq!(second.begin(&origin).unwrap(), place(1));
    assert!(second.append(place(1), place(2), &[page(1)]).unwrap());
    assert_eq!(count(&copied(&site)), 2);
    // Under another name the copy of the same directory goes on where it was.
    let renamed = Origin { node: "n9".to_owned(), ..origin };
    assert_eq!(first.begin(&renamed).unwrap(), place(2));
    assert!(first.append(place(2), place(3), &[page(2)]).unwrap());
    assert_eq!(all(&copied(&site)).last().unwrap().0, "n9");
    // Who has all of it in its files wants neither.
    let own = Own { origin: renamed, from: place(0) };
    let rest = TrackedEvents::open(&site.url(), &site.options, Some(&own), None).unwrap();
    assert_eq!(count(&rest), 0);
    // And what its files have no longer, it wants.
    let own = Own { from: place(1), ..own };
    let rest = TrackedEvents::open(&site.url(), &site.options, Some(&own), None).unwrap();
    assert_eq!(all(&rest).len(), 1);
    assert_eq!(rest.find(Key::Entry(0)).len(), 1);
    assert!(rest.find(Key::Entry(1)).is_empty());
}

#[test]
fn the_oldest_go_in_small_steps_beyond_the_limit() {
    let Some(site) = Site::if_installed() else { return };
    let mut node = Node::new("n1", &site, &site.url(), 1);
    // 200 pages: no two of them are within a minute.
    for n in 0..200 {
        node.put(at(n * 61_000, "delivered", n));
    }
    node.stop();
    let size = || -> u64 { site.sql("select sum(size) from tracked_origin").parse().unwrap() };
    let pages = || -> u64 { site.sql("select count(*) from tracked").parse().unwrap() };
    let full = size();
    assert_eq!((pages(), count(&copied(&site))), (200, 200));
    let mut archive = TrackedArchive::new(&site.url(), &site.options).unwrap();
    assert!(!archive.prune(full).unwrap(), "it is short enough");
    assert!(archive.prune(full / 2).unwrap());
    assert_eq!(pages(), 136, "64 at once");
    assert!(archive.prune(full / 2).unwrap());
    assert!(!archive.prune(full / 2).unwrap());
    assert_eq!((pages(), size() < full / 2), (72, true));
    let first = all(&copied(&site)).remove(0);
    assert_eq!(first.1, format!("delivered {}", 128 * 61_000 % 1_000_000), "the newest stay");
    assert!(copied(&site).find(Key::Entry(0)).is_empty());
    assert_eq!(copied(&site).find(Key::Entry(199)).len(), 1);
    // Keys go once their part of the index is gone.
    site.sql("select setval('tracked_pages', 5000)");
    node.start(&site, &site.url(), 1);
    node.put(at(0, "delivered", 1));
    node.stop();
    while archive.prune(1).unwrap() {}
    assert_eq!((pages(), size()), (0, 0));
}

#[test]
fn many_pages_are_found_by_key_and_by_time_with_the_indexes() {
    let Some(site) = Site::if_installed() else { return };
    let mut node = Node::new("n1", &site, &site.url(), 1);
    for n in 0..100 {
        node.put(submitted(n * 61_000, n));
    }
    node.stop();
    let source = copied(&site);
    let originator = source.find(Key::Originator("/c=it/s=ops"));
    assert!(originator.len() == 100 && originator.is_sorted_by_key(|event| event.time));
    let mut newest = Vec::new();
    let times = (at(61_000 * 20, "", 0).time, at(61_000 * 80, "", 0).time);
    source.find_newest(Key::Recipient("/c=it/s=u1"), times, &mut |event| {
        newest.push(event.entry.unwrap());
        if newest.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(newest, [79, 76, 73]);
    let mut within = Vec::new();
    source.scan(times, &mut |event| {
        within.push(event.entry.unwrap());
        ControlFlow::Continue(())
    });
    assert_eq!(within, (20..=80).collect::<Vec<_>>());
    within.clear();
    source.scan_newest(times, &mut |event| {
        within.push(event.entry.unwrap());
        ControlFlow::Continue(())
    });
    assert_eq!(within, (20..=80).rev().collect::<Vec<_>>());
    assert_eq!(source.since(), Some(at(0, "", 0).time));
    assert_eq!(source.notes(), Vec::<String>::new());
}

#[test]
fn a_database_that_goes_away_while_it_is_asked_is_named() {
    let Some(site) = Site::if_installed() else { return };
    let relay = Relay::start(site.server.unwrap().address()).unwrap();
    let mut node = Node::new("n1", &site, &site.url(), 1);
    node.put(submitted(0, 1));
    node.stop();
    let url = site.server.unwrap().url_at(relay.address(), RUNS);
    let mut options = site.options;
    options.connect_limit = Duration::from_millis(500);
    let source = TrackedEvents::open(&url, &options, None, None).unwrap();
    assert_eq!(source.find(Key::Entry(1)).len(), 1);
    relay.cut();
    assert!(source.find(Key::Entry(2)).is_empty());
    let notes = source.notes().join("; ");
    assert!(notes.contains("events of other nodes are missing"), "{notes}");
    assert!(TrackedEvents::open(&url, &options, None, None).is_err());
}
