//! Two associations with the message store: one lists and takes alerts, so it answers at once; the other fetches
//! and submits contents, which may take minutes.

use std::cell::Cell;
use std::path::PathBuf;
use tokio::sync::{Mutex, MutexGuard, Notify};
use ua::store::{Alert, BindRefused, MsError, NotSubmitted, Store, StoreError};
use ua::{Clock, Interrupted, Login};
use xuxa_tui::BackendError;
use xuxa_tui::model::Number;

/// The registration of the alerts of this program; `xuxa watch` has others.
const REGISTRATION: i64 = 100;
const _: () = assert!(REGISTRATION <= p7::limits::MAX_ALERT_IDENTIFIER);

/// An association, opened when it is needed.
pub(super) struct Slot {
    store: Mutex<Option<Store>>,
    /// How many wait for it.
    waiting: Cell<usize>,
    wanted: Notify,
}

impl Slot {
    fn new() -> Slot {
        Slot { store: Mutex::new(None), waiting: Cell::new(0), wanted: Notify::new() }
    }

    /// Takes the association from whoever waits on it for alerts.
    async fn lock(&self) -> MutexGuard<'_, Option<Store>> {
        let _counted = Counted::new(&self.waiting);
        self.wanted.notify_waiters();
        self.store.lock().await
    }
}

/// Counts one more as long as it lives: a future that is dropped counts no longer.
struct Counted<'a>(&'a Cell<usize>);

impl Counted<'_> {
    fn new(count: &Cell<usize>) -> Counted<'_> {
        count.set(count.get() + 1);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Both associations.
pub(super) struct Stores {
    login: Login,
    pcap: Option<PathBuf>,
    clock: Clock,
    interrupted: Interrupted,
    /// Lists, deletes, counts, takes alerts.
    quick: Slot,
    /// Fetches and submits.
    slow: Slot,
}

impl Stores {
    pub(super) fn new(
        login: Login,
        pcap: Option<PathBuf>,
        clock: Clock,
        interrupted: Interrupted,
    ) -> Stores {
        Stores { login, pcap, clock, interrupted, quick: Slot::new(), slow: Slot::new() }
    }

    /// Binds the quick association, and registers for alerts.
    ///
    /// # Errors
    /// [`BackendError::Lost`] or [`BackendError::Refused`].
    pub(super) async fn connect(&self) -> Result<(), BackendError> {
        let mut slot = self.quick.lock().await;
        if slot.as_ref().is_none_or(Store::is_over) {
            let mut store = self.bind(self.pcap.as_deref()).await?;
            store.register_alert(REGISTRATION, None).await.map_err(|error| shown(&error, None))?;
            *slot = Some(store);
        }
        Ok(())
    }

    async fn bind(&self, pcap: Option<&std::path::Path>) -> Result<Store, BackendError> {
        let bound = Store::bind(&self.login, pcap, self.clock, self.interrupted.clone()).await;
        bound.map_err(|error| shown(&error, None))
    }

    /// Works on the quick association.
    ///
    /// # Errors
    /// What the work returns, and [`BackendError::Lost`] where there is no association.
    pub(super) async fn quick<T>(
        &self,
        number: Option<Number>,
        work: impl AsyncFnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, BackendError> {
        let mut slot = self.quick.lock().await;
        let Some(store) = slot.as_mut() else {
            return Err(BackendError::Lost("not bound".to_owned()));
        };
        let outcome = work(store).await;
        ended(&mut slot, outcome, number)
    }

    /// Works on the slow association, which is bound if it is not.
    ///
    /// # Errors
    /// What the work returns, and what prevented the bind.
    pub(super) async fn slow<T>(
        &self,
        number: Option<Number>,
        work: impl AsyncFnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, BackendError> {
        let mut slot = self.slow.lock().await;
        self.opened(&mut slot).await?;
        let Some(store) = slot.as_mut() else {
            return Err(BackendError::Lost("not bound".to_owned()));
        };
        let outcome = work(store).await;
        ended(&mut slot, outcome, number)
    }

    /// Submits on the slow association.
    ///
    /// # Errors
    /// [`BackendError::InDoubt`], a refusal, or what prevented the bind.
    pub(super) async fn submit<T>(
        &self,
        work: impl AsyncFnOnce(&mut Store) -> Result<T, NotSubmitted>,
    ) -> Result<T, BackendError> {
        let mut slot = self.slow.lock().await;
        self.opened(&mut slot).await?;
        let Some(store) = slot.as_mut() else {
            return Err(BackendError::Lost("not bound".to_owned()));
        };
        match work(store).await {
            Ok(done) => Ok(done),
            Err(failed) => {
                let is_uncertain = failed.is_uncertain;
                let text = failed.error.to_string();
                let error = ended::<T>(&mut slot, Err(failed.error), None).err();
                Err(match error {
                    _ if is_uncertain => BackendError::InDoubt(text),
                    Some(BackendError::Lost(why)) => {
                        BackendError::Failed(format!("{why}; nothing was accepted, send it again"))
                    }
                    Some(error) => error,
                    None => BackendError::Failed(text),
                })
            }
        }
    }

    async fn opened(&self, slot: &mut Option<Store>) -> Result<(), BackendError> {
        // An idle association may have ended: that is known once it is asked.
        if let Some(store) = slot.as_mut()
            && (store.is_over() || store.check().await.is_err())
        {
            *slot = None;
        }
        if slot.is_none() {
            *slot = Some(self.bind(None).await?);
        }
        Ok(())
    }

    /// Waits for an alert; gives the association to whoever wants it meanwhile.
    ///
    /// # Errors
    /// [`BackendError::Lost`].
    pub(super) async fn alert(&self) -> Result<Alert, BackendError> {
        loop {
            let mut slot = self.quick.store.lock().await;
            let Some(store) = slot.as_mut() else {
                return Err(BackendError::Lost("the association ended".to_owned()));
            };
            let wanted = self.quick.wanted.notified();
            if self.quick.waiting.get() > 0 {
                drop(slot);
                // The lock is fair: they have it before this takes it again.
                tokio::task::yield_now().await;
                continue;
            }
            let alert = tokio::select! {
                alert = store.alert(None) => alert,
                () = wanted => continue,
            };
            match ended(&mut slot, alert, None)? {
                Some(alert) => return Ok(alert),
                // An interrupt: the program ends.
                None => std::future::pending().await,
            }
        }
    }

    /// Unbinds both.
    pub(super) async fn close(&self) {
        for slot in [&self.quick, &self.slow] {
            let store = slot.lock().await.take();
            if let Some(store) = store {
                // There is nobody to whom an error would matter.
                let _ = store.unbind().await;
            }
        }
    }
}

/// The result for the interface; an association that is of no more use is dropped.
fn ended<T>(
    slot: &mut Option<Store>,
    result: Result<T, StoreError>,
    number: Option<Number>,
) -> Result<T, BackendError> {
    result.map_err(|error| {
        if error.is_final() {
            *slot = None;
        }
        shown(&error, number)
    })
}

/// An error in words, with what to do.
fn shown(error: &StoreError, number: Option<Number>) -> BackendError {
    match error {
        StoreError::Refused(why @ BindRefused::Credentials) => BackendError::Refused(format!(
            "the message store refused the bind: {why} Correct the profile, and start again"
        )),
        StoreError::Operation(MsError::SequenceNumber(problems)) => {
            let named = problems.first().map(|(_, number)| u64::from(number.0));
            BackendError::Gone(number.or(named).unwrap_or(0))
        }
        error if error.is_final() => BackendError::Lost(error.to_string()),
        error => BackendError::Failed(error.to_string()),
    }
}
