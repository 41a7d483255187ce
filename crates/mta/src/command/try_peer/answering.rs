//! They call: one connection is accepted, and answered as the daemon would. Nothing is taken.

use super::binds::{self, Wrong};
use super::exchange::{Event, Exchange, LINGER, prepared};
use super::story::{Failure, Story};
use super::{Arguments, Subject, advice};
use crate::config::ListenSocket;
use crate::driver::socket;
use base::ber::Writer;
use bytes::Bytes;
use node::config::{association_config, authentication};
use osi::api::{AbortReason, Dialogue, Indication, RefuseReason, Request, Role};
use p1::bind::{MtaBindError, MtaBindResult};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// After this time without octets on an open association, we ask for the turn, to release it.
const QUIET: Duration = Duration::from_secs(3);

/// Waits for the peer. Gives the exit code, or why nothing was tried.
pub(super) async fn run(
    arguments: &Arguments,
    subject: &Subject<'_>,
    listen: &ListenSocket,
) -> Result<u8, String> {
    let (clock, deadline, pcap) = prepared(arguments)?;
    let mut story = Story::new(arguments.json, subject.label(), "responder");
    let address = listen.address;
    let listener = match socket::listen(listen, false) {
        Ok(listener) => listener,
        Err(error) => {
            let in_use = error.kind() == ErrorKind::AddrInUse;
            let failure = advice::not_listening(format!("{address}: {error}"), in_use);
            return Ok(story.end("not listening", Some(&failure)));
        }
    };
    let details = vec![format!("our mark {}", listen.tcp.dscp)];
    story.here("tcp", format!("listening on {address} for {}", subject.peer.name), details);
    let accepted = tokio::time::timeout_at(deadline, socket::accept(&listener)).await;
    let (connected, remote) = match accepted {
        Ok(Ok(accepted)) => accepted,
        Ok(Err(error)) => return Err(format!("{address}: {error}")),
        Err(_) => {
            let failure = advice::nobody(address, arguments.timeout);
            return Ok(story.end("nobody connected", Some(&failure)));
        }
    };
    // One connection: what else comes is refused by the kernel.
    drop(listener);
    came(subject, &mut story, remote, connected.seen, listen);
    let stream: TcpStream = connected.stream;
    let (peer, channel) = (subject.peer, subject.channel);
    let (dialogue, checkpoint) = (channel.rts.dialogue, channel.rts.checkpoint_size);
    let config = association_config(peer, channel, dialogue, checkpoint, <_>::default());
    let by = (clock, deadline, pcap.as_ref());
    let role = (Role::Responder, config);
    let mut exchange = Exchange::new(subject, &mut story, stream, role, by);
    let (result, failure) = converse(&mut exchange, subject, remote).await;
    exchange.close().await;
    Ok(story.end(result, failure.as_ref()))
}

/// Whether the peer may connect from there.
fn is_from(subject: &Subject<'_>, remote: SocketAddr) -> bool {
    let (from, remote) = (&subject.peer.from, remote.ip().to_canonical());
    from.is_empty() || from.iter().any(|prefix| prefix.contains(remote))
}

fn came(
    subject: &Subject<'_>,
    story: &mut Story,
    remote: SocketAddr,
    seen: Option<dscp::Dscp>,
    listen: &ListenSocket,
) {
    let mark = listen.tcp.dscp;
    let seen = match seen {
        Some(seen) if seen == mark => format!("mark of their SYN {seen}, the channel's"),
        Some(seen) => format!("mark of their SYN {seen}, not the channel's {mark}"),
        None => "mark of their SYN: not given by the kernel".to_owned(),
    };
    let from = match (subject.peer.from.is_empty(), is_from(subject, remote)) {
        (true, _) => "any address may connect (no from)",
        (false, true) => "the address is in from",
        (false, false) => "the address is not in from: the bind will be refused",
    };
    story.here("tcp", format!("connected from {remote}"), vec![seen, from.to_owned()]);
}

/// What our user knows of the association.
#[derive(Default)]
struct State {
    open: bool,
    two_way: bool,
    asked: bool,
    refused: Option<Failure>,
}

async fn converse(
    exchange: &mut Exchange<'_>,
    subject: &Subject<'_>,
    remote: SocketAddr,
) -> (&'static str, Option<Failure>) {
    let mut state = State::default();
    loop {
        let refused = state.refused.is_some() || exchange.story.cause().is_some();
        let asks = state.open && state.two_way && !state.asked;
        let quiet = refused.then_some(LINGER).or(asks.then_some(QUIET));
        match exchange.next_within(quiet).await {
            Event::Indication(Indication::Released) => return ("opened and released", None),
            Event::Indication(Indication::Aborted { detail, .. }) => {
                exchange.flush().await;
                let detail = exchange.explainer.without_secrets(&detail);
                let ended = exchange.ended;
                let why = state.refused.take();
                let why =
                    why.unwrap_or_else(|| advice::aborted(exchange.story, subject, detail, ended));
                let result =
                    if state.open { "opened, then ended without a release" } else { "failed" };
                return (result, Some(why));
            }
            Event::Indication(indication) => {
                indicated(exchange, subject, remote, indication, &mut state);
            }
            Event::Quiet if refused => {
                let why = state.refused.take();
                let why = why.unwrap_or_else(|| advice::silent(exchange.story, subject));
                return ("refused by us", Some(why));
            }
            Event::Quiet => {
                state.asked = true;
                let text = "nothing for 3 s: we ask for the turn, to release".to_owned();
                exchange.story.here("rtse", text, Vec::new());
                exchange.request(Request::TurnPlease(0));
            }
            Event::Over => {
                let why = state.refused.take().unwrap_or_else(|| {
                    advice::aborted(exchange.story, subject, "the connection ended".into(), true)
                });
                return ("refused by us", Some(why));
            }
            Event::TimedOut => {
                let why = match state.open {
                    true => advice::not_released(),
                    false => {
                        let why = state.refused.take();
                        why.unwrap_or_else(|| advice::silent(exchange.story, subject))
                    }
                };
                exchange.request(Request::Abort(AbortReason::TemporaryProblem));
                exchange.drain().await;
                let result = if state.open { "opened, not released" } else { "failed" };
                return (result, Some(why));
            }
        }
    }
}

fn indicated(
    exchange: &mut Exchange<'_>,
    subject: &Subject<'_>,
    remote: SocketAddr,
    indication: Indication,
    state: &mut State,
) {
    match indication {
        Indication::Open { bind, mode, dialogue, .. } => {
            state.two_way = dialogue == Dialogue::TwoWayAlternate;
            let judged = binds::judge(&bind, subject, &exchange.explainer);
            let refused = match (subject.peer.takes(mode), is_from(subject, remote), judged.wrong) {
                (Err(why), ..) => Some(advice::wrong_mode(why)),
                (_, false, _) => Some(advice::wrong_origin(remote)),
                (_, _, Some(wrong)) => Some(advice::wrong_bind(wrong, true, &judged.details)),
                _ => None,
            };
            match refused {
                Some(failure) => {
                    state.refused = Some(failure);
                    exchange.request(refusal(judged.wrong));
                }
                None => {
                    state.open = true;
                    let text = "accepted: the association is open".to_owned();
                    let mut writer = Writer::new();
                    MtaBindResult::Authenticated(authentication(subject.peer)).write(&mut writer);
                    exchange.story.here("bind", text, Vec::new());
                    exchange.request(Request::Accept { bind: writer.into_vec().into() });
                }
            }
        }
        Indication::RecoverAsked { .. } => {
            let text = "they recover a lost association, which is not here: refused; a new one may \
                        follow";
            exchange.story.here("rtse", text.to_owned(), Vec::new());
            state.refused = Some(advice::recovery());
            let reason = RefuseReason::CannotRecover;
            exchange.request(Request::Refuse { reason, bind_error: None });
        }
        Indication::TransferStart { .. } | Indication::TransferResumed { .. } => {
            let text = "they begin a transfer: refused for now, because mta try keeps nothing";
            exchange.story.here("transfer", text.to_owned(), Vec::new());
            exchange.request(Request::TransferRefused(AbortReason::TemporaryProblem));
        }
        Indication::TurnGiven if state.asked => exchange.request(subject.end()),
        Indication::TurnGiven | Indication::TurnPlease(_) => {}
        _ => {}
    }
}

/// The refusal of a bind: authentication-error, as the daemon answers (X.411 12.1.1).
fn refusal(_: Option<Wrong>) -> Request {
    let mut writer = Writer::new();
    MtaBindError::AuthenticationError.write(&mut writer);
    let bind_error = Some(Bytes::from(writer.into_vec()));
    Request::Refuse { reason: RefuseReason::Bind, bind_error }
}
