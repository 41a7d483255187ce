//! A message store in this process: the OSI stack as responder, over the machines of `mailbox`.
#![allow(dead_code, reason = "each test uses a part of it")]

#[path = "../../../mailbox/tests/common/mod.rs"]
mod world;

use base::Precedence;
use base::ber::{Element, Writer};
use bytes::Bytes;
use mailbox::{Outcome, Query};
use osi::api::{
    AbortReason, Indication, Input, Output, Payload, RefuseReason, Request, Role, Selectors,
};
use osi::profiles::{self, abstract_syntax};
use osi::stack::Association;
use p1::bind::{Credentials, Password, PasswordForm};
use p1::names::{GlobalDomainId, MtsIdentifier};
use p1::p3::{self, AccessError, SubmissionResult};
use p7::bind::{BindProblem, MsBindError, MsBindResult};
use p7::operation as op;
use p7::{MsBindArgument, MsError};
use std::sync::{Arc, Mutex};
use store::ModelStore;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use ua::store::{Store, StoreError};
use ua::{Clock, Edition, Interrupted, Login};
pub(crate) use world::World;

/// Whose mailbox it is.
pub(crate) const JONES: &str = "C=XX;ADMD=;PRMD=alpha;S=Jones";

/// How a store answers an operation of this code, if not as it should.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Under another invoke identifier.
    InvokeId,
    /// With the first octets of the result only, its length unchanged.
    Cut,
    /// With these octets.
    Octets(Vec<u8>),
    /// With a content of this length, which goes on and on.
    Endless(u64),
    /// With a result that nobody can hold, of which every part comes.
    Flood,
    /// With an abort.
    Abort,
    /// With so many alerts, then properly.
    Alerts(usize),
    /// With an invocation of this operation, then properly.
    Invoke(i64, Vec<u8>),
    /// Not at all.
    Silence,
}

/// What the associations of a store share.
pub(crate) struct Shared {
    pub(crate) world: World,
    /// Operations that are answered wrongly.
    pub(crate) faults: Vec<(i64, Fault)>,
    pub(crate) password: Vec<u8>,
    /// Submissions: the whole arguments.
    pub(crate) submitted: Vec<Vec<u8>>,
    pub(crate) cancelled: Vec<MtsIdentifier>,
    /// Binds are refused with this problem.
    pub(crate) refuses: Option<BindProblem>,
}

/// A store that listens.
pub(crate) struct TestStore {
    pub(crate) address: String,
    pub(crate) shared: Arc<Mutex<Shared>>,
    alerts: broadcast::Sender<Vec<u8>>,
    lost: broadcast::Sender<()>,
}

impl TestStore {
    pub(crate) async fn start() -> TestStore {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let world = World::new(Arc::new(ModelStore::default()));
        let shared = Arc::new(Mutex::new(Shared {
            world,
            faults: Vec::new(),
            password: b"vesuvio".to_vec(),
            submitted: Vec::new(),
            cancelled: Vec::new(),
            refuses: None,
        }));
        let address = listener.local_addr().unwrap().to_string();
        let (alerts, _) = broadcast::channel(64);
        let (lost, _) = broadcast::channel(4);
        let (of_all, of_alerts, of_lost) = (shared.clone(), alerts.clone(), lost.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (alerts, mut lost) = (of_alerts.subscribe(), of_lost.subscribe());
                let bound = Bound::new(stream, of_all.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = bound.run(alerts) => {}
                        _ = lost.recv() => {}
                    }
                });
            }
        });
        TestStore { address, shared, alerts, lost }
    }

    pub(crate) fn login(&self) -> Login {
        Login {
            label: None,
            mta: self.address.clone(),
            user: JONES.parse().unwrap(),
            password: Password::new("vesuvio", PasswordForm::Ia5),
            called: Selectors::default(),
            answer_timeout: std::time::Duration::from_secs(5),
            edition: Edition::Of1988,
        }
    }

    pub(crate) async fn bind(&self) -> Store {
        self.try_bind(Interrupted::default()).await.unwrap()
    }

    pub(crate) async fn try_bind(&self, interrupted: Interrupted) -> Result<Store, StoreError> {
        Store::bind(&self.login(), None, Clock::start(), interrupted).await
    }

    /// Delivers a message; whoever is bound is alerted.
    pub(crate) fn deliver(&self, level: Precedence, subject: &str, octets: usize) -> u32 {
        let mut shared = self.shared.lock().unwrap();
        let copy = shared.world.copy(level, subject, octets);
        self.deliver_copy(&mut shared.world, &copy)
    }

    pub(crate) fn deliver_report(&self, level: Precedence) -> u32 {
        let mut shared = self.shared.lock().unwrap();
        let now = shared.world.now();
        let copy = shared.world.copies.report(now, level).unwrap();
        shared.world.commit(copy.put());
        self.deliver_copy(&mut shared.world, &copy)
    }

    fn deliver_copy(&self, world: &mut World, copy: &mailbox::testing::Copy) -> u32 {
        let delivered = world.deliver_copy(copy).unwrap();
        for alert in world.registrations.alerts(&delivered.attributes().unwrap()) {
            let mut w = Writer::new();
            alert.write(&mut w);
            let _ = self.alerts.send(w.into_vec());
        }
        delivered.item.id.number
    }

    /// Delivers a message with this content.
    pub(crate) fn deliver_content(&self, level: Precedence, content: &[u8]) -> u32 {
        let mut shared = self.shared.lock().unwrap();
        let now = shared.world.now();
        let content = Bytes::copy_from_slice(content);
        let copy = shared.world.copies.message_of(now, level, content).unwrap();
        shared.world.commit(copy.put());
        self.deliver_copy(&mut shared.world, &copy)
    }

    /// Ends all associations as a lost connection does.
    pub(crate) fn drop_associations(&self) {
        let _ = self.lost.send(());
    }

    /// The next operation of this code is answered so.
    pub(crate) fn fault(&self, operation: i64, fault: Fault) {
        self.shared.lock().unwrap().faults.push((operation, fault));
    }
}

/// One association.
struct Bound {
    stream: TcpStream,
    stack: Association,
    clock: Clock,
    shared: Arc<Mutex<Shared>>,
    /// The invocation that arrives: identifier, operation, argument.
    incoming: Option<(i64, i64, Vec<u8>)>,
    alerts: i64,
    closing: bool,
}

enum Answer {
    Result(Vec<u8>),
    Error(i64, Vec<u8>),
}

impl Bound {
    fn new(stream: TcpStream, shared: Arc<Mutex<Shared>>) -> Bound {
        let config = profiles::p7_responder(Selectors::default());
        Bound {
            stream,
            stack: Association::new(config, Role::Responder),
            clock: Clock::start(),
            shared,
            incoming: None,
            alerts: 1_000,
            closing: false,
        }
    }

    async fn run(mut self, mut alerts: broadcast::Receiver<Vec<u8>>) {
        let mut buffer = vec![0; 64 << 10];
        while !self.closing {
            tokio::select! {
                read = self.stream.read(&mut buffer) => match read {
                    Ok(octets @ 1..) => {
                        self.stack.handle(self.clock.now(), Input::Bytes(&buffer[..octets]));
                    }
                    _ => self.stack.handle(self.clock.now(), Input::Eof),
                },
                Ok(alert) = alerts.recv() => self.invoke(op::ALERT, alert),
            }
            if self.drain().await.is_err() {
                return;
            }
        }
    }

    async fn drain(&mut self) -> std::io::Result<()> {
        while let Some(output) = self.stack.poll() {
            match output {
                Output::Send(octets) => self.stream.write_all(&octets).await?,
                Output::Close => self.closing = true,
                Output::Indication(indication) => self.take(indication),
            }
        }
        Ok(())
    }

    fn request(&mut self, request: Request) {
        self.stack.handle(self.clock.now(), Input::Request(request));
    }

    fn invoke(&mut self, operation: i64, argument: Vec<u8>) {
        self.alerts += 1;
        let syntax = match self.shared.lock().unwrap().world.access.is_1994 {
            false => abstract_syntax::mrse_88(),
            true => abstract_syntax::mrse_94(),
        };
        let argument = Payload::whole(argument);
        self.request(Request::Invoke { invoke: self.alerts, syntax, operation, argument });
    }

    fn take(&mut self, indication: Indication) {
        match indication {
            Indication::Open { bind, application_context, .. } => {
                let later = profiles::application_context::ms_access_94();
                self.shared.lock().unwrap().world.access.is_1994 = application_context == later;
                self.open(&bind);
            }
            Indication::Invoked { invoke, operation } => {
                self.incoming = Some((invoke, operation, Vec::new()));
            }
            Indication::Data { bytes, last } => {
                let Some((_, _, argument)) = &mut self.incoming else { return };
                argument.extend_from_slice(&bytes);
                if last {
                    let (invoke, operation, argument) = self.incoming.take().unwrap();
                    self.operation(invoke, operation, &argument);
                }
            }
            Indication::NeedContent { max, .. } => {
                self.request(Request::Content(vec![0x55; max].into()));
            }
            // Of an alert.
            Indication::Returned { .. } => self.incoming = None,
            _ => {}
        }
    }

    fn open(&mut self, bind: &[u8]) {
        let argument = MsBindArgument::read(&Element::parse(bind).unwrap()).unwrap();
        let shared = self.shared.lock().unwrap();
        let refused = match &argument.initiator_credentials {
            _ if shared.refuses.is_some() => shared.refuses,
            Credentials::Simple(password) if password.matches(&shared.password) => None,
            _ => Some(BindProblem::AUTHENTICATION_ERROR),
        };
        drop(shared);
        let mut w = Writer::new();
        let request = match refused {
            Some(problem) => {
                MsBindError::Unqualified(problem).write(&mut w);
                let bind_error = Some(w.into_vec().into());
                Request::Refuse { reason: RefuseReason::Bind, bind_error }
            }
            None => {
                let available = mailbox::attributes::AVAILABLE.iter();
                MsBindResult {
                    available_attribute_types: available.map(|kind| kind.oid()).collect(),
                    ..MsBindResult::new(Credentials::simple("store"))
                }
                .write(&mut w);
                Request::Accept { bind: w.into_vec().into() }
            }
        };
        self.request(request);
    }

    fn operation(&mut self, invoke: i64, operation: i64, argument: &[u8]) {
        let mut shared = self.shared.lock().unwrap();
        let fault = shared.faults.iter().position(|(of, _)| *of == operation);
        let fault = fault.map(|at| shared.faults.remove(at).1);
        drop(shared);
        if let Some(fault) = fault {
            if let Some(rest) = self.wrong(invoke, operation, argument, fault) {
                self.answer(invoke, operation, rest);
            }
            return;
        }
        let answer = self.proper(operation, argument);
        self.answer(invoke, operation, answer);
    }

    fn answer(&mut self, invoke: i64, operation: i64, answer: Answer) {
        self.request(match answer {
            Answer::Result(result) => {
                Request::Result { invoke, operation, result: Payload::whole(result) }
            }
            Answer::Error(error, parameter) => {
                Request::Error { invoke, error, parameter: parameter.into() }
            }
        });
    }

    fn proper(&self, operation: i64, argument: &[u8]) -> Answer {
        let mut shared = self.shared.lock().unwrap();
        match perform(&mut shared, operation, &Element::parse(argument).unwrap(), argument) {
            Ok(result) => Answer::Result(result),
            Err(error) => {
                let mut w = Writer::new();
                error.write_parameter(&mut w);
                Answer::Error(error.code(), w.into_vec())
            }
        }
    }

    /// Answers wrongly; what is returned is sent after it.
    fn wrong(
        &mut self,
        invoke: i64,
        operation: i64,
        argument: &[u8],
        fault: Fault,
    ) -> Option<Answer> {
        let result =
            |octets: Vec<u8>| Request::Result { invoke, operation, result: Payload::whole(octets) };
        match fault {
            Fault::InvokeId => {
                // The stack only answers what was asked, so this goes around it: RORS, the code, NULL.
                let octets = [0xa2, 10, 2, 1, 99, 0x30, 5, 2, 1, operation as u8, 5, 0];
                self.raw(&octets);
            }
            Fault::Cut => {
                let Answer::Result(mut whole) = self.proper(operation, argument) else { panic!() };
                whole.truncate(whole.len() / 2);
                self.request(result(whole));
            }
            Fault::Octets(octets) => self.request(result(octets)),
            Fault::Endless(length) => {
                let found = p7::EntryInformation {
                    sequence_number: p7::SequenceNumber(1),
                    ..Default::default()
                };
                let head = op::FetchResult { entry_information: Some(found), ..Default::default() }
                    .head(length);
                let result =
                    Payload { head: head.into(), content_length: length, tail: Bytes::new() };
                self.request(Request::Result { invoke, operation, result });
            }
            Fault::Flood => {
                let length: u64 = 1 << 34;
                let mut w = Writer::new();
                let definite = base::ber::Length::Definite;
                w.header(base::ber::universal::OCTET_STRING, false, definite(length));
                let head = w.into_vec().into();
                let result = Payload { head, content_length: length, tail: Bytes::new() };
                self.request(Request::Result { invoke, operation, result });
            }
            Fault::Abort => self.request(Request::Abort(AbortReason::LocalSystemProblem)),
            Fault::Alerts(count) => {
                for _ in 0..count {
                    let mut w = Writer::new();
                    let alert = op::AlertArgument { registration_identifier: 1, new_entry: None };
                    alert.write(&mut w);
                    self.invoke(op::ALERT, w.into_vec());
                }
                return Some(self.proper(operation, argument));
            }
            Fault::Invoke(code, octets) => {
                self.invoke(code, octets);
                return Some(self.proper(operation, argument));
            }
            Fault::Silence => {}
        }
        None
    }

    /// An APDU in the retrieval context (7) in a presentation data value in a data transfer.
    fn raw(&mut self, apdu: &[u8]) {
        let mut w = Writer::new();
        // User-data fully encoded: [APPLICATION 1] SEQUENCE OF { context, [0] single-ASN1-type }.
        w.constructed(base::ber::Tag::application(1), |w| {
            w.constructed(base::ber::universal::SEQUENCE, |w| {
                w.integer(base::ber::universal::INTEGER, 7);
                w.constructed(base::ber::Tag::context(0), |w| w.raw(apdu));
            });
        });
        let user_data = w.into_vec();
        // TPKT, DT TPDU, give-tokens and data SPDUs.
        let length = 4 + 3 + 4 + user_data.len();
        let mut octets = vec![3, 0, (length >> 8) as u8, length as u8, 2, 0xf0, 0x80, 1, 0, 1, 0];
        octets.extend(user_data);
        assert_eq!(self.stream.try_write(&octets).unwrap(), octets.len());
    }
}

/// Performs an operation.
fn perform(
    shared: &mut Shared,
    operation: i64,
    element: &Element<'_>,
    argument: &[u8],
) -> Result<Vec<u8>, MsError> {
    let mut w = Writer::new();
    let world = &mut shared.world;
    match operation {
        op::LIST => world.list(&op::ListArgument::read(element).unwrap())?.write(&mut w),
        op::SUMMARIZE => {
            world.summarize(&op::SummarizeArgument::read(element).unwrap())?.write(&mut w);
        }
        op::FETCH => {
            let fetched = world.fetch(&op::FetchArgument::read(element).unwrap())?;
            return Ok(world.octets(&fetched));
        }
        op::DELETE => {
            let argument = op::DeleteArgument::read(element).unwrap();
            let query = Query::delete(&world.mailbox, &world.access, &argument);
            match world.run(query)? {
                Outcome::Deleted(result) => result.write(&mut w),
                other => panic!("{other:?}"),
            }
        }
        op::REGISTER_MS => {
            let argument = op::RegisterMsArgument::read(element).unwrap();
            if let Some(change) = &argument.change_credentials {
                let (Credentials::Simple(old), Credentials::Simple(new)) =
                    (&change.old, &change.new)
                else {
                    panic!()
                };
                if !old.matches(&shared.password) {
                    return Err(MsError::Access(AccessError::OldCredentialsIncorrectlySpecified));
                }
                shared.password = new.octets().to_vec();
            }
            let (registrations, result) = world.registrations.register(&argument)?;
            world.registrations = registrations;
            result.write(&mut w);
        }
        p3::operation::MESSAGE_SUBMISSION | p3::operation::PROBE_SUBMISSION => {
            // As an MTA recognises a repetition.
            let first = shared.submitted.iter().position(|earlier| *earlier == argument);
            shared.submitted.push(argument.to_vec());
            let number = first.map_or(shared.submitted.len(), |first| first + 1);
            let identifier = MtsIdentifier {
                domain: GlobalDomainId::new("XX", " ", Some("alpha")),
                local: format!("S{number}"),
            };
            SubmissionResult {
                identifier,
                time: base::Utc(0).into(),
                content_identifier: None,
                extensions: Default::default(),
                unknown: Vec::new(),
            }
            .write(&mut w);
        }
        p3::operation::CANCEL_DEFERRED_DELIVERY => {
            let identifier = MtsIdentifier::read(element).unwrap();
            if identifier.local == "gone" {
                return Err(MsError::Access(AccessError::DeferredDeliveryCancellationRejected));
            }
            shared.cancelled.push(identifier);
            w.null(base::ber::universal::NULL);
        }
        other => panic!("operation {other}"),
    }
    Ok(w.into_vec())
}
