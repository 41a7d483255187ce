//! The association on its connection: its octets in both directions go to the explanation and to the recording.

use super::story::Story;
use super::{Arguments, Subject, binds};
use crate::clock::Clock;
use crate::pcap::{Pcap, Tap};
use capture::Opener;
use explain::{Direction, Explainer};
use osi::api::{Indication, Input, Output, Request, Role};
use osi::stack::Association;
use std::future::pending;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Octets of one read.
const CHUNK: usize = 16 << 10;

/// Longest wait for the peer to close the connection once the association is over.
pub(super) const LINGER: Duration = Duration::from_secs(2);

/// What happens next on an association.
pub(super) enum Event {
    /// An indication for its user.
    Indication(Indication),
    /// The connection was closed by the association, after all indications.
    Over,
    /// The time of the whole is over.
    TimedOut,
    /// Nothing came for this long, as [`Exchange::next_within`] asks.
    Quiet,
}

/// The association, its connection, and what is made of it.
pub(super) struct Exchange<'a> {
    subject: &'a Subject<'a>,
    stream: TcpStream,
    association: Association,
    pub(super) explainer: Explainer,
    tap: Option<Tap>,
    clock: Clock,
    deadline: Instant,
    pub(super) story: &'a mut Story,
    /// The peer has closed its side.
    pub(super) ended: bool,
    over: bool,
}

/// Who records.
pub(super) fn recording(path: Option<&Path>, clock: Clock) -> Result<Option<Pcap>, String> {
    let Some(path) = path else { return Ok(None) };
    let shown = path.display();
    super::print_error(&format!("warning: {shown} will hold passwords and contents in clear"));
    let pcap = Pcap::create(path, None, clock);
    pcap.map(Some).map_err(|error| format!("cannot write {shown}: {error}"))
}

impl<'a> Exchange<'a> {
    /// On a new connection.
    pub(super) fn new(
        subject: &'a Subject<'a>,
        story: &'a mut Story,
        stream: TcpStream,
        (role, config): (Role, osi::api::Config),
        (clock, deadline, pcap): (Clock, Instant, Option<&Pcap>),
    ) -> Exchange<'a> {
        let opener = if role == Role::Initiator { Opener::Local } else { Opener::Remote };
        let ends = stream.local_addr().ok().zip(stream.peer_addr().ok());
        let tos = subject.socket.tcp.dscp.tos();
        let tap = pcap.zip(ends).and_then(|(p, ends)| p.tap(&subject.label(), ends, opener, tos));
        let secrets = [subject.peer.own_password.0.clone(), subject.expected.0.clone()];
        Exchange {
            subject,
            stream,
            association: Association::new(config, role),
            explainer: Explainer::new(secrets),
            tap,
            clock,
            deadline,
            story,
            ended: false,
            over: false,
        }
    }

    pub(super) fn request(&mut self, request: Request) {
        self.input(Input::Request(request));
    }

    fn input(&mut self, input: Input<'_>) {
        self.association.handle(self.clock.now().mono, input);
    }

    /// The next event; what is sent before it is sent.
    pub(super) async fn next(&mut self) -> Event {
        self.next_within(None).await
    }

    /// As [`Exchange::next`], but no longer than this without octets.
    pub(super) async fn next_within(&mut self, quiet: Option<Duration>) -> Event {
        let quiet = quiet.map(|quiet| Instant::now() + quiet);
        loop {
            while let Some(output) = self.association.poll() {
                match output {
                    Output::Send(octets) => self.send(&octets).await,
                    Output::Close => self.over = true,
                    Output::Indication(indication) => return Event::Indication(indication),
                }
            }
            if self.over {
                return Event::Over;
            }
            let due = self.association.deadline().map(|at| self.clock.at(at));
            let limit = quiet.map_or(self.deadline, |quiet| quiet.min(self.deadline));
            let mut buffer = vec![0; CHUNK];
            tokio::select! {
                read = read(&mut self.stream, &mut buffer, self.ended) => self.received(read, &buffer),
                () = sleep(due) => self.input(Input::Tick),
                () = tokio::time::sleep_until(limit) => {
                    if limit != self.deadline {
                        return Event::Quiet;
                    }
                    self.unfinished();
                    return Event::TimedOut;
                }
            }
        }
    }

    async fn send(&mut self, octets: &[u8]) {
        self.explain(Direction::Sent, octets);
        if let Some(tap) = &self.tap {
            tap.sent(octets);
        }
        let written = tokio::time::timeout_at(self.deadline, self.stream.write_all(octets)).await;
        if let Ok(Err(error)) = written {
            self.lost(&error);
        }
    }

    fn received(&mut self, read: io::Result<usize>, buffer: &[u8]) {
        match read {
            Ok(0) => {
                self.ended = true;
                self.unfinished();
                self.story.here("tcp", "they closed the connection".to_owned(), Vec::new());
                self.input(Input::Eof);
            }
            Ok(count) => {
                let octets = buffer.get(..count).unwrap_or_default();
                self.explain(Direction::Received, octets);
                if let Some(tap) = &self.tap {
                    tap.received(octets);
                }
                self.input(Input::Bytes(octets));
            }
            Err(error) => self.lost(&error),
        }
    }

    fn lost(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.ended, true) {
            self.story.here("tcp", format!("the connection is lost: {error}"), Vec::new());
            self.input(Input::Eof);
        }
    }

    /// Adds what octets mean to the story.
    fn explain(&mut self, direction: Direction, octets: &[u8]) {
        self.explainer.octets(direction, octets);
        while let Some(line) = self.explainer.poll() {
            let bind = line.bind.as_ref();
            let more = bind
                .map(|bind| binds::details(bind, line.direction, self.subject, &self.explainer));
            self.story.line(line, more.unwrap_or_default());
        }
    }

    /// Ends an association that is given up: what is pending is sent, and the peer may close.
    pub(super) async fn drain(&mut self) {
        self.deadline = Instant::now() + LINGER;
        while let Event::Indication(_) = self.next().await {}
    }

    /// Adds a packet of theirs that is not complete to the story.
    fn unfinished(&mut self) {
        let octets = self.explainer.unfinished(Direction::Received);
        if octets > 0 {
            let text = format!("they began a packet, of which {octets} octets came");
            self.story.here("transport", text, Vec::new());
        }
    }

    /// Sends what the association still has to send.
    pub(super) async fn flush(&mut self) {
        while let Some(output) = self.association.poll() {
            if let Output::Send(octets) = output {
                self.send(&octets).await;
            }
        }
    }

    /// Closes our side, and waits for theirs.
    pub(super) async fn close(&mut self) {
        self.flush().await;
        let _ = self.stream.shutdown().await;
        let limit = Instant::now() + LINGER;
        let mut buffer = vec![0; CHUNK];
        while !self.ended {
            let read = tokio::time::timeout_at(limit, self.stream.read(&mut buffer)).await;
            match read {
                Ok(Ok(count)) if count > 0 => {
                    let octets = buffer.get(..count).unwrap_or_default().to_vec();
                    self.explain(Direction::Received, &octets);
                    if let Some(tap) = &self.tap {
                        tap.received(&octets);
                    }
                }
                Ok(_) => {
                    self.ended = true;
                    self.story.here("tcp", "closed by both".to_owned(), Vec::new());
                }
                Err(_) => {
                    let text = format!("closed by us; they did not close within {LINGER:?}");
                    self.story.here("tcp", text, Vec::new());
                    break;
                }
            }
        }
        if let Some(tap) = &self.tap {
            tap.closed();
        }
    }
}

/// The connection's next octets; for ever where it has ended.
async fn read(stream: &mut TcpStream, buffer: &mut [u8], ended: bool) -> io::Result<usize> {
    if ended { pending().await } else { stream.read(buffer).await }
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => pending().await,
    }
}

/// When all must be over, and the recording.
pub(super) fn prepared(arguments: &Arguments) -> Result<(Clock, Instant, Option<Pcap>), String> {
    let clock = Clock::start();
    let pcap = recording(arguments.pcap.as_deref(), clock)?;
    Ok((clock, Instant::now() + arguments.timeout, pcap))
}
