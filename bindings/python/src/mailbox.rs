//! The mailbox: a bound user, and its operations.

use crate::entry::Entry;
use crate::errors;
use crate::message::Message;
use crate::submission::{Arguments, Submitted, address, precedence};
use bytes::Bytes;
use osi::api::Selectors;
use p1::bind::{Password, PasswordForm};
use p1::names::ORName;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use ua::store::{Filter, Find, NotSubmitted, Order, Pages, Status, Store, StoreError};
use ua::{Clock, Interrupted, Login};

/// How often a wait looks for signals, and lets other threads use the mailbox.
const SLICE: Duration = Duration::from_millis(100);
/// Entries that are read at once.
const PAGE: u32 = 100;
/// Registrations of alerts: this and the number of the precedence; other programs of this project have others.
const REGISTRATION: i64 = 101;

/// The association and what runs it.
struct Association {
    runtime: Runtime,
    /// None once it is closed or of no more use.
    store: Mutex<Option<Store>>,
    interrupted: Interrupted,
    user: ORName,
}

/// Why there is no result: an error of the store, or one that Python raised meanwhile.
enum Failure {
    Store(StoreError),
    Raised(PyErr),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl Association {
    /// Runs a future of the store with other Python threads running, until it ends or a signal raises.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl AsyncFnOnce(&mut Store) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        let outcome = py.detach(|| {
            let mut slot = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(store) = slot.as_mut() else {
                return Err(Failure::Store(StoreError::Lost("the mailbox is closed".to_owned())));
            };
            let outcome = self.runtime.block_on(with_signals(work(store)));
            if matches!(&outcome, Err(Failure::Store(error)) if error.is_final()) {
                *slot = None;
            }
            outcome
        });
        outcome.map_err(|failure| match failure {
            Failure::Store(error) => errors::store(py, &error),
            Failure::Raised(error) => error,
        })
    }
}

/// A future, unless a signal handler of Python raises meanwhile.
async fn with_signals<T>(
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(SLICE, &mut work).await {
            Ok(outcome) => return outcome.map_err(Failure::Store),
            Err(_) => Python::attach(|py| py.check_signals()).map_err(Failure::Raised)?,
        }
    }
}

/// A user bound to its mailbox.
#[pyclass(frozen, module = "xuxa")]
pub(crate) struct Mailbox(Arc<Association>);

#[pymethods]
impl Mailbox {
    #[new]
    #[pyo3(signature = (store, *, user, password, answer_timeout=120.0, pcap=None))]
    fn new(
        py: Python<'_>,
        store: String,
        user: &str,
        password: &str,
        answer_timeout: f64,
        pcap: Option<PathBuf>,
    ) -> PyResult<Mailbox> {
        let user = address(py, user)?;
        let answer_timeout = seconds(py, answer_timeout)?;
        let octets = Bytes::copy_from_slice(password.as_bytes());
        let login = Login {
            mta: store,
            user: user.clone(),
            password: Password::new(octets, PasswordForm::Ia5),
            called: Selectors::default(),
            answer_timeout,
            edition: ua::Edition::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| errors::runtime(&error))?;
        let interrupted = Interrupted::default();
        let bound = py.detach(|| {
            let bind = Store::bind(&login, pcap.as_deref(), Clock::start(), interrupted.clone());
            runtime.block_on(with_signals(bind))
        });
        match bound {
            Ok(store) => Ok(Mailbox(Arc::new(Association {
                runtime,
                store: Mutex::new(Some(store)),
                interrupted,
                user,
            }))),
            Err(Failure::Store(error)) => Err(errors::store(py, &error)),
            Err(Failure::Raised(error)) => Err(error),
        }
    }

    #[pyo3(signature = (*, order="precedence", precedence=None, at_least=None, subject=None, unread=false, since_number=0))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn list(
        &self,
        py: Python<'_>,
        order: &str,
        precedence: Option<&str>,
        at_least: Option<&str>,
        subject: Option<&str>,
        unread: bool,
        since_number: u32,
    ) -> PyResult<Entries> {
        let order = match order {
            "arrival" => Order::Arrival,
            "precedence" => Order::Precedence,
            other => {
                let text = format!("order={other:?}: use arrival or precedence");
                return Err(errors::invalid(py, text));
            }
        };
        let mut find = Find::new();
        if let Some(name) = precedence {
            find = find.precedences(&[self::precedence(py, name)?]);
        }
        if let Some(name) = at_least {
            find = find.at_least(self::precedence(py, name)?);
        }
        if let Some(text) = subject {
            find = find.subject(text);
        }
        if unread && let Some(read) = Find::new().status(Status::Processed).filter() {
            find = find.and(Filter::Not(Box::new(read)));
        }
        let pages = Pages::new(&find, order, PAGE).from(since_number);
        let progress = Mutex::new((pages, VecDeque::new()));
        Ok(Entries { bound: Arc::clone(&self.0), progress })
    }

    #[pyo3(signature = (number, *, max_size=67_108_864))]
    fn fetch(&self, py: Python<'_>, number: u32, max_size: u64) -> PyResult<Message> {
        let (fetched, content) = self.0.run(py, async move |store: &mut Store| {
            let mut content = Vec::new();
            let fetched = store.fetch(number, &mut content, max_size).await?;
            Ok((fetched, content))
        })?;
        Ok(py.detach(|| Message::new(fetched, content)))
    }

    fn fetch_to(&self, py: Python<'_>, number: u32, path: PathBuf) -> PyResult<u64> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let fetched = self.0.run(py, async move |store: &mut Store| {
            let mut file = std::io::BufWriter::new(file);
            let fetched = store.fetch(number, &mut file, u64::MAX).await?;
            file.flush().map_err(StoreError::Write)?;
            let file = file.into_inner().map_err(|error| StoreError::Write(error.into_error()))?;
            file.sync_all().map_err(StoreError::Write)?;
            Ok(fetched)
        });
        match fetched {
            Ok(fetched) => Ok(fetched.octets),
            Err(error) => {
                // A part of a content is none.
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    #[pyo3(signature = (to, *, copy=Vec::new(), subject=None, text=None, files=Vec::new(), size=None,
        precedence="routine".to_owned(), sics=Vec::new(), reports="non-delivery".to_owned(), civil=false,
        content_identifier=None, date_time_group=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn submit(
        &self,
        py: Python<'_>,
        to: Vec<String>,
        copy: Vec<String>,
        subject: Option<String>,
        text: Option<String>,
        files: Vec<PathBuf>,
        size: Option<u64>,
        precedence: String,
        sics: Vec<String>,
        reports: String,
        civil: bool,
        content_identifier: Option<String>,
        date_time_group: Option<String>,
    ) -> PyResult<Submitted> {
        let arguments = Arguments {
            to,
            copy,
            subject,
            text,
            files,
            size,
            precedence,
            sics,
            reports,
            civil,
            content_identifier,
            date_time_group,
        };
        let message = arguments.message(py, self.0.user.clone())?;
        let content_identifier = message.content_identifier.clone();
        let date_time_group = message.authorised_at.to_utc_time();
        let envelope = message.envelope();
        let content = message.content();
        let content = content.map_err(|error| errors::invalid(py, format!("{error:#}")))?;
        let answer = self.0.run(py, async move |store: &mut Store| {
            match store.submit(&envelope, &content).await {
                Err(NotSubmitted { is_uncertain: false, error }) => Err(error),
                // Without an answer the association is over: the next operation finds that.
                other => Ok(other),
            }
        })?;
        match answer {
            Ok(result) => Ok(Submitted {
                identifier: result.identifier.to_string(),
                content_identifier,
                date_time_group,
            }),
            Err(failed) => {
                Err(errors::submission(py, &failed, &content_identifier, &date_time_group))
            }
        }
    }

    #[pyo3(signature = (*numbers))]
    fn delete(&self, py: Python<'_>, numbers: Vec<u32>) -> PyResult<()> {
        self.0.run(py, async move |store: &mut Store| store.delete(&numbers).await)
    }

    #[pyo3(signature = (*, at_least="deferred", timeout=None))]
    fn watch(&self, py: Python<'_>, at_least: &str, timeout: Option<f64>) -> PyResult<Alerts> {
        let at_least = precedence(py, at_least)?;
        let timeout = timeout.map(|timeout| seconds(py, timeout)).transpose()?;
        // The lowest takes those without a precedence too.
        let filter = match at_least {
            base::Precedence::Deferred => None,
            _ => Find::new().at_least(at_least).filter(),
        };
        let registration = REGISTRATION + i64::from(at_least.number());
        self.0.run(py, async move |store: &mut Store| {
            store.register_alert(registration, filter).await
        })?;
        Ok(Alerts { bound: Arc::clone(&self.0), registration, timeout })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            // Ends the wait of another thread, which has the lock.
            let taken = self.0.store.try_lock().ok().and_then(|mut slot| slot.take());
            if let Some(store) = taken {
                // There is nobody to whom an error would matter.
                let _ = self.0.runtime.block_on(store.unbind());
                return;
            }
            self.0.interrupted.set();
            *self.0.store.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }
}

fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| errors::invalid(py, format!("{seconds} seconds: {error}")))
}

/// What is left of a list: pages to read, and entries of the last one.
type Progress = (Pages, VecDeque<ua::store::Entry>);

/// The entries of a list, read in pages.
#[pyclass(frozen, module = "xuxa")]
pub(crate) struct Entries {
    bound: Arc<Association>,
    progress: Mutex<Progress>,
}

#[pymethods]
impl Entries {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Entry>> {
        // Taken out, so that no lock is held while others run.
        let (mut pages, mut entries) = {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            (progress.0.clone(), std::mem::take(&mut progress.1))
        };
        if entries.is_empty() {
            (pages, entries) = self.bound.run(py, async move |store: &mut Store| {
                let page = store.next_page(&mut pages).await?;
                Ok((pages, VecDeque::from(page)))
            })?;
        }
        let next = entries.pop_front();
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = (pages, entries);
        Ok(next.map(Entry))
    }
}

/// Entries as they arrive.
#[pyclass(frozen, module = "xuxa")]
pub(crate) struct Alerts {
    bound: Arc<Association>,
    registration: i64,
    timeout: Option<Duration>,
}

#[pymethods]
impl Alerts {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Entry>> {
        let mut waited = Duration::ZERO;
        loop {
            let alert = self.bound.run(py, async |store: &mut Store| store.alert(Some(SLICE)).await)?;
            match alert {
                Some(alert) if alert.registration == self.registration => {
                    if let Some(entry) = alert.entry {
                        return Ok(Some(Entry(entry)));
                    }
                }
                Some(_) => {}
                None => waited += SLICE,
            }
            if self.bound.interrupted.is_set() {
                return Err(errors::store(py, &StoreError::Interrupted));
            }
            if self.timeout.is_some_and(|timeout| waited >= timeout) {
                return Ok(None);
            }
        }
    }
}
