//! We call: resolve, connect, open, perhaps transfer, release.

use super::binds;
use super::exchange::{Event, Exchange, prepared};
use super::story::{Failure, Story};
use super::{Arguments, Subject, advice, message};
use crate::driver::socket::{self, ConnectError};
use base::ber::{Writer, universal};
use bytes::Bytes;
use node::config::{association_config, authentication};
use osi::api::{AbortReason, Indication, Payload, Request, Role};
use osi::session::service::ConnectionReference;
use p1::bind::MtaBindArgument;
use socket2::SockRef;
use tokio::net::TcpStream;

/// Tries the channel. Gives the exit code, or why nothing was tried.
pub(super) async fn run(arguments: &Arguments, subject: &Subject<'_>) -> Result<u8, String> {
    let (clock, deadline, pcap) = prepared(arguments)?;
    let message = arguments.message.map(|kind| message::build(kind, arguments, subject, clock));
    let message = message.transpose()?;
    let mut story = Story::new(arguments.json, subject.label(), "initiator");
    let stream = match tokio::time::timeout_at(deadline, connect(subject, &mut story)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(failure)) => return Ok(story.end("no connection", Some(&failure))),
        Err(_) => {
            let failure = no_connection(format!("no answer within {:?}", arguments.timeout));
            return Ok(story.end("no connection", Some(&failure)));
        }
    };
    let (peer, channel) = (subject.peer, subject.channel);
    let reference = reference(clock.now().utc)?;
    let (dialogue, checkpoint) = (channel.rts.dialogue, channel.rts.checkpoint_size);
    let config = association_config(peer, channel, dialogue, checkpoint, reference);
    let role = (Role::Initiator, config);
    let by = (clock, deadline, pcap.as_ref());
    let mut exchange = Exchange::new(subject, &mut story, stream, role, by);
    let mut writer = Writer::new();
    MtaBindArgument::Authenticated(authentication(peer)).write(&mut writer);
    exchange.request(Request::Open { bind: writer.into_vec().into() });
    let (result, failure) = converse(&mut exchange, subject, message).await;
    exchange.close().await;
    Ok(story.end(result, failure.as_ref()))
}

/// From the request to the end.
async fn converse(
    exchange: &mut Exchange<'_>,
    subject: &Subject<'_>,
    mut message: Option<(Vec<u8>, String)>,
) -> (&'static str, Option<Failure>) {
    let (mut opened, mut failure) = (false, None);
    loop {
        match exchange.next().await {
            Event::Indication(Indication::Opened { bind, .. }) => {
                let judged = binds::judge(&bind, subject, &exchange.explainer);
                if let Some(wrong) = judged.wrong {
                    exchange.request(Request::Abort(AbortReason::PermanentProblem));
                    exchange.drain().await;
                    return (
                        "refused by us",
                        Some(advice::wrong_bind(wrong, false, &judged.details)),
                    );
                }
                opened = true;
                let text = "the association is open".to_owned();
                exchange.story.here("bind", text, Vec::new());
                match message.take() {
                    Some((octets, words)) => {
                        exchange.story.here("transfer", words, Vec::new());
                        let payload = Payload::whole(octets);
                        exchange.request(Request::Transfer { payload, resume: None });
                    }
                    None => exchange.request(subject.end()),
                }
            }
            Event::Indication(Indication::TransferConfirmed) => {
                let text = "confirmed: they are responsible for it".to_owned();
                exchange.story.here("transfer", text, Vec::new());
                exchange.request(subject.end());
            }
            Event::Indication(Indication::TransferFailed { detail, .. }) => {
                let why = advice::transfer(exchange.explainer.without_secrets(&detail));
                exchange.story.here("transfer", why.reason.clone(), Vec::new());
                failure = Some(why);
                exchange.request(subject.end());
            }
            Event::Indication(Indication::Released) => {
                let result = match failure {
                    None => "opened and released",
                    Some(_) => "opened and released, without the transfer",
                };
                return (result, failure);
            }
            Event::Indication(Indication::Refused { detail, .. }) => {
                let detail = exchange.explainer.without_secrets(&detail);
                return ("refused", Some(advice::refused(exchange.story, subject, detail)));
            }
            Event::Indication(Indication::Aborted { detail, .. }) => {
                exchange.flush().await;
                let detail = exchange.explainer.without_secrets(&detail);
                if exchange.story.releases() {
                    let how = match exchange.ended {
                        true => "they closed the connection".to_owned(),
                        false => detail,
                    };
                    return not_released(failure, &how);
                }
                let result = if opened { "opened, then aborted" } else { "failed" };
                let ended = exchange.ended;
                return (result, Some(advice::aborted(exchange.story, subject, detail, ended)));
            }
            Event::Indication(_) | Event::Quiet => {}
            Event::Over if exchange.story.releases() => {
                return not_released(failure, "they closed the connection");
            }
            Event::TimedOut if exchange.story.releases() => {
                exchange.request(Request::Abort(AbortReason::TemporaryProblem));
                exchange.drain().await;
                return not_released(failure, "nothing came");
            }
            Event::Over => {
                let detail = "the connection ended".to_owned();
                return ("failed", Some(advice::aborted(exchange.story, subject, detail, true)));
            }
            Event::TimedOut => {
                let silent = advice::silent(exchange.story, subject);
                exchange.request(Request::Abort(AbortReason::TemporaryProblem));
                exchange.drain().await;
                return ("no answer", Some(silent));
            }
        }
    }
}

/// The release failed, perhaps after a transfer that failed too: that is more.
fn not_released(failure: Option<Failure>, how: &str) -> (&'static str, Option<Failure>) {
    ("opened, not released", Some(failure.unwrap_or_else(|| advice::no_release(how))))
}

fn no_connection(reason: String) -> Failure {
    let change = advice::no_connection(&reason);
    Failure { layer: "tcp", reason, octets: None, clause: None, change }
}

/// Connects as the daemon does, and states what the kernel knows of it.
async fn connect(subject: &Subject<'_>, story: &mut Story) -> Result<TcpStream, Failure> {
    for remote in subject.socket.remotes() {
        let resolved = match socket::resolve(remote).await {
            Ok(addresses) => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                format!("is {}", addresses.join(", "))
            }
            // Another place may be known.
            Err(error) if !subject.socket.others.is_empty() => format!("is not known: {error}"),
            Err(error) => return Err(no_connection(format!("{}: {error}", remote.host))),
        };
        story.here("name", format!("{remote} {resolved}"), Vec::new());
    }
    let connected = socket::connect(subject.socket, 0).await;
    let connected = connected.map_err(|error: ConnectError| no_connection(error.to_string()))?;
    let stream = connected.stream;
    let address = |of: std::io::Result<std::net::SocketAddr>| {
        of.map_or_else(|error| error.to_string(), |address| address.to_string())
    };
    let (to, from) = (address(stream.peer_addr()), address(stream.local_addr()));
    let mark = subject.socket.tcp.dscp;
    let mut details = vec![format!("our mark {mark}")];
    details.push(match connected.seen {
        Some(seen) if seen == mark => format!("mark of their answer {seen}, the same"),
        Some(seen) => {
            format!("mark of their answer {seen}, not {mark}: the path or they change it")
        }
        None => "mark of their answer: not given by the kernel (IPv4)".to_owned(),
    });
    let (used, wanted) = (congestion(&stream), subject.socket.tcp.congestion.as_deref());
    details.push(match wanted {
        Some(wanted) if used != wanted => {
            format!("congestion control {used}: {wanted} is not permitted here")
        }
        _ => format!("congestion control {used}"),
    });
    story.here("tcp", format!("connected to {to} from {from}"), details);
    Ok(stream)
}

/// The congestion control of a connection.
pub(super) fn congestion(stream: &TcpStream) -> String {
    let name = SockRef::from(stream).tcp_congestion().unwrap_or_default();
    let name: Vec<u8> = name.into_iter().take_while(|octet| *octet != 0).collect();
    if name.is_empty() { "unknown".to_owned() } else { name.escape_ascii().to_string() }
}

/// A number of 64 bits that nobody has had.
pub(super) fn random() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("no random numbers: {error}"))
}

/// A session connection reference that is nobody else's (X.228 7.1.1.6).
fn reference(utc: base::Utc) -> Result<ConnectionReference, String> {
    let element = |tag, text: String| {
        let mut writer = Writer::new();
        writer.string(tag, text);
        Bytes::from(writer.into_vec())
    };
    Ok(ConnectionReference {
        user: element(universal::OCTET_STRING, format!("try-{:016x}", random()?)),
        common: element(universal::UTC_TIME, utc.to_utc_time()),
        additional: Bytes::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::try_peer::binds::Wrong;

    #[test]
    fn a_failure_names_the_bind_that_is_wrong() {
        let details = vec!["their password is not the one of expect".to_owned()];
        let failure = advice::wrong_bind(Wrong::Password, false, &details);
        assert_eq!((failure.layer, failure.clause), ("bind", Some("X.411 12.1.1")));
        assert!(failure.change[0].contains("expect"), "{:?}", failure.change);
        assert_eq!(reference(base::Utc(0)).unwrap().user.len(), 22);
    }
}
