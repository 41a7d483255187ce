//! What to change, here or at the peer, by what came.

use super::Subject;
use super::binds::Wrong;
use super::story::{Failure, Story};
use explain::{Cause, Direction, Layer};
use std::net::SocketAddr;
use std::time::Duration;

fn failure(
    layer: &'static str,
    reason: String,
    clause: Option<&'static str>,
    change: Vec<String>,
) -> Failure {
    Failure { layer, reason, octets: None, clause, change }
}

/// They refused: the deepest layer with a cause, else what our stack noted.
pub(super) fn refused(story: &Story, subject: &Subject<'_>, detail: String) -> Failure {
    let Some(found) = story.cause() else {
        let change = vec!["compare the exchange above with theirs, in their log".to_owned()];
        return failure("session", detail, None, change);
    };
    Failure {
        layer: found.layer.name(),
        reason: match found.direction {
            Direction::Received => found.text.clone(),
            Direction::Sent => format!("{}; our stack: {detail}", found.text),
        },
        // Ours show nothing that is not known here.
        octets: (found.direction == Direction::Received).then(|| found.trouble.octets.clone()),
        clause: Some(found.trouble.clause),
        change: match found.direction {
            Direction::Received => theirs(found.layer, found.trouble.cause, subject),
            Direction::Sent => ours(found.trouble.cause, subject),
        },
    }
}

/// The association ended before it was released.
pub(super) fn aborted(
    story: &Story,
    subject: &Subject<'_>,
    detail: String,
    ended: bool,
) -> Failure {
    if story.cause().is_some() {
        return refused(story, subject, detail);
    }
    if ended {
        return closed(story, &detail);
    }
    if detail.contains("timeout") || detail.contains("did not come within") {
        return Failure { reason: detail, ..silence(story) };
    }
    let change = vec!["the clause names what our stack expected: compare it with what came".into()];
    failure("session", detail, None, change)
}

/// They closed the connection without a word.
fn closed(story: &Story, detail: &str) -> Failure {
    let after = story.sent.as_deref().unwrap_or("anything of ours");
    let reason = format!("they closed the connection after {after}: {detail}");
    let change = match story.received {
        None => vec![
            "their listener is for another protocol or for other addresses: ask which port and \
             address of ours they have, and for their log of this time"
                .to_owned(),
            "some close without an answer where a TSEL is wrong: compare tsel and own_tsel"
                .to_owned(),
        ],
        Some(_) => vec![
            "they closed without a refusal: their log has the reason. Compare selectors (ssel, \
             psel), own_name and password"
                .to_owned(),
        ],
    };
    failure("tcp", reason, None, change)
}

/// FINISH was not answered with DISCONNECT: they aborted, closed or were silent.
pub(super) fn no_release(how: &str) -> Failure {
    let reason = format!("FINISH was not answered with DISCONNECT: {how}");
    let change = vec![
        "release = \"close\" in [[peer]]: we close the connection, and send no RLRQ and no FINISH"
            .to_owned(),
        "all else is right: the association was open. Without the key the daemon releases as this \
         trial does, waits as long as timeouts.setup, and logs association_lost; no message is lost \
         by it"
            .to_owned(),
    ];
    failure("session", reason, Some("X.225 7.7"), change)
}

/// Nothing came, after what may have been a refusal.
pub(super) fn silent(story: &Story, subject: &Subject<'_>) -> Failure {
    match story.cause() {
        Some(_) => refused(story, subject, "the peer did not close".to_owned()),
        None => silence(story),
    }
}

/// Nothing came.
fn silence(story: &Story) -> Failure {
    let after = story.sent.as_deref().unwrap_or("the connection was open");
    let (layer, change) = match &story.received {
        None => (
            "transport",
            vec![
                "the port is open and nothing answers: a firewall, or another protocol there; ask \
                 whether their RFC 1006 listener is on this port"
                    .to_owned(),
            ],
        ),
        Some(_) => (
            "session",
            vec!["their transport answers, the layers above do not: ask for their log".to_owned()],
        ),
    };
    failure(layer, format!("nothing came after {after}"), None, change)
}

/// TCP.
pub(super) fn no_connection(reason: &str) -> Vec<String> {
    let change = if reason.contains("refused") {
        "nothing listens there: compare remote with their address and port, and whether it runs"
    } else if reason.contains("no answer") || reason.contains("unreachable") {
        "no answer: the route, a firewall, or the mark on the path; try ping and another mark"
    } else {
        "the name cannot be resolved: write an address in remote, or correct the name"
    };
    vec![change.to_owned()]
}

/// The address cannot be listened on.
pub(super) fn not_listening(reason: String, in_use: bool) -> Failure {
    let change = match in_use {
        true => {
            "the address is in use: the daemon listens there, or another program. Stop the \
                 daemon, or take another address with --as-responder PEER"
        }
        false => "the address must be one of this machine, and the port one that this user may use",
    };
    failure("tcp", reason, None, vec![change.to_owned()])
}

/// Nobody connected.
pub(super) fn nobody(address: SocketAddr, timeout: Duration) -> Failure {
    let change = vec![
        format!("compare {address} with what they call, and look for a firewall between"),
        "they may call only when a message waits: ask them to send one".to_owned(),
    ];
    failure("tcp", format!("no connection within {timeout:?}"), None, change)
}

/// The transfer failed; the association did not.
pub(super) fn transfer(detail: String) -> Failure {
    let change = vec![
        "they do not take it: the recipient, the size, or their room; see their log".to_owned(),
    ];
    failure("transfer", detail, Some("X.228 7.6"), change)
}

/// It was open at the end of the time.
pub(super) fn not_released() -> Failure {
    let reason = "the association was open, and they did not release it in time".to_owned();
    let change = vec!["none, where they keep associations open: it was ended by us".to_owned()];
    failure("rtse", reason, Some("X.218 RT-CLOSE"), change)
}

/// They asked for a recovery and for nothing after it.
pub(super) fn recovery() -> Failure {
    let reason = "they recover an association of the daemon, which is not here".to_owned();
    let change = vec!["try again: after cannotRecover they open a new one".to_owned()];
    failure("rtse", reason, Some("X.228 7.8"), change)
}

/// The call is in a mode that is not the configured one.
pub(super) fn wrong_mode(why: String) -> Failure {
    let change = vec![
        "mode = \"x410-1984\" in [[peer]] if they call in X.410 mode, with application_protocol as \
         they send it"
            .to_owned(),
    ];
    failure("presentation", why, Some("X.226 8.2, X.228 9"), change)
}

/// The call comes from elsewhere.
pub(super) fn wrong_origin(remote: SocketAddr) -> Failure {
    let address = remote.ip().to_canonical();
    let change = vec![format!("add \"{address}\" to from in [[peer]], if it is theirs")];
    failure("tcp", format!("{address} is not in from"), None, change)
}

/// The peer's bind is not the configured one.
pub(super) fn wrong_bind(wrong: Wrong, is_call: bool, details: &[String]) -> Failure {
    let change = match wrong {
        Wrong::Name => "mta_name in [[peer]] must be the name that they bind with",
        Wrong::Password => {
            "compare the secret of expect with the password that they send to us: letters, case, \
             a line end in their file"
        }
        Wrong::Unauthenticated => "they must send a name and a password (simple credentials)",
        Wrong::Form => "strong and protected credentials are not supported: ask for simple ones",
        Wrong::Unreadable => "their bind is malformed: send them the octets (--pcap)",
    };
    let what = if is_call { "their bind" } else { "their bind result" };
    let reason = format!("we refuse {what}: {}", details.join("; "));
    failure("bind", reason, Some("X.411 12.1.1"), vec![change.to_owned()])
}

/// What the peer does not take of ours.
fn theirs(layer: Layer, cause: Cause, subject: &Subject<'_>) -> Vec<String> {
    let (name, form) = (&subject.peer.own_name.0, subject.peer.octet_credentials);
    let other_form = if form { "ia5" } else { "octet" };
    let in_x410 = subject.peer.x410.is_some();
    let change = match cause {
        Cause::NotTpkt => "another protocol is on this port: ask for their RFC 1006 port (102)",
        Cause::TransportAddress => {
            "called TSEL unknown: ask for their TSEL, and write it as tsel in [[peer]]"
        }
        Cause::TransportClass => "they must offer transport class 0 (RFC 1006)",
        Cause::TransportOther(_) => {
            "their transport refuses: the calling TSEL (own_tsel) may be unknown to them, or our \
             address; a smaller tpdu_size may help"
        }
        Cause::Congestion => "they are busy: too many associations or failed binds; try later",
        Cause::SessionAddress => {
            "called SSEL unknown: ask for their SSEL, and write it as ssel in [[peer]]"
        }
        Cause::SessionVersion if in_x410 => {
            "they take neither version of session: ask for their log"
        }
        Cause::SessionOther(_) | Cause::SessionAbort if in_x410 => {
            "their session refuses our CONNECT: ask for their log"
        }
        Cause::SessionVersion => {
            "they have version 1 of session only: mode = \"x410-1984\" proposes both versions"
        }
        Cause::SessionUser | Cause::UserAbort => {
            "a layer above refuses without a reason: compare own_name, password, psel, and their \
             configuration of this MTA"
        }
        Cause::SessionOther(_) | Cause::SessionAbort => {
            "their session refuses our CONNECT: ask for their log; a peer of 1984 needs \
             mode = \"x410-1984\""
        }
        Cause::FunctionalUnits(_) => {
            "they lack session functional units that P1 over RTSE needs: the port may be for P3, \
             P7 or another service"
        }
        Cause::PresentationAddress => {
            "called PSEL unknown: ask for their PSEL, and write it as psel in [[peer]]"
        }
        Cause::PresentationOther(_) => {
            "their presentation cannot use our CP: a peer of 1984 needs mode = \"x410-1984\""
        }
        Cause::ContextRefused(_) => {
            "they have no P1 of 1988 there: the port may be for another service (P3, P7, X.500), \
             or mode = \"x410-1984\" is needed"
        }
        Cause::AnswersInX410 => {
            "they answer in X.410 mode: mode = \"x410-1984\" in [[peer]], application_protocol 1 \
             or 12 as they expect"
        }
        Cause::AnswersInNormal => {
            "they answer in normal mode: mode = \"normal\" in [[peer]], which replaces that of a profile"
        }
        Cause::ApplicationContext => {
            "they have no application context 2.6.0.1.6 (mts-transfer, P1): the port is for \
             another service, or they expect mode = \"x410-1984\""
        }
        Cause::AcseRejected(_) | Cause::AcseAbort => {
            "their application refuses: whether it knows this MTA by its name, address and \
             selectors (own_name, own_tsel, own_ssel, own_psel) is in their configuration"
        }
        Cause::DialogueMode => {
            "they refuse the dialogue mode: rts = { dialogue = \"monologue\" } or \
             \"two-way-alternate\", the other one"
        }
        Cause::RtseRefused(2) | Cause::BindError(2) => {
            let mut change = vec![
                format!(
                    "they refuse our name or password: they must expect {name:?} (own_name) and \
                     the secret of password; compare it with theirs"
                ),
                format!("credentials = {other_form:?} sends the password in its other form"),
                "whether they allow this MTA to call from its address".to_owned(),
            ];
            if !in_x410 && cause == Cause::RtseRefused(2) {
                let text = "validationFailure is a refusal of X.410 mode, and we called in normal mode: \
                            mode = \"x410-1984\" in [[peer]], or profile = \"x410-1984\"";
                change.insert(0, text.to_owned());
            }
            if in_x410 {
                let text = "in X.410 mode the same reason may mean that they have no such mode, or \
                            another application_protocol";
                change.push(text.to_owned());
            }
            return change;
        }
        Cause::BindError(4) => "they ask for a security-context, which we do not send",
        Cause::BindError(5) => {
            "they ask for confidentiality of the association, which we do not have"
        }
        Cause::RtseRefused(_) | Cause::BindError(_) => {
            "the number is of X.411 12.1.1 or X.228 9: ask for their log"
        }
        // invalidParameter, permanentProblem, userError: what came is at fault (X.228 9.3).
        Cause::RtseAbort(1 | 4 | 6) => {
            return vec![
                "they abort for what we sent: ask for their log".to_owned(),
                "if they read P1 of 1988 alone: extensions = \"1988\" in [[peer]]".to_owned(),
                "if they refuse private extensions: qualifier = \"omit\"".to_owned(),
                "if they refuse members that have the value of their DEFAULT: explicit_defaults = \
                 false"
                    .to_owned(),
                "before a transfer: rts = { checkpoint, window } may not suit them".to_owned(),
            ];
        }
        Cause::RtseAbort(_) => {
            "their RTSE aborts: rts = { checkpoint, window } may not suit them; see their log"
        }
        Cause::Malformed => match layer {
            Layer::Transport | Layer::Session => "their answer is malformed: another protocol?",
            _ => "their answer is malformed: send them the octets (--pcap)",
        },
    };
    vec![change.to_owned()]
}

/// What we do not take of the peer's.
fn ours(cause: Cause, subject: &Subject<'_>) -> Vec<String> {
    let local = &subject.peer.local;
    let change = match cause {
        Cause::TransportAddress => format!(
            "they call another TSEL than own_tsel{}: one of both must change",
            shown(local.transport.as_deref())
        ),
        Cause::SessionAddress => format!(
            "they call another SSEL than own_ssel{}: one of both must change",
            shown(local.session.as_deref())
        ),
        Cause::PresentationAddress => format!(
            "they call another PSEL than own_psel{}: one of both must change",
            shown(local.presentation.as_deref())
        ),
        Cause::TransportClass => "they must offer transport class 0 (RFC 1006)".to_owned(),
        Cause::SessionVersion => "they must offer version 2 of session, or call in X.410 mode \
             with mode = \"x410-1984\" here"
            .to_owned(),
        Cause::ContextRefused(_) | Cause::ApplicationContext => {
            "they call for another service than P1 (mts-transfer, 2.6.0.1.6)".to_owned()
        }
        Cause::RtseRefused(2) => match subject.peer.x410 {
            None => "a call in X.410 mode needs mode = \"x410-1984\" in [[peer]]".to_owned(),
            Some(_) => "application_protocol must be what they send (none stands for 1, P1 of 1984, with \
                        extensions = \"1984\"), and they must propose half-duplex, minor synchronize, \
                        activities and exceptions"
                .to_owned(),
        },
        _ => "the clause names what is wrong in what they sent: send them the octets (--pcap)"
            .to_owned(),
    };
    vec![change]
}

fn shown(selector: Option<&[u8]>) -> String {
    let quoted = selector.map(|octets| format!(" = \"{}\"", octets.escape_ascii()));
    quoted.unwrap_or_default()
}
