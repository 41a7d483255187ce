//! Many users at once, as `cargo xtask bench relay` has them: the load generator counts rightly, and
//! nothing is lost or doubled when transfers, commits and deliveries overlap.

use super::SOON;
use ::load::{Login, Plan};
use testbed::{Pair, PeerSettings, Site};

const USERS: [&str; 6] = ["U0", "U1", "U2", "U3", "U4", "U5"];

fn plan(pair: &Pair, users: usize, size: usize, count: u64) -> Plan {
    let logins = |site: &Site| {
        let login = |user: &&str| Login {
            mta: site.p3(),
            address: site.address(user),
            password_file: site.password_file(user),
        };
        USERS[..users].iter().map(login).collect()
    };
    Plan {
        submitters: logins(&pair.naples),
        receivers: logins(&pair.act),
        size,
        precedence: base::Precedence::Flash,
        seconds: SOON.as_secs_f64(),
        count,
        pause_ms: None,
        rate: None,
        held: false,
        drain_seconds: SOON.as_secs_f64(),
        delivery_file: pair.act.path().join("deliveries"),
    }
}

#[test]
fn what_many_users_submit_at_once_arrives_once_and_unchanged() {
    // Both an association for each message that waits, and one for all.
    for associations in [None, Some((8, 1))] {
        let peer = PeerSettings { associations, ..PeerSettings::default() };
        let builder = Pair::builder(peer).unwrap();
        let pair = builder.each(|site| site.users(&USERS)).start().unwrap();
        // In memory, in a file; many and few.
        for (users, size, count) in [(6, 1_000, 120), (1, 1_000, 5), (4, 2_000_000, 8)] {
            let outcome = ::load::run(plan(&pair, users, size, count)).unwrap();
            assert_eq!((outcome.accepted, outcome.delivered, outcome.again), (count, count, 0));
            assert!(outcome.content_length > size as u64 && outcome.seconds > 0.0, "{outcome:?}");
            assert!(outcome.accepted_ms.median <= outcome.delivered_ms.max, "{outcome:?}");
        }
        for site in [&pair.naples, &pair.act] {
            let idle = |s: &testbed::answer::MtaStatus| s.queued() + s.waiting() == 0;
            site.wait_until("nothing left", SOON, idle).unwrap();
        }
    }
}

#[test]
fn a_run_reports_why_it_failed() {
    let pair =
        Pair::builder(PeerSettings::default()).unwrap().each(|s| s.users(&USERS)).start().unwrap();
    let mut wrong = plan(&pair, 1, 1_000, 1);
    wrong.submitters[0].password_file = pair.act.password_file("U0");
    let error = format!("{:#}", ::load::run(wrong).unwrap_err());
    assert!(error.contains("authentication error"), "{error}");
    let mut unknown = plan(&pair, 1, 1_000, 1);
    unknown.receivers[0].address = pair.act.address("NOBODY");
    assert!(::load::run(unknown).is_err());
}
