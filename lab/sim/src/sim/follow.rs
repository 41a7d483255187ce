//! What follows from what is due: everything that happens at one moment.

use super::{Arriving, Sim};
use crate::ground::{Ground, Happening, Listening, Owner};
use crate::host::{ConnectionId, Event, Host};
use crate::station::{Station, StationEvent};
use crate::udp;
use crate::user::{Submission, UserEvent};
use p1::flags::ReportRequest;
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use router::Time;
use std::net::IpAddr;
use std::time::Duration;

impl Sim {
    pub(super) fn happen(&mut self, what: Happening) {
        let ground = &mut self.ground;
        match what {
            Happening::Looped { host, octets } => ground.arrive(host, octets),
            Happening::Answer { site, input } => {
                self.station(site, |station, ground| station.feed(ground, input));
            }
            Happening::Commit { site, token, batch } => {
                self.station(site, |station, ground| station.commit(ground, token, batch));
            }
            Happening::ToNode { site, association, bytes } => {
                self.station(site, |station, ground| {
                    station.node_hears(ground, association, bytes);
                });
            }
            Happening::ToUser { site, association, bytes } => {
                self.station(site, |station, ground| {
                    station.user_hears(ground, association, &bytes);
                });
            }
            Happening::Unplugged { site, association } => {
                self.station(site, |station, ground| station.unplugged(ground, association));
            }
            Happening::Bind { site, user } => {
                self.station(site, |station, ground| station.bind(ground, user));
            }
            Happening::Submit { message } => self.submit(message),
            Happening::Datagram { load } => self.datagram(load),
            Happening::Begin { load } => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.begin(ground);
                }
            }
            Happening::Go { load } => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.go_on(ground);
                }
            }
            Happening::Stop { load } => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.stop(ground);
                }
            }
            Happening::Probe { probe } => {
                let Some(recorder) = self.recorders.get_mut(probe) else { return };
                recorder.record(ground.since(), &ground.network);
                let interval = recorder.series.interval;
                ground.later(interval, Happening::Probe { probe });
            }
        }
    }

    fn station(&mut self, site: usize, act: impl FnOnce(&mut Station, &mut Ground)) {
        if let Some(station) = self.stations.get_mut(site) {
            act(station, &mut self.ground);
        }
    }

    fn datagram(&mut self, load: usize) {
        let Some(Some(source)) = self.sources.get_mut(load) else { return };
        let host = source.host;
        if let Some(octets) = source.datagram(self.ground.now) {
            self.ground.send(host, octets);
        }
        if let Some(at) = source.next() {
            self.ground.agenda.enter(at.max(self.ground.now), Happening::Datagram { load });
        }
    }

    fn submit(&mut self, number: usize) {
        let is_new = self.messages.times.get(number).is_some_and(|one| one.submitted.is_none());
        let Some(message) = self.messages.get(number).filter(|_| is_new) else { return };
        let from = message.from;
        let names = self.names.get(from.site).and_then(|names| names.get(from.user));
        let (Some(name), Some(to)) = (names, self.recipients.get(number)) else { return };
        let (priority, qualifier) = p1::grade::split(message.precedence);
        let envelope = MessageSubmissionEnvelope {
            originator: name.clone(),
            original_eits: None,
            content_type: p1::ContentType::P22,
            content_identifier: Some(number.to_string()),
            priority,
            indicators: Default::default(),
            deferred_delivery_time: None,
            recipients: vec![PerRecipientSubmissionFields {
                recipient: to.clone(),
                report_request: ReportRequest::NonDelivery,
                ..Default::default()
            }],
            extensions: p1::Extensions(
                qualifier.extension(p1::Dialect::Modern).into_iter().collect(),
            ),
            unknown: Vec::new(),
        };
        let submission = Submission { tag: number, envelope, size: message.size };
        self.messages.submitted(self.ground.since(), number);
        self.station(from.site, |station, ground| station.submit(ground, from.user, submission));
    }

    /// All that follows from what happened, until nothing does.
    pub(super) fn settle(&mut self) {
        loop {
            self.ground.exchange();
            let mut quiet = true;
            while let Some(packet) = self.ground.datagrams.pop_front() {
                let answer = udp::arrive(self.ground.now, &packet, &mut self.sources);
                if let Some((host, octets)) = answer {
                    quiet = false;
                    self.ground.send(host, octets);
                }
            }
            for host in 0..self.ground.hosts.len() {
                while let Some(event) = self.ground.hosts.get_mut(host).and_then(Host::event) {
                    quiet = false;
                    self.connection(host, event);
                }
            }
            for place in 0..self.stations.len() {
                while let Some((site, event)) =
                    self.stations.get_mut(place).and_then(Station::poll_event)
                {
                    quiet = false;
                    self.handle_event(site, event);
                }
            }
            while let Some((at, message)) = self.messages.start() {
                let at = (Time::ZERO + at).max(self.ground.now);
                self.ground.agenda.enter(at, Happening::Submit { message });
            }
            if quiet {
                return;
            }
        }
    }

    fn connection(&mut self, host: usize, event: Event) {
        let id = match &event {
            Event::Connected { id, .. }
            | Event::Failed { id, .. }
            | Event::Accepted { id, .. }
            | Event::Bytes { id, .. }
            | Event::Room { id }
            | Event::Closed { id, .. } => *id,
        };
        if let Event::Accepted { port, remote, seen, .. } = event {
            return self.accepted(host, id, port, remote, seen);
        }
        match self.ground.owners.get(&(host, id)).copied() {
            Some(Owner::Site { site, association }) => {
                self.station(site, |station, ground| {
                    station.connection(ground, association, event);
                });
            }
            Some(Owner::Bulk { load, side }) => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.event(&mut self.ground, side, event);
                }
            }
            None => {}
        }
    }

    fn accepted(
        &mut self,
        host: usize,
        id: ConnectionId,
        port: u16,
        remote: IpAddr,
        seen: Option<dscp::Dscp>,
    ) {
        match self.ground.listening.get(&(host, port)).copied() {
            Some(Listening::Site { site, listener }) => {
                self.station(site, |station, ground| {
                    station.accepted(ground, id, listener, remote, seen);
                });
            }
            Some(Listening::Bulk { load }) => {
                if let Some(transfer) = self.transfers.get(&load) {
                    transfer.accepted(&mut self.ground, id);
                }
            }
            None => {}
        }
    }

    fn handle_event(&mut self, site: usize, event: StationEvent) {
        let now = self.ground.since();
        match event {
            StationEvent::Event(event) => {
                self.messages.event(now, site, &event);
                self.events.push((now, site, event));
            }
            StationEvent::UserEvent { user, heard } => self.heard(now, site, user, heard),
        }
    }

    fn heard(&mut self, now: Duration, site: usize, user: usize, heard: UserEvent) {
        match heard {
            UserEvent::NeedContent { tag, offset, max } => {
                let Some(message) = self.messages.get(tag) else { return };
                let left = message.size.saturating_sub(offset);
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(max);
                let piece = self.messages.content(tag).piece(offset, len);
                self.station(site, |station, ground| {
                    station.with_user(ground, user, |user, now| user.content(now, piece));
                });
            }
            UserEvent::Answered { tag, result } => {
                let result = result.map_err(|code| format!("refused with error {code}"));
                self.messages.answered(now, tag, result);
            }
            UserEvent::Delivery(envelope) => {
                let number = envelope.content_identifier.as_deref().and_then(|n| n.parse().ok());
                let message = number.map(|number| (number, self.messages.content(number)));
                let arriving = Arriving { message, octets: 0, wrong: 0 };
                self.arriving.insert((site, user), arriving);
            }
            UserEvent::Content(bytes) => {
                let Some(arriving) = self.arriving.get_mut(&(site, user)) else { return };
                if let Some((_, content)) = arriving.message {
                    arriving.wrong += content.wrong(arriving.octets, &bytes);
                }
                arriving.octets += bytes.len() as u64;
            }
            UserEvent::Delivered { invoke } => {
                if let Some(Arriving { message: Some((number, _)), octets, wrong }) =
                    self.arriving.remove(&(site, user))
                {
                    self.messages.delivered(now, number, octets, wrong);
                }
                self.station(site, |station, ground| {
                    station.with_user(ground, user, |user, now| user.take(now, invoke));
                });
            }
            UserEvent::Report { invoke, .. } => self.station(site, |station, ground| {
                station.with_user(ground, user, |user, now| user.take_report(now, invoke));
            }),
            UserEvent::Bound
            | UserEvent::Refused(_)
            | UserEvent::Broken(_)
            | UserEvent::Write(_)
            | UserEvent::Close => {}
        }
    }
}
