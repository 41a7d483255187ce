//! How we end an association in order: by a release, or by closing the connection of a peer that fails at one.

use base::{AssociationId, EntryId, Precedence};
use bytes::Bytes;
use node::config::{Connection, Limits, Release};
use node::event::Kind;
use node::{ListenerId, Secret};
use std::time::Duration;
use testkit::bench::{Disposition, facing};
use testkit::build::permanent;
use testkit::{Bench, Events};

const SECOND: Duration = Duration::from_secs(1);
/// RLRQ with the reason normal, which is in a FINISH.
const RLRQ: &[u8] = &[0x62, 3, 0x80, 1, 0];
/// Octets of a message that is queued.
const LENGTH: u64 = 1_000;

/// One channel to Act that is opened by traffic.
fn facing_one(release: Release) -> Bench {
    let mut only = permanent(0, &Precedence::ALL);
    only.connection = Connection::OnDemand { idle_close: 60 * SECOND };
    let mut bench = facing(vec![only], Limits::default());
    bench.config.peers[0].release = release;
    let config = bench.config.clone();
    let mut bench = Bench::new(config);
    bench.queue_for("act", LENGTH);
    bench
}

/// The association that the node opened.
fn ours(bench: &Bench) -> AssociationId {
    bench.opened().next().unwrap().0
}

fn has(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

/// A changed password ends all associations.
fn change_password(bench: &mut Bench) {
    bench.reload(|config| config.peers[0].own_password = Secret(Bytes::from_static(b"new")));
}

#[test]
fn an_idle_association_is_released_or_its_connection_closed() {
    for release in [Release::Release, Release::Close] {
        let mut bench = facing_one(release);
        bench.queue(EntryId(1), Precedence::Routine);
        bench.start();
        bench.pass(SECOND);
        let id = ours(&bench);
        assert!(!bench.is_queued(EntryId(1)) && bench.is_connected(id));
        bench.take_written(id);
        bench.pass(60 * SECOND);
        let end = bench.take_written(id);
        match release {
            Release::Release => assert!(has(&end, RLRQ), "{end:02x?}"),
            Release::Close => assert!(end.is_empty(), "{end:02x?}"),
        }
        assert!(!bench.is_connected(id) && bench.closed.contains(&id));
        assert_eq!(
            (bench.count(Kind::AssociationReleased), bench.count(Kind::AssociationLost)),
            (1, 0)
        );
    }
}

#[test]
fn what_is_in_flight_ends_before_the_connection_is_closed() {
    let mut bench = facing_one(Release::Close);
    bench.script.others = Disposition::Keep;
    bench.queue(EntryId(1), Precedence::Routine);
    bench.start();
    bench.pass(SECOND);
    let id = ours(&bench);
    bench.take_written(id);
    change_password(&mut bench);
    bench.pass(SECOND);
    assert!(bench.is_connected(id) && bench.is_queued(EntryId(1)), "it is not confirmed");
    bench.confirm();
    bench.pass(SECOND);
    assert!(!bench.is_queued(EntryId(1)) && bench.closed.contains(&id));
    assert_eq!(bench.take_written(id), b"", "neither a release nor an abort");
    assert_eq!(bench.count(Kind::AssociationLost), 0);
}

/// Only the end with the turn may release: without `close` this one aborts.
#[test]
fn an_association_of_the_peer_is_aborted_or_its_connection_closed() {
    for release in [Release::Release, Release::Close] {
        let mut bench = facing_one(Release::Release);
        bench.start();
        let id = bench.mta(ListenerId(0), "192.0.2.10", "MTA-ACT", "theirs");
        bench.pass(SECOND);
        bench.take_written(id);
        // In effect at once, also for an association that is there.
        bench.reload(|config| config.peers[0].release = release);
        assert!(bench.is_connected(id), "a change of it ends none");
        change_password(&mut bench);
        bench.pass(SECOND);
        assert!(bench.closed.contains(&id) || bench.dropped.contains(&id));
        assert_eq!(bench.take_written(id).is_empty(), release == Release::Close);
    }
}

/// The timer of the set-up bounds the wait for the answer to a release.
#[test]
fn a_release_without_an_answer_ends_in_time() {
    let mut bench = facing_one(Release::Release);
    bench.queue(EntryId(1), Precedence::Routine);
    bench.start();
    bench.pass(SECOND);
    let id = ours(&bench);
    bench.withheld.insert(id, Vec::new());
    bench.pass(60 * SECOND);
    assert!(bench.is_connected(id) && has(&bench.take_written(id), RLRQ));
    bench.pass(60 * SECOND);
    assert!(!bench.is_connected(id));
}
