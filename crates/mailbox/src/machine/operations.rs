//! The operations of a session, from their arguments to their responses.

use super::open::{Chore, Open, State};
use super::{Asked, Found, Mailboxes, Output, Read, Response, Ticket};
use crate::attributes::{available, unavailable};
use crate::query::{Access, Answer, Outcome, Query, Step};
use crate::registrations::Registrations;
use base::ber::{Element, Error, Oid, Writer};
use base::{AssociationId, Now, Precedence};
use bytes::Bytes;
use engine::Payload;
use engine::journal::MailboxId;
use p1::p3::AccessError;
use p7::MsError;
use p7::auto_action::AutoActionRegistration;
use p7::auto_forward::AutoForward;
use p7::error::{AttributeProblem, AttributeProblemItem, AutoActionRequestProblem, ServiceProblem};
use p7::limits::MAX_PROBLEMS;
use p7::operation::{
    self, DeleteArgument, FetchArgument, ListArgument, Modification, ModifyArgument,
    RegisterMsArgument, RegisterMsResult, SummarizeArgument,
};

/// An operation that was invoked.
#[derive(Debug)]
pub(super) struct Operation {
    invoke: i64,
    code: i64,
    argument: Argument,
}

#[derive(Debug)]
enum Argument {
    Summarize(SummarizeArgument),
    List(ListArgument),
    Fetch(FetchArgument),
    Delete(DeleteArgument),
    Register(Box<RegisterMsArgument>),
    /// Its response is known.
    Ends(Response),
}

impl Argument {
    fn read(code: i64, is_1994: bool, argument: &[u8]) -> Result<Argument, Error> {
        let read = |e: &Element<'_>| {
            Ok(match code {
                operation::SUMMARIZE => Argument::Summarize(SummarizeArgument::read(e)?),
                operation::LIST => Argument::List(ListArgument::read(e)?),
                operation::FETCH => Argument::Fetch(FetchArgument::read(e)?),
                operation::DELETE => Argument::Delete(DeleteArgument::read(e)?),
                operation::REGISTER_MS => {
                    Argument::Register(Box::new(RegisterMsArgument::read(e)?))
                }
                operation::MODIFY if is_1994 => {
                    Argument::Ends(error_response(&not_modified(&ModifyArgument::read(e)?)))
                }
                _ => Argument::Ends(Response::Unrecognized),
            })
        };
        Element::parse(argument).and_then(|e| read(&e))
    }
}

/// An operation in progress; without a session it is a chore.
#[derive(Debug)]
pub(super) struct Job {
    session: Option<(AssociationId, i64, i64)>,
    /// The operator's order that a chore carries out.
    order: Option<u64>,
    work: Work,
}

impl Job {
    /// No session waits for it.
    pub(super) fn is_chore(&self) -> bool {
        self.session.is_none()
    }
}

#[derive(Debug)]
enum Work {
    Query(Box<Query>),
    /// register-MS: its commit is in progress, then this is registered and returned.
    Register(Registrations, RegisterMsResult),
    /// register-MS that changes credentials first.
    Credentials(Box<RegisterMsArgument>),
}

impl Mailboxes {
    /// A session invokes an operation of the retrieval port: ends with [`Output::Respond`]. What cannot be read is in
    /// the returned text, for the log.
    pub fn invoke(
        &mut self,
        now: Now,
        session: AssociationId,
        (invoke, code): (i64, i64),
        argument: &[u8],
    ) -> Option<String> {
        let id = *self.sessions.get(&session)?;
        let state = self.open.get_mut(&id).and_then(|open| open.sessions.get_mut(&session))?;
        let (argument, problem) = match Argument::read(code, state.access.is_1994, argument) {
            Ok(argument) => (argument, None),
            Err(error) => (Argument::Ends(Response::Mistyped), Some(error.to_string())),
        };
        state.waiting.push_back(Operation { invoke, code, argument });
        self.start_operations(now, id);
        problem
    }

    /// Deletes from every open mailbox what its rules give up, and counts again those of which the count failed.
    pub fn retain(&mut self, now: Now) {
        let doubted = |(id, open): (&MailboxId, &mut Open)| {
            let ready = open.ready().filter(|ready| ready.is_doubted && ready.is_quiet())?;
            ready.chores.push_back(Query::recount(&ready.mailbox).into());
            Some(*id)
        };
        let doubted: Vec<MailboxId> = self.open.iter_mut().filter_map(doubted).collect();
        doubted.into_iter().for_each(|id| self.start_operations(now, id));
        if self.settings.rules.newest(now.utc).is_none() {
            return;
        }
        let ids: Vec<MailboxId> = self.open.keys().copied().collect();
        for id in ids {
            if let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready())
                && ready.chores.is_empty()
            {
                let rules = self.settings.rules.clone();
                ready.chores.push_back(Query::retain(&ready.mailbox, rules, now.utc).into());
            }
            self.start_operations(now, id);
        }
    }

    /// Opens every mailbox that has a number: for the rules of retention.
    pub fn open_all(&mut self) {
        for address in self.names.addresses() {
            self.mailbox(&address);
        }
    }

    /// Starts what may start: one operation of each session, one that changes the mailbox.
    pub(super) fn start_operations(&mut self, now: Now, id: MailboxId) {
        loop {
            let Some(open) = self.open.get_mut(&id) else { return };
            let State::Ready(ready) = &mut open.state else { return };
            if ready.changing.is_none()
                && let Some(Chore { query, order }) = ready.chores.pop_front()
            {
                let work = Work::Query(Box::new(query));
                ready.changing = Some(Job { session: None, order, work });
                self.step_changing(now, id, Answer::Start);
                continue;
            }
            let may_change = ready.changing.is_none();
            let next = open.sessions.iter_mut().find(|(_, session)| {
                let first = session.waiting.front();
                let starts = first.is_some_and(|first| may_change || !first.changes());
                !session.is_busy && starts
            });
            let Some((session, state)) = next else { return };
            let Some(operation) = state.waiting.pop_front() else { return };
            state.is_busy = true;
            let (session, access) = (*session, state.access.clone());
            self.start(now, id, session, &access, operation);
        }
    }

    fn start(
        &mut self,
        now: Now,
        id: MailboxId,
        session: AssociationId,
        access: &Access,
        operation: Operation,
    ) {
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        let Operation { invoke, code, argument } = operation;
        let whose = (session, invoke, code);
        let (mailbox, registered) = (&ready.mailbox, &ready.registrations);
        let query = match &argument {
            Argument::Ends(response) => return self.respond(id, Some(whose), response.clone()),
            Argument::Register(argument) => {
                return self.register(now, id, whose, (**argument).clone());
            }
            Argument::Summarize(argument) => Query::summarize(mailbox, access, argument),
            Argument::List(argument) => Query::list(mailbox, registered, access, argument),
            Argument::Fetch(argument) => Query::fetch(mailbox, registered, access, argument),
            Argument::Delete(argument) => Query::delete(mailbox, access, argument),
        };
        let query = match query {
            Ok(query) => Box::new(query),
            Err(error) => return self.respond(id, Some(whose), error_response(&error)),
        };
        let changes = query.is_changing();
        let job = Job { session: Some(whose), order: None, work: Work::Query(query) };
        if changes {
            ready.changing = Some(job);
            self.step_changing(now, id, Answer::Start);
        } else {
            ready.reading.insert(session, job);
            self.step_reading(id, session, Answer::Start);
        }
    }

    // ----- queries ---------------------------------------------------------------------------------------------------

    pub(super) fn changing_found(&mut self, now: Now, id: MailboxId, found: Found) {
        self.step_changing(now, id, answer_of(found));
        self.advance(now, id);
    }

    pub(super) fn reading_found(
        &mut self,
        now: Now,
        id: MailboxId,
        session: AssociationId,
        found: Found,
    ) {
        self.step_reading(id, session, answer_of(found));
        self.advance(now, id);
    }

    pub(super) fn changing_committed(&mut self, now: Now, id: MailboxId, is_durable: bool) {
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        let job = ready.changing.take_if(|job| matches!(job.work, Work::Register(..)));
        let Some(Job { session, work: Work::Register(registrations, result), .. }) = job else {
            let answer = if is_durable { Answer::Committed } else { Answer::NotCommitted };
            return self.step_changing(now, id, answer);
        };
        let response = match is_durable {
            true => {
                ready.registrations = registrations;
                whole(|w| result.write(w))
            }
            false => error_response(&MsError::service(ServiceProblem::BUSY)),
        };
        self.respond(id, session, response);
    }

    fn step_changing(&mut self, now: Now, id: MailboxId, answer: Answer) {
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        let Some(Job { session, order, work: Work::Query(query) }) = &mut ready.changing else {
            return;
        };
        let (session, order) = (*session, *order);
        match query.step(&mut ready.mailbox, answer) {
            Step::Ask(ask) => {
                let ticket = self.ticket(Asked::Changing(id));
                let precedence = level_of(session);
                self.outputs.push_back(Output::Read { ticket, read: Read::Items(ask), precedence });
            }
            Step::Commit(batch) => {
                ready.wanted = Some(batch);
                self.commit_next(now, id);
            }
            end => {
                ready.changing = None;
                if let Some(request) = order {
                    return self.purged(id, request, &end);
                }
                self.end(id, session, end);
            }
        }
    }

    fn step_reading(&mut self, id: MailboxId, session: AssociationId, answer: Answer) {
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        let Some(job) = ready.reading.get_mut(&session) else { return };
        let Work::Query(query) = &mut job.work else { return };
        let whose = job.session;
        match query.step(&mut ready.mailbox, answer) {
            Step::Ask(ask) => {
                let ticket = self.ticket(Asked::Reading(id, session));
                let precedence = level_of(whose);
                self.outputs.push_back(Output::Read { ticket, read: Read::Items(ask), precedence });
            }
            end => {
                ready.reading.remove(&session);
                self.end(id, whose, end);
            }
        }
    }

    fn end(&mut self, id: MailboxId, session: Option<(AssociationId, i64, i64)>, end: Step) {
        let response = match end {
            Step::Done(outcome) => match outcome {
                Outcome::Listed(result) => whole(|w| result.write(w)),
                Outcome::Summarized(result) => whole(|w| result.write(w)),
                Outcome::Deleted(result) => {
                    self.outputs.push_back(Output::Room(id));
                    whole(|w| result.write(w))
                }
                Outcome::Fetched(fetched) => {
                    Response::Result { payload: fetched.payload(), content: fetched.content }
                }
                Outcome::Recounted => {
                    if let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) {
                        ready.is_doubted = false;
                    }
                    return;
                }
                Outcome::Retained(0) => return,
                Outcome::Retained(count) => {
                    self.outputs.push_back(Output::Room(id));
                    let note = format!("mailbox {}: {count} items deleted by their age", id.0);
                    return self.outputs.push_back(Output::Retained(note));
                }
            },
            Step::Error(error) => error_response(&error),
            Step::Ask(_) | Step::Commit(_) => return,
        };
        self.respond(id, session, response);
    }

    /// An operation ended: its session is free for the next.
    fn respond(
        &mut self,
        id: MailboxId,
        session: Option<(AssociationId, i64, i64)>,
        response: Response,
    ) {
        let Some((session, invoke, operation)) = session else { return };
        let state = self.open.get_mut(&id).and_then(|open| open.sessions.get_mut(&session));
        if let Some(state) = state {
            state.is_busy = false;
            self.outputs.push_back(Output::Respond { session, invoke, operation, response });
        }
    }

    // ----- register-MS -----------------------------------------------------------------------------------------------

    fn register(
        &mut self,
        now: Now,
        id: MailboxId,
        whose: (AssociationId, i64, i64),
        mut argument: RegisterMsArgument,
    ) {
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        let address = self.names.address(id).unwrap_or_default();
        if let Some(error) = refuse_forwards(address, &argument) {
            return self.respond(id, Some(whose), error_response(&error));
        }
        if let Some(change) = argument.change_credentials.take() {
            let work = Work::Credentials(Box::new(argument));
            ready.changing = Some(Job { session: Some(whose), order: None, work });
            let ticket = self.ticket(Asked::Credentials(id, whose.0));
            let (session, change) = (whose.0, Box::new(change));
            return self.outputs.push_back(Output::Credentials { session, ticket, change });
        }
        match ready.registrations.register(&argument) {
            Err(error) => {
                ready.changing = None;
                self.respond(id, Some(whose), error_response(&error));
            }
            Ok((registrations, result)) if registrations == ready.registrations => {
                ready.changing = None;
                self.respond(id, Some(whose), whole(|w| result.write(w)));
            }
            Ok((registrations, result)) => {
                ready.wanted = Some(vec![registrations.put(id)]);
                let work = Work::Register(registrations, result);
                ready.changing = Some(Job { session: Some(whose), order: None, work });
                self.commit_next(now, id);
            }
        }
    }

    /// Answers [`Output::Credentials`]: they are changed, durably, or why not.
    pub fn credentials(&mut self, now: Now, ticket: Ticket, result: Result<(), AccessError>) {
        let Some(Asked::Credentials(id, _)) = self.asked.remove(&ticket) else { return };
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        let Some(Job { session, work: Work::Credentials(argument), .. }) = ready.changing.take()
        else {
            return;
        };
        match (result, session) {
            (Ok(()), Some(whose)) => self.register(now, id, whose, *argument),
            (Err(error), _) => self.respond(id, session, error_response(&MsError::Access(error))),
            (Ok(()), None) => {}
        }
        self.advance(now, id);
    }
}

impl Operation {
    /// Whether it takes the turn of those that change the mailbox.
    fn changes(&self) -> bool {
        !matches!(self.argument, Argument::Summarize(_) | Argument::Ends(_))
    }
}

/// A user forwards in his own name only: what is registered for another one would be refused each time.
fn refuse_forwards(address: &str, argument: &RegisterMsArgument) -> Option<MsError> {
    let is_others = |action: &&AutoActionRegistration| {
        AutoForward::from_registration(action)
            .is_ok_and(|auto| engine::canonical(&auto.arguments.originator.address) != address)
    };
    let refused = argument.auto_action_registrations.iter().filter(is_others);
    let problem = AutoActionRequestProblem::AUTO_ACTION_TYPE_NOT_SUBSCRIBED;
    let refused: Vec<_> =
        refused.map(|action| (problem, action.auto_action_type.clone())).collect();
    (!refused.is_empty()).then_some(MsError::AutoActionRequest(refused))
}

/// modify (X.413 8.8, 1994): no attribute of this store can be changed.
fn not_modified(argument: &ModifyArgument) -> MsError {
    let problem = |oid: &Oid| match available(oid) {
        Some(_) => AttributeProblemItem {
            problem: AttributeProblem::INAPPROPRIATE_FOR_OPERATION,
            attribute_type: oid.clone(),
            value: None,
        },
        None => unavailable(oid),
    };
    let named = argument.modifications.iter().map(|change| match &change.modification {
        Modification::AddAttribute(attribute) => &attribute.attribute_type,
        Modification::RemoveAttribute(oid) => oid,
        Modification::AddValues(ordered) | Modification::RemoveValues(ordered) => {
            &ordered.attribute_type
        }
    });
    MsError::Attribute(named.take(MAX_PROBLEMS).map(problem).collect())
}

/// The level at which a user's operation reads: he waits for it.
fn level_of(session: Option<(AssociationId, i64, i64)>) -> Precedence {
    session.map_or(Precedence::Deferred, |_| Precedence::Immediate)
}

fn answer_of(found: Found) -> Answer {
    match found {
        Found::Items(rows) => Answer::Rows(rows),
        Found::Opened { .. } | Found::Failed(_) => Answer::Failed,
    }
}

fn octets(write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec().into()
}

fn whole(write: impl FnOnce(&mut Writer)) -> Response {
    let payload = Payload { head: octets(write), ..Payload::default() };
    Response::Result { payload, content: None }
}

fn error_response(error: &MsError) -> Response {
    let parameter = octets(|w| error.write_parameter(w));
    Response::Error { code: error.code(), parameter }
}
