//! What an operator orders for a channel: disable, enable, disconnect.

use base::PeerId;
use base::Precedence::{Flash, Routine};
use node::channel_order::{ChannelOrder, ChannelOutcome};
use node::config::{Limits, NodeConfig};
use node::event::Kind;
use node::operator::Operator;
use node::{ChannelId, Input, ListenerId};
use std::time::Duration;
use testkit::bench::{Answer, facing};
use testkit::build::permanent;
use testkit::{ACT, Bench, Events, NAPLES, NOTHING, Pair, Setup};

const SECOND: Duration = Duration::from_secs(1);

const CHANNEL: u32 = 0;

fn input(channel: u32, order: ChannelOrder, at_once: bool) -> Input {
    let channel = ChannelId { peer: PeerId::of_name("act"), index: channel };
    let by = Operator { uid: 1_000, name: Some("alice".to_owned()) };
    Input::OrderChannel { request: 9, channel, order, at_once, by }
}

fn order(bench: &mut Bench, order: ChannelOrder) -> ChannelOutcome {
    bench.feed(input(CHANNEL, order, false));
    let (request, result) = bench.ordered.pop().expect("an answer");
    assert_eq!(request, 9);
    result.unwrap()
}

fn one() -> Bench {
    let channel = permanent(CHANNEL, &[Routine]);
    let mut bench = facing(vec![channel], Limits::default());
    bench.script.answers = [(0, Answer::Accept)].into();
    bench.start();
    assert!(is_open(&bench));
    bench
}

fn closed(bench: &Bench) -> Option<String> {
    bench.node.status(bench.clock()).peers[0].channels[0].closed.clone()
}

fn is_open(bench: &Bench) -> bool {
    let status = bench.node.status(bench.clock());
    status.peers[0].channels[0].associations.iter().any(|a| a.state == "idle")
}

#[test]
fn a_disabled_channel_stays_closed_over_reload_and_restart_until_it_is_enabled() {
    let mut bench = one();
    let preview = bench.node.channel_preview(
        bench.clock(),
        ChannelId { peer: PeerId::of_name("act"), index: 0 },
        ChannelOrder::Disable,
    );
    assert!(preview.changed && preview.ending == 1 && is_open(&bench), "{preview:?}");
    let outcome = order(&mut bench, ChannelOrder::Disable);
    assert_eq!((outcome.changed, outcome.ending), (true, 1));
    assert!(!order(&mut bench, ChannelOrder::Disable).changed, "once");
    bench.pass(3_600 * SECOND);
    assert!(!is_open(&bench));
    assert_eq!(bench.script.connects.len(), 1);
    let by = "disabled by alice (uid 1000) since 2026-01-01T00:00:0";
    assert!(closed(&bench).unwrap().starts_with(by), "{:?}", closed(&bench));

    // The peer is refused: busy.
    let refused = bench.count(Kind::AssociationRefused);
    bench.mta(ListenerId(0), "192.0.2.10", "MTA-ACT", "theirs");
    bench.pass(SECOND);
    assert_eq!(bench.count(Kind::AssociationRefused), refused + 1);
    assert!(bench.last(Kind::AssociationRefused).detail.contains("disabled by alice"));

    // A reload that begins the channel anew.
    bench.reload(|config| config.peers[0].channels[0].rts.window += 1);
    bench.pass(600 * SECOND);
    assert_eq!(bench.script.connects.len(), 1);

    let mut after = facing(vec![permanent(CHANNEL, &[Routine])], Limits::default());
    after.config.epoch = 2;
    after.script.answers = [(0, Answer::Accept)].into();
    bench.store.crash(0, &mut base::rng::Rng::new(1));
    after.store = std::mem::take(&mut bench.store);
    after.renew();
    for input in after.store.recovered() {
        after.feed(input);
    }
    after.pass(600 * SECOND);
    assert!(after.script.connects.is_empty() && closed(&after).unwrap().starts_with(by));

    assert!(order(&mut after, ChannelOrder::Enable).changed);
    assert!(!order(&mut after, ChannelOrder::Enable).changed);
    after.pass(SECOND);
    assert!(is_open(&after) && closed(&after).is_none());
}

#[test]
fn an_order_that_cannot_be_made_durable_is_undone() {
    let mut bench = one();
    bench.store.withholds = true;
    bench.feed(input(CHANNEL, ChannelOrder::Disable, false));
    assert!(bench.ordered.is_empty(), "nothing is answered before it is durable");
    let commit = bench.store.take_commit().unwrap();
    bench.store.withholds = false;
    bench.finish_commit(commit, Err("no space left on device".to_owned()));
    let (_, result) = bench.ordered.pop().unwrap();
    assert!(result.unwrap_err().to_string().contains("no space left"));
    bench.pass(120 * SECOND);
    assert!(is_open(&bench) && closed(&bench).is_none());
}

#[test]
fn a_disconnected_channel_opens_again_after_the_first_wait() {
    let mut bench = one();
    assert_eq!(order(&mut bench, ChannelOrder::Disconnect).ending, 1);
    assert!(!is_open(&bench));
    bench.pass(300 * SECOND);
    assert!(is_open(&bench));
    assert_eq!(bench.script.connects.len(), 2);
}

// ----- during transfers --------------------------------------------------------------------------

fn kept_open(config: &mut NodeConfig) {
    config.peers[0].channels[0].associations_max = 1;
}

/// A long transfer from Naples, of which a part is carried.
fn sending(seed: u64) -> Pair {
    let mut pair = Pair::with_reports(seed, Setup { node: kept_open, ..NOTHING });
    pair.submit(Routine, 400_000);
    pair.until_carried(100_000);
    pair.submit(Flash, 2_000);
    pair
}

fn give(pair: &mut Pair, site: usize, order: ChannelOrder, at_once: bool) {
    let status = pair.sites[site].node.status(pair.clock());
    for index in 0..status.peers[0].channels.len() as u32 {
        pair.feed(site, input_to(site, index, order, at_once));
    }
}

fn input_to(site: usize, index: u32, order: ChannelOrder, at_once: bool) -> Input {
    let name = if site == NAPLES { "act" } else { "naples" };
    match input(index, order, at_once) {
        Input::OrderChannel { request, order, at_once, by, .. } => {
            let channel = ChannelId { peer: PeerId::of_name(name), index };
            Input::OrderChannel { request, channel, order, at_once, by }
        }
        other => other,
    }
}

/// Nothing is lost and nothing comes twice.
fn arrives_once(mut pair: Pair) {
    pair.run(900);
    let mut delivered = pair.delivered();
    delivered.sort_unstable();
    assert_eq!(delivered, [1, 2]);
    pair.assert_empty();
}

#[test]
fn what_is_in_transfer_on_a_disabled_channel_waits_and_arrives_once() {
    for (seed, site, at_once) in
        [(41, NAPLES, false), (42, NAPLES, true), (43, ACT, false), (44, ACT, true)]
    {
        let mut pair = sending(seed);
        give(&mut pair, site, ChannelOrder::Disable, at_once);
        pair.run(300);
        let arrived = pair.delivered().len();
        // What the peer sends may end first.
        assert!(arrived <= usize::from(site == ACT && !at_once) * 2, "{site} {at_once}");
        assert!(pair.sites[site].count(Kind::ChannelOrdered) > 0);
        pair.crash(site);
        pair.run(1);
        pair.bind_all();
        pair.run(60);
        assert_eq!(pair.delivered().len(), arrived, "it stays disabled");
        give(&mut pair, site, ChannelOrder::Enable, false);
        arrives_once(pair);
    }
}

#[test]
fn a_transfer_that_a_disconnect_interrupts_arrives_once() {
    for (seed, site, at_once) in
        [(51, NAPLES, false), (52, NAPLES, true), (53, ACT, false), (54, ACT, true)]
    {
        let mut pair = sending(seed);
        give(&mut pair, site, ChannelOrder::Disconnect, at_once);
        arrives_once(pair);
    }
}
