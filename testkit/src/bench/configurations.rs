//! The configurations of benches, and a record as it is on disk.

use super::{Answer, Bench};
use crate::build::{self, channel, p1_listener, p3_listener, p7_listener, peer};
use crate::network::Network;
use crate::sites::{ACT, NAPLES, NOTHING, Setup, address, five_channels};
use base::Precedence;
use engine::Record;
use node::config::{Channel, Hold, Limits, NodeConfig, Peer, Route, Target};
use node::{ListenerId, Principal};
use p1::flags::ReportRequest;
use std::sync::OnceLock;
use std::time::Duration;

/// The listener at which users bind.
pub const P3: ListenerId = ListenerId(0);
/// The first channel of peer `act`, which is at 192.0.2.10.
pub const ACT_ROUTINE: ListenerId = ListenerId(1);
/// The second channel of peer `act`.
pub const ACT_FLASH: ListenerId = ListenerId(2);
/// The channel of peer `rome`, which connects from 198.51.100.0/24 only.
pub const ROME: ListenerId = ListenerId(3);

/// The listener at which users of the message store bind.
pub const P7: ListenerId = ListenerId(4);

/// The address of a user of the bench's domain.
pub fn user_address(surname: &str) -> String {
    format!("/C=XX/ADMD=NATO/PRMD=HERE/S={surname}")
}

/// A node with peers `act` and `rome` and a mailbox of OPS, started. Peers have the password
/// `theirs`, users with OPS in their names `secret`. Nobody answers the node's own connections, and
/// nothing is read from its store.
pub fn two_peers(limits: Limits, change: impl FnOnce(&mut NodeConfig)) -> Bench {
    let known = |name: &str, channels: &[&str]| -> Peer {
        let mta = format!("MTA-{}", name.to_uppercase());
        let channels = (0..).zip(channels).map(|(index, name)| {
            let mut channel = channel(index, name, &Precedence::ALL);
            channel.setup_timeout = Duration::from_secs(60);
            channel
        });
        peer(name, &mta, "MTA-HERE", "ours", channels.collect())
    };
    let mut act = known("act", &["routine", "flash"]);
    act.addresses =
        ["192.0.2.10", "2001:db8:0:9::10"].map(|a| a.parse().expect("an address")).to_vec();
    let mut rome = known("rome", &["all"]);
    rome.from = vec!["198.51.100.0/24".parse().expect("a prefix")];
    let mut config = build::node("MTA-HERE", "HERE", vec![act, rome]);
    config.listeners = vec![
        p3_listener(P3),
        p1_listener(ACT_ROUTINE, "act", 0),
        p1_listener(ACT_FLASH, "act", 1),
        p1_listener(ROME, "rome", 0),
    ];
    let prefix = "/C=XX/ADMD=NATO/PRMD=HERE".parse().expect("an address");
    config.routes = vec![Route { prefix, to: Target::Local }];
    config.mailboxes = vec![build::canonical(&user_address("OPS"))];
    config.limits = limits;
    change(&mut config);
    let mut bench = Bench::new(config);
    bench.trusts = |principal, password| match principal {
        Principal::Peer(_) => password.0 == "theirs",
        Principal::User(address) => address.contains("ops") && password.0 == "secret",
    };
    bench.script.answer = Answer::Silence;
    (bench.closes, bench.store.unread) = (false, true);
    bench.start();
    bench
}

/// The same with a message store: OPS and LOG have their mailboxes in it, PLANS takes deliveries over P3. Each has the
/// password `secret`. The store is read.
pub fn message_store(change: impl FnOnce(&mut NodeConfig)) -> Bench {
    let mut bench = two_peers(Limits::default(), |config| {
        config.listeners.push(p7_listener(P7));
        config.mailboxes =
            ["OPS", "LOG", "PLANS"].map(|name| build::canonical(&user_address(name))).to_vec();
        let stored = ["OPS", "LOG"].map(|name| build::canonical(&user_address(name)));
        config.store.users = stored.into();
        change(config);
    });
    bench.trusts = |principal, password| match principal {
        Principal::Peer(_) => false,
        Principal::User(address) => {
            let known = ["ops", "log", "plans"].iter().any(|name| address.contains(name));
            known && password.0 == "secret"
        }
    };
    (bench.closes, bench.store.unread) = (true, false);
    bench
}

/// A node with peer `act` that has these channels. No precedence holds another. It is not started.
pub fn facing(channels: Vec<Channel>, limits: Limits) -> Bench {
    let act = peer("act", "MTA-ACT", "MTA-HERE", "ours", channels);
    let mut config = build::node("MTA-HERE", "HERE", vec![act]);
    config.listeners = vec![p1_listener(ListenerId(0), "act", 0)];
    config.hold.hold = Hold::Off;
    config.limits = limits;
    Bench::new(config)
}

/// A record as it is on disk, of a Routine of 1,000 octets that waits for a peer.
pub fn queued_record() -> Record {
    static RECORD: OnceLock<Record> = OnceLock::new();
    let made = || {
        let mut network = Network::pair(3, Setup { node: five_channels, ..NOTHING });
        network.line_up = false;
        network.cut();
        let sender = network.user(NAPLES, "OPS", true);
        network.bind(sender, NAPLES);
        network.run_for(Duration::from_secs(1));
        let (routine, to) = (Precedence::Routine, [address(ACT, "OPS")]);
        network.submit(sender, &to, routine, &[1; 1_000], "MESSAGE 1", ReportRequest::None);
        network.run_for(Duration::from_secs(1));
        let octets = network.sites[NAPLES].store.entries.values().next().expect("it is queued");
        Record::decode(octets).expect("a record")
    };
    RECORD.get_or_init(made).clone()
}
