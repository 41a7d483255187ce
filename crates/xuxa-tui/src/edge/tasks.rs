//! Effects that take time: each is a task, so that none delays a key or another.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::backend::{Backend, BackendError};
use crate::event::{Answer, Connection, Effect, Event};

/// Waits between attempts to bind: the first one, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The tasks in progress; dropped, they end.
pub(super) struct Tasks<B> {
    backend: Rc<B>,
    to: UnboundedSender<Event>,
    tasks: JoinSet<()>,
}

impl<B: Backend> Tasks<B> {
    /// Begins to bind, and to watch for alerts.
    pub(super) fn start(backend: Rc<B>, to: UnboundedSender<Event>) -> Tasks<B> {
        let mut tasks = JoinSet::new();
        tasks.spawn_local(stay_bound(Rc::clone(&backend), to.clone()));
        Tasks { backend, to, tasks }
    }

    /// Completes when a task has ended; a panic in it goes on here.
    pub(super) async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// Begins an effect; its answer comes as an event.
    pub(super) fn perform(&mut self, effect: Effect) {
        let (backend, to) = (Rc::clone(&self.backend), self.to.clone());
        self.tasks.spawn_local(async move {
            if let Some((token, answer)) = performed(&*backend, effect).await {
                // Without a receiver the program ends.
                let _ = to.send(Event::Answered(token, answer));
            }
        });
    }
}

async fn performed<B: Backend>(
    backend: &B,
    effect: Effect,
) -> Option<(u64, Result<Answer, BackendError>)> {
    Some(match effect {
        Effect::List(token, query, from, count) => {
            (token, backend.list(query, from, count).await.map(Answer::Page))
        }
        Effect::Count(token) => (token, backend.counts().await.map(Answer::Counts)),
        Effect::Open(token, number) => {
            let opened = backend.open(number).await;
            (token, opened.map(|opened| Answer::Opened(Box::new(opened))))
        }
        Effect::Extract(token, number, directory) => {
            let extracted = backend.extract(number, at_home(&directory)).await;
            (token, extracted.map(Answer::Extracted))
        }
        Effect::Delete(token, number) => {
            (token, backend.delete(number).await.map(|()| Answer::Deleted))
        }
        Effect::Check(token, mut draft) => {
            draft.files = draft.files.iter().map(|path| at_home(path)).collect();
            (token, backend.check(&draft).await.map(Answer::Checked))
        }
        Effect::Submit(token, mut draft) => {
            draft.files = draft.files.iter().map(|path| at_home(path)).collect();
            (token, backend.submit(*draft).await.map(|()| Answer::Submitted))
        }
        Effect::Acknowledge(token, number) => {
            (token, backend.acknowledge(number).await.map(|()| Answer::Acknowledged))
        }
        Effect::Sent(token, count) => (token, backend.sent(count).await.map(Answer::Sent)),
        Effect::Book(token) => (token, backend.book().await.map(Answer::Book)),
        Effect::Bell | Effect::Redraw | Effect::Quit => return None,
    })
}

/// `~/` is the home directory, as in a shell.
fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_path_buf(),
    }
}

/// Binds, passes alerts on, and binds again when the association ends.
async fn stay_bound<B: Backend>(backend: Rc<B>, to: UnboundedSender<Event>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let _ = to.send(Event::Connection(Connection::Connecting));
        let error = match backend.connect().await {
            Ok(()) => {
                pause = FIRST_PAUSE;
                let _ = to.send(Event::Connection(Connection::Bound));
                loop {
                    match backend.alert().await {
                        Ok(row) => _ = to.send(Event::Alert(row)),
                        Err(error) => break error,
                    }
                }
            }
            Err(error) => error,
        };
        let reason = match error {
            BackendError::Refused(reason) => {
                let _ = to.send(Event::Connection(Connection::Refused(reason)));
                return;
            }
            BackendError::Lost(reason) => reason,
            other => other.to_string(),
        };
        let retry_in = pause.as_secs();
        let _ = to.send(Event::Connection(Connection::Lost { reason, retry_in }));
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
