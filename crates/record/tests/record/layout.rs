//! Whether records have the layout of the version that the format states.

use super::{made, moment, records};
use base::{AssociationId, EntryId, Precedence};
use bytes::Bytes;
use engine::NextHop;
use node::api::Scope;
use node::channel_order::ChannelOrder;
use node::operator::{Act, Operator};
use node::shards::ShardChange;
use node::{CommitError, EdgeError, Input, PasswordProblem, ReadError, Token};
use record::{FORMAT, Record};
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// One of each input that has more than octets in it, and of each error.
fn inputs() -> Vec<Input> {
    let (token, by) = (Token(7), Operator { uid: 5, name: Some("op".to_owned()) });
    let octets = Bytes::from_static(b"octets");
    let failed = || EdgeError("failed".to_owned());
    let association = AssociationId(3);
    let config = super::header().config;
    let channel = config.peers[0].channels().next().unwrap().0;
    vec![
        Input::Recovered { precedence: Precedence::Flash, id: EntryId(9), record: octets.clone() },
        // The front of a TPKT: what cannot be read would be overwritten.
        Input::Bytes { association, bytes: Bytes::from_static(&[3, 0]) },
        Input::Closed { association, error: Some("reset".to_owned()) },
        Input::Accepted {
            connection: 1,
            listener: node::ListenerId(2),
            remote: [127, 0, 0, 1].into(),
        },
        Input::Committed { token, result: Err(CommitError::Conflict) },
        Input::Committed { token, result: Err(CommitError::TooLong(9)) },
        Input::Committed { token, result: Err(CommitError::NotDone(failed())) },
        Input::Committed { token, result: Err(CommitError::Fenced) },
        Input::Committed { token, result: Err(CommitError::Changed) },
        Input::Shard(ShardChange::Gained(NextHop::Mailbox("M".to_owned()))),
        Input::Shard(ShardChange::Lease(false)),
        Input::RecoveredMinimize(octets.clone()),
        Input::RecoveredAcceptance(octets.clone()),
        Input::AcceptClock { by: by.clone() },
        Input::Minimize { scope: Scope::Mta, floor: None, until: None, by: by.clone() },
        Input::Loaded { token, result: Err(ReadError::Damaged("damaged".to_owned())) },
        Input::Loaded { token, result: Err(ReadError::Failed(failed())) },
        Input::LookedUp { token, result: Ok(vec![None, Some(octets.clone())]) },
        Input::Content { token, result: Ok(octets) },
        Input::PasswordChanged {
            token,
            mailbox: "M".to_owned(),
            result: Err(PasswordProblem::Old),
        },
        Input::Mailboxes {
            addresses: vec!["A".to_owned()],
            stored: BTreeSet::from(["A".to_owned()]),
            changed: Vec::new(),
        },
        Input::Configure { config: Box::new(config), edge: node::changes::EdgeChanges::default() },
        Input::Operate {
            request: 1,
            entries: vec![EntryId(1)],
            act: Act::Trial(Box::new(Act::Expire)),
            by: by.clone(),
        },
        Input::OrderChannel {
            request: 2,
            channel,
            order: ChannelOrder::Disable,
            at_once: true,
            by,
        },
        Input::Stop,
    ]
}

/// A change of an input, of the configuration or of anything in them needs another number of the format: an older
/// file would be read as something else. After such a change raise [`FORMAT`] and write the new digest here.
#[test]
fn the_layout_is_that_of_this_format() {
    let mut recorder = super::recorder(u64::MAX);
    for (input, n) in inputs().iter().zip(1..) {
        recorder.input(moment(n), input);
        recorder.step_ended();
    }
    let octets = made(&mut recorder);
    assert_eq!((FORMAT, xxh3_64(&octets)), (4, LAYOUT));
    // And all of them are read as they were.
    let (all, rest) = records(&octets);
    assert_eq!(rest, Ok(0));
    let read = all.iter().filter_map(|record| match record {
        Record::Input(_, input) => Some(format!("{input:?}")),
        _ => None,
    });
    let given = inputs().into_iter().map(|input| format!("{input:?}"));
    assert_eq!(read.collect::<Vec<_>>(), given.collect::<Vec<_>>());
}

/// XXH3 of a recording of all of them.
const LAYOUT: u64 = 1_202_683_132_812_901_589;
