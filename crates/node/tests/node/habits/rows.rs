//! The rows: what the peer does, and what is expected of this MTA.

use super::middle::{Outcome, Seen, behave};
use super::{ACT, Case, NAPLES, Row, SHORT, play};
use base::PeerId;
use node::channel_order::ChannelOrder;
use node::event::Kind;
use node::operator::Operator;
use node::{ChannelId, Input};
use osi::api::Dialogue;
use std::time::Duration;
use testkit::Events;

/// A peer without habits.
const PEER: Row =
    Row { node: |_, _, _| {}, then: |_| {}, both_open: false, resumes: false, log: "" };

/// Gives this kind of TSDU this outcome.
macro_rules! give {
    ($kind:ident, $outcome:ident) => {
        |seen| if seen == Seen::$kind { Outcome::$outcome } else { Outcome::Carried }
    };
}

fn is_logged(case: &Case, text: &str) -> bool {
    [NAPLES, ACT].iter().any(|site| {
        case.network.sites[*site].all().iter().any(|(_, event)| event.detail.contains(text))
    })
}

/// How many associations the opener has opened.
fn opened(case: &Case) -> usize {
    case.network.sites[case.roles.opener].count(Kind::AssociationOpened)
}

// ----- recovery -----------------------------------------------------------------------------------

#[test]
fn a_peer_that_resumes() {
    play(&Row { then: |case| case.network.cut(), resumes: true, log: "recovered", ..PEER });
}

/// It has forgotten the association; another one follows at once.
#[test]
fn a_peer_that_refuses_every_recovery() {
    play(&Row {
        then: |case| {
            case.network.crash(1 - case.roles.opener);
            case.run_until(|case| is_logged(case, "cannotRecover"));
            // Without a message of its own the opener needs none.
            if case.roles.opener == case.roles.sender {
                let (before, count) = (case.network.now, opened(case));
                case.run_until(|case| opened(case) > count);
                let took = case.network.now.since(before);
                assert!(took < Duration::from_millis(100), "{}", case.log());
            }
        },
        log: "cannotRecover",
        ..PEER
    });
}

#[test]
fn a_peer_that_opens_anew_instead_of_recovering() {
    play(&Row {
        then: |case| {
            let (opener, sender) = (case.roles.opener, case.roles.sender);
            case.network.crash(opener);
            if opener == sender {
                return;
            }
            // A bind without a recovery ends the wait for one soon.
            case.network.bind(case.writers[opener], opener);
            let count = opened(case);
            case.submit(opener, SHORT);
            case.run_until(|case| opened(case) > count);
            let before = case.network.now;
            let started = case.network.sites[sender].count(Kind::TransferStarted);
            case.run_until(|case| {
                case.network.sites[sender].count(Kind::TransferStarted) > started
            });
            let took = case.network.now.since(before);
            assert!(took < Duration::from_secs(7), "{took:?}\n{}", case.log());
        },
        log: "connection reset",
        ..PEER
    });
}

#[test]
fn a_peer_that_closes_instead_of_an_answer_to_a_recovery() {
    play(&Row {
        then: |case| {
            behave(give!(Recovery, Closed), 5);
            case.network.cut();
        },
        log: "nobody had bound",
        ..PEER
    });
}

#[test]
fn a_peer_that_asks_for_a_recovery_late() {
    play(&Row {
        then: |case| {
            case.network.line_up = false;
            case.network.cut();
            case.network.run_for(Duration::from_secs(50));
            case.network.line_up = true;
        },
        resumes: true,
        log: "recovered",
        ..PEER
    });
}

// ----- checkpoints, windows, interrupts, turns ----------------------------------------------------

#[test]
fn a_peer_that_answers_without_checkpoints() {
    play(&Row {
        node: |config, site, roles| {
            let rts = &mut config.peers[0].channels[0].rts;
            rts.checkpoint_size = if site == roles.opener { 4 } else { 0 };
        },
        then: |case| case.network.cut(),
        log: "connection reset",
        ..PEER
    });
}

#[test]
fn a_peer_that_leaves_the_checkpoint_size_to_us() {
    play(&Row {
        node: |config, site, roles| {
            let rts = &mut config.peers[0].channels[0].rts;
            rts.checkpoint_size = if site == roles.opener { 0 } else { 4 };
        },
        then: |case| case.network.cut(),
        resumes: true,
        log: "recovered",
        ..PEER
    });
}

#[test]
fn a_peer_whose_window_is_three() {
    play(&Row {
        node: |config, site, roles| {
            let rts = &mut config.peers[0].channels[0].rts;
            rts.window = if site == roles.opener { 16 } else { 3 };
        },
        then: |case| case.network.cut(),
        resumes: true,
        log: "recovered",
        ..PEER
    });
}

#[test]
fn a_peer_whose_window_is_one() {
    play(&Row {
        node: |config, site, roles| {
            let rts = &mut config.peers[0].channels[0].rts;
            rts.window = if site == roles.opener { 1 } else { 16 };
        },
        then: |case| case.network.cut(),
        resumes: true,
        log: "recovered",
        ..PEER
    });
}

/// Its operator disconnects the channel: the activity is interrupted at a checkpoint.
#[test]
fn a_peer_that_interrupts() {
    play(&Row {
        then: |case| {
            let site = case.roles.sender;
            let name = ["naples", "act"][1 - site];
            let channel = ChannelId { peer: PeerId::of_name(name), index: 0 };
            let (order, by) = (ChannelOrder::Disconnect, Operator::default());
            let order = Input::OrderChannel { request: 1, channel, order, at_once: false, by };
            case.network.feed(site, order);
        },
        both_open: true,
        resumes: true,
        log: "the activity was interrupted (X.228 7.7.1)",
        ..PEER
    });
}

#[test]
fn a_one_way_peer() {
    play(&Row {
        node: |config, _, _| config.peers[0].channels[0].rts.dialogue = Dialogue::Monologue,
        then: |case| case.network.cut(),
        both_open: true,
        resumes: true,
        log: "recovered",
    });
}

/// The association is given up, and its initiator opens another one.
#[test]
fn a_peer_that_does_not_give_the_turn() {
    play(&Row {
        node: |config, _, _| {
            config.peers[0].channels[0].connection = node::config::Connection::Permanent;
        },
        then: |case| {
            case.network.run_for(Duration::from_secs(2));
            behave(give!(PleaseTokens, Lost), 1);
            case.submit(1 - case.roles.sender, SHORT);
        },
        log: "the peer did not give the turn in time",
        ..PEER
    });
}

// ----- ends ---------------------------------------------------------------------------------------

#[test]
fn a_peer_that_closes_without_a_release_when_idle() {
    play(&Row {
        then: |case| {
            case.network.run_for(Duration::from_secs(3));
            assert!(case.network.is_joined(), "{}", case.log());
            case.network.cut();
        },
        log: "connection reset",
        ..PEER
    });
}

#[test]
fn a_peer_that_closes_instead_of_a_release() {
    play(&Row { then: |_| behave(give!(Finish, Closed), 1), log: "connection reset", ..PEER });
}

/// A message that comes meanwhile goes once the wait is over.
#[test]
fn a_peer_that_does_not_answer_a_release() {
    play(&Row {
        then: |case| {
            behave(give!(Finish, Lost), 1);
            case.run_until(|_| super::middle::left() == 0);
            case.submit(case.roles.opener, SHORT);
        },
        log: "DISCONNECT did not come within the setup timeout",
        ..PEER
    });
}

#[test]
fn a_peer_that_closes_instead_of_the_last_confirm() {
    play(&Row {
        then: |_| behave(give!(ActivityEndAck, Closed), 1),
        resumes: true,
        log: "TransferCompleted",
        ..PEER
    });
}

#[test]
fn a_peer_that_never_confirms_the_end() {
    play(&Row {
        then: |_| behave(give!(ActivityEndAck, Lost), 1),
        resumes: true,
        log: "TransferCompleted",
        ..PEER
    });
}

// ----- aborts -------------------------------------------------------------------------------------

#[test]
fn a_sender_whose_session_provider_aborts() {
    play(&Row {
        then: |_| behave(give!(Data, ProviderAbort), 1),
        resumes: true,
        log: "aborted by the peer's provider: protocol error",
        ..PEER
    });
}

#[test]
fn a_receiver_whose_session_provider_aborts() {
    play(&Row {
        then: |_| behave(give!(MinorSyncAck, ProviderAbort), 1),
        resumes: true,
        log: "aborted by the peer's provider: protocol error",
        ..PEER
    });
}

#[test]
fn a_receiver_that_aborts_without_a_reason() {
    play(&Row {
        then: |_| behave(give!(MinorSyncAck, UserAbort), 1),
        resumes: true,
        log: "ithout",
        ..PEER
    });
}

#[test]
fn a_session_provider_that_aborts_instead_of_the_last_confirm() {
    play(&Row {
        then: |_| behave(give!(ActivityEndAck, ProviderAbort), 1),
        resumes: true,
        log: "aborted by the peer's provider: protocol error",
        ..PEER
    });
}

#[test]
fn a_session_provider_that_aborts_instead_of_a_release() {
    play(&Row {
        then: |_| behave(give!(Finish, ProviderAbort), 1),
        log: "aborted by the peer's provider: protocol error",
        ..PEER
    });
}

/// After the loss it does not come to an association at once.
#[test]
fn a_session_provider_that_aborts_instead_of_accepting() {
    play(&Row {
        then: |case| {
            behave(give!(Accept, ProviderAbort), 3);
            case.network.cut();
        },
        resumes: true,
        log: "aborted by the peer's provider: protocol error",
        ..PEER
    });
}
