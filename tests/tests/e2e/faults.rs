//! What is accepted arrives exactly once, whatever stops, dies or breaks on the way.

use super::proxy::{Fate, Proxy};
use super::{SOON, assert_arrived};
use lab::answer::Sent;
use lab::{Link, Pair, Site, clock};
use std::time::Duration;

/// Where the way is barred: in the middle of 10 MB, past many checkpoints.
const MIDDLE: u64 = 5_000_000;

/// A pair whose way from Naples to ACT goes over a proxy, and a message of 10 MB on it.
fn stopped_in_the_middle(fate: Fate, link: &Link) -> (Pair, Proxy, Sent) {
    let builder = Pair::builder(link.clone().on_demand("300s")).unwrap();
    let proxy = Proxy::start(builder.act_listens()[0], fate);
    let pair = builder
        .naples_connects(vec![proxy.address])
        .each(|site| site.set("mta.stop_timeout", "3s"))
        .start()
        .unwrap();
    let to = pair.act.address("OPS");
    let sent = pair.naples.send("OPS", &["--to", &to, "--size", "10MB"]).unwrap();
    proxy.wait_until_struck(SOON);
    (pair, proxy, sent)
}

fn assert_arrives_once(pair: &Pair, sent: &Sent) {
    assert_arrived(&sent.messages, &pair.act.receive("OPS", 1).unwrap());
    pair.naples.wait_until("nothing left to send", SOON, |s| s.queued() == 0).unwrap();
    pair.act.wait_until("nothing left to deliver", SOON, |s| s.waiting() == 0).unwrap();
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
}

#[test]
fn a_transfer_cut_in_the_middle_goes_on_from_its_last_confirmed_checkpoint() {
    let (pair, proxy, sent) = stopped_in_the_middle(Fate::Cut(MIDDLE), &Link::default());
    assert_arrives_once(&pair, &sent);
    // 10 MB, and again what was sent beyond the last confirm: at most 16 checkpoints of 64 KiB,
    // and what the cut took from the network.
    let carried = proxy.to_server();
    assert!((10_000_000..12_500_000).contains(&carried), "{carried} octets for 10 MB");
}

#[test]
fn a_transfer_without_checkpoints_cut_in_the_middle_is_sent_again() {
    let link = Link { checkpoint: 0, ..Link::default() };
    let (pair, proxy, sent) = stopped_in_the_middle(Fate::Cut(MIDDLE), &link);
    assert_arrives_once(&pair, &sent);
    let carried = proxy.to_server();
    assert!((15_000_000..15_500_000).contains(&carried), "{carried} octets for 5 MB and 10 MB");
}

#[test]
fn sigterm_in_the_middle_of_a_message_is_bounded_and_loses_nothing() {
    for link in [Link::default(), Link { checkpoint: 0, ..Link::default() }] {
        let (mut pair, proxy, sent) = stopped_in_the_middle(Fate::Hold(MIDDLE), &link);
        // Nothing moves, so neither can finish nor reach a checkpoint: only the bound ends them.
        for site in [&mut pair.naples, &mut pair.act] {
            let (status, took) = clock::timed(|| site.stop().unwrap());
            assert_eq!(status.code(), Some(0), "{}", site.name());
            assert!(took < Duration::from_secs(20), "{} took {took:?} to stop", site.name());
        }
        proxy.release();
        pair.act.start().unwrap();
        pair.naples.start().unwrap();
        assert_arrives_once(&pair, &sent);
    }
}

#[test]
fn a_receiver_that_is_killed_gets_the_message_once_when_it_is_back() {
    let (mut pair, proxy, sent) = stopped_in_the_middle(Fate::Hold(MIDDLE), &Link::default());
    pair.act.kill().unwrap();
    proxy.release();
    pair.act.start().unwrap();
    assert_arrives_once(&pair, &sent);
}

#[test]
fn a_sender_that_is_killed_sends_the_message_once_when_it_is_back() {
    let (mut pair, proxy, sent) = stopped_in_the_middle(Fate::Hold(MIDDLE), &Link::default());
    pair.naples.kill().unwrap();
    proxy.release();
    pair.naples.start().unwrap();
    assert_arrives_once(&pair, &sent);
}

#[test]
fn what_waits_outlives_both_daemons() {
    let mut pair = Pair::builder(Link::default()).unwrap().build().unwrap();
    pair.naples.start().unwrap();
    let to = pair.act.address("OPS");
    let sent = pair.naples.send("OPS", &["--to", &to, "--size", "1kB,1MB,10MB"]).unwrap();
    pair.naples.kill().unwrap();
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    pair.act.wait_until("all three to wait", SOON, |s| s.waiting() == 3).unwrap();
    pair.act.kill().unwrap();
    pair.act.start().unwrap();
    assert_arrived(&sent.messages, &pair.act.receive("OPS", 3).unwrap());
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
}

#[test]
fn a_submission_whose_answer_is_lost_makes_one_message() {
    let mut site = Site::builder("naples").build().unwrap();
    site.start().unwrap();
    let proxy = Proxy::start(site.p3(), Fate::LoseAnswer(5_000));
    let profiles = std::fs::read_to_string(site.profiles()).unwrap();
    let over_proxy = profiles.replace(&site.p3().to_string(), &proxy.address.to_string());
    assert_ne!(over_proxy, profiles);
    std::fs::write(site.profiles(), over_proxy).unwrap();
    let sent = site.send("OPS", &["--to", &site.address("OPS"), "--size", "10kB"]).unwrap();
    proxy.wait_until_struck(SOON);
    assert_eq!(sent.messages[0].tries, 2, "the first answer was lost");
    std::fs::write(site.profiles(), profiles).unwrap();
    assert_arrived(&sent.messages, &site.receive("OPS", 1).unwrap());
    assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
    assert_eq!(site.status().unwrap().counters.duplicates, 1);
}
