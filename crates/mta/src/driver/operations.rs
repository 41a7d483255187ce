//! What operators ask for through the admin socket, and the metrics.

use super::monitoring::event_log::EventLogFile;
use super::{Driver, DriverAnswer};
use crate::admin::server::AdminRequest;
use base::Precedence;
use node::Input;
use node::event::{Kind, LogEvent, LogLevel, OrderedBy};
use node::metrics::{Family, Sample, Value};
use node::status::DamageStatus;
use passwords::ReadUsers;
use site_view::{Elsewhere, ElsewherePage};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use users::{Directory, Users};

impl Driver {
    /// Executes an admin request; returns whether it asks for a stop.
    pub(super) fn asked(&mut self, asked: AdminRequest) -> bool {
        match asked {
            AdminRequest::Status(answer) => {
                let mut status = self.node.status(self.clock.now());
                let damage = self.disk.damage();
                status.damage = (damage != DamageStatus::default()).then_some(damage);
                status.events_lost = self.events.as_ref().map(EventLogFile::lost);
                self.add_site(&mut status);
                let _ = answer.send(status);
                false
            }
            AdminRequest::Reload { dry_run, answer } => {
                let reloaded = if dry_run { self.plan_reload() } else { self.reload() };
                let _ = answer.send(reloaded);
                false
            }
            AdminRequest::Queue(asked, answer) => {
                match self.node.queue_page(self.clock.now(), &asked) {
                    Ok(page) => self.disk.describe(page, answer),
                    Err(why) => drop(answer.send(Err(why))),
                }
                false
            }
            AdminRequest::Elsewhere(asked, answer) => {
                let nothing = Ok(ElsewherePage::default());
                let page = move |elsewhere: &Elsewhere<'_>| elsewhere.page(&asked);
                self.look_elsewhere(answer, nothing, move |elsewhere| {
                    page(elsewhere).map_err(|error| error.to_string())
                });
                false
            }
            AdminRequest::Owners(entries, answer) => {
                self.look_elsewhere(answer, BTreeMap::new(), move |elsewhere| {
                    // As if nobody had them: so they are reported as not known.
                    elsewhere.owners(&entries).unwrap_or_default()
                });
                false
            }
            AdminRequest::Operate { entries, act, by, answer } => {
                self.last_request += 1;
                let request = self.last_request;
                self.operators.insert(request, answer);
                self.input(Input::Operate { request, entries, act, by });
                false
            }
            AdminRequest::Mailboxes(answer) => {
                self.input(Input::OpenMailboxes);
                let _ = answer.send(self.node.status(self.clock.now()));
                false
            }
            AdminRequest::Mailbox(address, answer) => {
                self.input(Input::OpenMailboxes);
                let _ = answer.send(self.node.mailbox_view(self.clock.now(), &address));
                false
            }
            AdminRequest::Purge { mailbox, rules, try_only, answer } => {
                if let Some(why) = self.mailbox_elsewhere(&mailbox) {
                    let _ = answer.send(Err(why));
                    return false;
                }
                self.last_request += 1;
                let request = self.last_request;
                // Drop the clients that no longer wait.
                self.purges.retain(|_, answer| !answer.is_closed());
                self.purges.insert(request, answer);
                self.input(Input::Purge { request, mailbox, rules, try_only });
                false
            }
            AdminRequest::Unregister { mailbox, by, answer } => {
                self.last_request += 1;
                let request = self.last_request;
                self.operators.insert(request, answer);
                self.input(Input::Unregister { request, mailbox, by });
                false
            }
            AdminRequest::Lists(answer) => {
                let _ = answer.send(self.node.distribution_lists().to_vec());
                false
            }
            AdminRequest::ChangeList { change, by, try_only, answer } => {
                self.last_request += 1;
                let request = self.last_request;
                self.list_changes.insert(request, answer);
                self.input(Input::ChangeList { request, change, by, try_only });
                false
            }
            AdminRequest::Audit { by, order, outcome } => {
                let utc = self.clock.now().utc;
                let event = LogEvent {
                    operator: Some(Box::new(OrderedBy(by.to_string()))),
                    detail: format!("{order}: {outcome}"),
                    ..LogEvent::new(LogLevel::Info, Kind::OperatorOrder)
                };
                self.event(utc, event);
                false
            }
            AdminRequest::Minimize { order, by, answer } => {
                let order = self.node.minimize_input(self.clock.now(), &order, by);
                let done = order.map(|order| {
                    self.input(order);
                    self.node.minimize_status(self.clock.now())
                });
                let _ = answer.send(done);
                false
            }
            AdminRequest::AcceptClock(by, answer) => {
                self.input(Input::AcceptClock { by });
                let _ = answer.send(self.node.clock_status(self.clock.now()));
                false
            }
            AdminRequest::Connect(name, answer) => {
                match self.node.channel_named(&name) {
                    Ok(channel) => {
                        self.last_request += 1;
                        let request = self.last_request;
                        // Drop the clients that no longer wait.
                        self.connecting.retain(|_, answer| !answer.is_closed());
                        self.connecting.insert(request, answer);
                        self.input(Input::ConnectChannel { request, channel });
                    }
                    Err(why) => drop(answer.send(Err(why))),
                }
                false
            }
            AdminRequest::Order { channel, order, at_once, dry_run, by, answer } => {
                match self.node.channel_named(&channel) {
                    Err(why) => drop(answer.send(Err(why.to_string()))),
                    Ok(channel) if dry_run => {
                        let now = self.clock.now();
                        drop(answer.send(Ok(self.node.channel_preview(now, channel, order))));
                    }
                    Ok(channel) => {
                        self.last_request += 1;
                        let request = self.last_request;
                        self.ordering.insert(request, answer);
                        self.input(Input::OrderChannel { request, channel, order, at_once, by });
                    }
                }
                false
            }
            AdminRequest::CheckStore { begin, rate, answer } => {
                let _ = answer.send(self.disk.check(begin, rate));
                false
            }
            AdminRequest::BackUp { begin, rate, answer } => {
                let data_dir = self.site.paths.data_dir.clone();
                let _ = answer.send(self.disk.back_up(begin, data_dir, rate));
                false
            }
            AdminRequest::ReloadUsers(answer) => {
                self.reload_users(Some(answer));
                false
            }
            AdminRequest::Drain(order, answer) => {
                let _ = answer.send(self.order_drain(order));
                false
            }
            AdminRequest::Stop(answer) => {
                let _ = answer.send(());
                true
            }
        }
    }

    pub(super) fn metrics(&self) -> Vec<Family> {
        let mut families = self.node.metrics(self.clock.now());
        families.push(damage(self.disk.damage()));
        families.extend(self.site_metrics());
        families.extend(self.events.as_ref().map(|events| Family {
            name: "mta_events_lost",
            help: "Lines of the event log that could not be written",
            samples: vec![Sample { labels: Vec::new(), value: Value::Counter(events.lost()) }],
        }));
        families.extend(self.tracker.as_ref().map(|tracker| Family {
            name: "mta_tracking_lost",
            help: "Events of messages that could not be tracked",
            samples: vec![Sample { labels: Vec::new(), value: Value::Counter(tracker.lost()) }],
        }));
        families
    }

    /// Reads the users again. Whoever asks is answered once they are known.
    pub(super) fn reload_users(&mut self, asked: Option<oneshot::Sender<()>>) {
        if let Directory::File(_) = &self.users.directory {
            match self.users.directory.read() {
                Ok(users) => self.take_users(users),
                Err(error) => tracing::error!(%error, "the users stay as they were"),
            }
            if let Some(asked) = asked {
                let _ = asked.send(());
            }
            return;
        }
        // Nobody waits for a database here.
        let Some(read) = self.users.changed(&self.verifier, asked) else { return };
        let inbox = Arc::clone(&self.inbox);
        tokio::task::spawn_blocking(move || {
            inbox.answer(Precedence::Immediate, DriverAnswer::Users(read()));
        });
    }

    /// The users of the database were read.
    pub(super) fn users_read(&mut self, read: ReadUsers) {
        match self.users.ended(&self.verifier, read) {
            Some(Ok(users)) if !self.verifier.has(&users) => self.take_users(users),
            Some(Err(error)) => {
                tracing::error!(%error, "the users stay as they were");
                // Nobody notifies the node of them again.
                self.site_input(ownership::Input::UsersUnread);
            }
            Some(Ok(_)) | None => {}
        }
        if self.users.is_due() {
            self.reload_users(None);
        }
    }

    pub(super) fn take_users(&mut self, users: Users) {
        let (addresses, stored) = (users.addresses(), users.stored());
        tracing::info!(users = addresses.len(), "read the users again");
        let changed = self.verifier.set_users(users);
        self.input(Input::Mailboxes { addresses, stored, changed });
    }
}

fn damage(damage: DamageStatus) -> Family {
    let of = [
        ("log", damage.log_parts),
        ("records", damage.records),
        ("contents", damage.contents),
        ("keys", damage.keys),
        ("set_aside", damage.set_aside),
    ];
    let sample = |(what, count): (&str, u64)| Sample {
        labels: vec![("what", what.to_owned())],
        value: Value::Gauge(count as f64),
    };
    let help = "What of the store is damaged or lost, as far as it was read";
    Family { name: "mta_store_damaged", help, samples: of.into_iter().map(sample).collect() }
}
