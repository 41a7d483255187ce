//! What follows from what is due: everything that happens at one moment.

use super::{Arriving, Sim};
use crate::load::udp;
use crate::sim::simulated_hosts::{Listening, Owner, ScheduledEvent, SimulatedHosts};
use crate::station::user::{UserEvent, UserSubmission};
use crate::station::{Station, StationEvent};
use p1::flags::ReportRequest;
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use router::Time;
use std::net::IpAddr;
use std::time::Duration;
use virtual_tcp::{ConnectionId, HostEvent, TcpHost};

impl Sim {
    pub(super) fn happen(&mut self, what: ScheduledEvent) {
        let simulated = &mut self.simulated;
        match what {
            ScheduledEvent::Looped { host, octets } => simulated.arrive(host, octets),
            ScheduledEvent::Answer { site, input } => {
                self.station(site, |station, simulated| station.feed(simulated, input));
            }
            ScheduledEvent::Commit { site, token, batch } => {
                self.station(site, |station, simulated| station.commit(simulated, token, batch));
            }
            ScheduledEvent::ToNode { site, association, bytes } => {
                self.station(site, |station, simulated| {
                    station.node_receives(simulated, association, bytes);
                });
            }
            ScheduledEvent::ToUser { site, association, bytes } => {
                self.station(site, |station, simulated| {
                    station.user_receives(simulated, association, &bytes);
                });
            }
            ScheduledEvent::Unplugged { site, association } => {
                self.station(site, |station, simulated| station.unplugged(simulated, association));
            }
            ScheduledEvent::Bind { site, user } => {
                self.station(site, |station, simulated| station.bind(simulated, user));
            }
            ScheduledEvent::Submit { message } => self.submit(message),
            ScheduledEvent::Datagram { load } => self.datagram(load),
            ScheduledEvent::Begin { load } => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.begin(simulated);
                }
            }
            ScheduledEvent::Go { load } => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.go_on(simulated);
                }
            }
            ScheduledEvent::Stop { load } => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.stop(simulated);
                }
            }
            ScheduledEvent::Probe { probe } => {
                let Some(recorder) = self.recorders.get_mut(probe) else { return };
                recorder.record(simulated.since(), &simulated.network);
                let interval = recorder.series.interval;
                simulated.later(interval, ScheduledEvent::Probe { probe });
            }
        }
    }

    fn station(&mut self, site: usize, act: impl FnOnce(&mut Station, &mut SimulatedHosts)) {
        if let Some(station) = self.stations.get_mut(site) {
            act(station, &mut self.simulated);
        }
    }

    fn datagram(&mut self, load: usize) {
        let Some(Some(source)) = self.sources.get_mut(load) else { return };
        let host = source.host;
        if let Some(octets) = source.datagram(self.simulated.now) {
            self.simulated.send(host, octets);
        }
        if let Some(at) = source.next() {
            self.simulated
                .agenda
                .enter(at.max(self.simulated.now), ScheduledEvent::Datagram { load });
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
        let submission = UserSubmission { tag: number, envelope, size: message.size };
        self.messages.submitted(self.simulated.since(), number);
        self.station(from.site, |station, simulated| {
            station.submit(simulated, from.user, submission);
        });
    }

    /// All that follows from what happened, until nothing does.
    pub(super) fn settle(&mut self) {
        loop {
            self.simulated.exchange();
            let mut quiet = true;
            while let Some(packet) = self.simulated.datagrams.pop_front() {
                let answer = udp::arrive(self.simulated.now, &packet, &mut self.sources);
                if let Some((host, octets)) = answer {
                    quiet = false;
                    self.simulated.send(host, octets);
                }
            }
            for host in 0..self.simulated.hosts.len() {
                while let Some(event) = self.simulated.hosts.get_mut(host).and_then(TcpHost::event)
                {
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
                let at = (Time::ZERO + at).max(self.simulated.now);
                self.simulated.agenda.enter(at, ScheduledEvent::Submit { message });
            }
            if quiet {
                return;
            }
        }
    }

    fn connection(&mut self, host: usize, event: HostEvent) {
        let id = match &event {
            HostEvent::Connected { id, .. }
            | HostEvent::Failed { id, .. }
            | HostEvent::Accepted { id, .. }
            | HostEvent::Bytes { id, .. }
            | HostEvent::Room { id }
            | HostEvent::Closed { id, .. } => *id,
        };
        if let HostEvent::Accepted { port, remote, seen, .. } = event {
            return self.accepted(host, id, port, remote, seen);
        }
        match self.simulated.owners.get(&(host, id)).copied() {
            Some(Owner::Site { site, association }) => {
                self.station(site, |station, simulated| {
                    station.connection(simulated, association, event);
                });
            }
            Some(Owner::Bulk { load, side }) => {
                if let Some(transfer) = self.transfers.get_mut(&load) {
                    transfer.event(&mut self.simulated, side, event);
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
        match self.simulated.listening.get(&(host, port)).copied() {
            Some(Listening::Site { site, listener }) => {
                self.station(site, |station, simulated| {
                    station.accepted(simulated, id, listener, remote, seen);
                });
            }
            Some(Listening::Bulk { load }) => {
                if let Some(transfer) = self.transfers.get(&load) {
                    transfer.accepted(&mut self.simulated, id);
                }
            }
            None => {}
        }
    }

    fn handle_event(&mut self, site: usize, event: StationEvent) {
        let now = self.simulated.since();
        match event {
            StationEvent::Event(event) => {
                self.messages.event(now, site, &event);
                self.events.push((now, site, event));
            }
            StationEvent::UserEvent { user, received_event } => {
                self.received_event(now, site, user, received_event);
            }
        }
    }

    fn received_event(
        &mut self,
        now: Duration,
        site: usize,
        user: usize,
        received_event: UserEvent,
    ) {
        match received_event {
            UserEvent::NeedContent { tag, offset, max } => {
                let Some(message) = self.messages.get(tag) else { return };
                let left = message.size.saturating_sub(offset);
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(max);
                let piece = self.messages.content(tag).piece(offset, len);
                self.station(site, |station, simulated| {
                    station.with_user(simulated, user, |user, now| user.content(now, piece));
                });
            }
            UserEvent::Answered { tag, result } => {
                let result = result.map(|identifier| identifier.to_string());
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
                self.station(site, |station, simulated| {
                    station.with_user(simulated, user, |user, now| user.take(now, invoke));
                });
            }
            UserEvent::Report { invoke, .. } => self.station(site, |station, simulated| {
                station.with_user(simulated, user, |user, now| user.take_report(now, invoke));
            }),
            UserEvent::Bound
            | UserEvent::Refused(_)
            | UserEvent::Broken(_)
            | UserEvent::Write(_)
            | UserEvent::Cancelled { .. }
            | UserEvent::Close => {}
        }
    }
}
