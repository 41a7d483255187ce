//! The driver's work queue: answers, and connections ready to be read or written; highest
//! precedence first.
//!
//! Order matters only within one connection, and the connection's own queue keeps that: an answer
//! belongs to one output, and the node accepts answers in any order.

use super::DriverAnswer;
use base::{AssociationId, Precedence, PrecedenceQueue};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use tokio::sync::Notify;

/// One item of work.
pub(crate) enum Work {
    /// An answer.
    Answer(DriverAnswer),
    /// This connection is ready to be served.
    Ready(AssociationId),
}

/// The queue.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<PrecedenceQueue<Work>>,
    more: Notify,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, PrecedenceQueue<Work>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, level: Precedence, work: Work) {
        self.lock().push(level, work);
        self.more.notify_one();
    }

    /// Adds an answer with this precedence.
    pub(crate) fn answer(&self, level: Precedence, answer: DriverAnswer) {
        self.push(level, Work::Answer(answer));
    }

    /// The next item.
    pub(super) fn pop(&self) -> Option<Work> {
        self.lock().pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns once the queue is not empty. For one caller.
    pub(super) async fn filled(&self) {
        while self.is_empty() {
            self.more.notified().await;
        }
    }
}

/// The waker of a connection. The connection is queued once, however often it is woken.
pub(super) struct Ready {
    association: AssociationId,
    level: AtomicU8,
    waits: AtomicBool,
    inbox: Arc<Inbox>,
}

impl Ready {
    pub(super) fn new(association: AssociationId, level: Precedence, inbox: Arc<Inbox>) -> Ready {
        let level = AtomicU8::new(level.number());
        Ready { association, level, waits: AtomicBool::new(false), inbox }
    }

    /// The precedence for the next time the connection is queued.
    pub(super) fn set_level(&self, level: Precedence) {
        self.level.store(level.number(), Ordering::Relaxed);
    }

    /// The connection is being served: a wake from now on queues it again.
    pub(super) fn begin(&self) {
        self.waits.store(false, Ordering::Release);
    }
}

impl Wake for Ready {
    fn wake(self: Arc<Ready>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Ready>) {
        if !self.waits.swap(true, Ordering::AcqRel) {
            let level = i64::from(self.level.load(Ordering::Relaxed));
            let level = Precedence::from_number(level).unwrap_or(Precedence::Immediate);
            self.inbox.push(level, Work::Ready(self.association));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The precedence of a user's connection is not known before its message: it is queued below
    /// urgent work and beside Priority, in order of arrival.
    #[test]
    fn a_user_s_connection_goes_behind_what_is_urgent_and_in_turn_with_priority() {
        let (user, priority, immediate, routine) = (1, 2, 3, 4);
        for (first, second) in [(user, priority), (priority, user)] {
            let inbox = Arc::new(Inbox::default());
            let wake = |n| {
                let level = match n {
                    1 => Precedence::HIGHEST_NOT_URGENT,
                    2 => Precedence::Priority,
                    3 => Precedence::Immediate,
                    _ => Precedence::Routine,
                };
                Arc::new(Ready::new(AssociationId(n), level, Arc::clone(&inbox))).wake_by_ref();
            };
            [routine, first, second, immediate].into_iter().for_each(wake);
            let next = || match inbox.pop() {
                Some(Work::Ready(AssociationId(n))) => n,
                _ => 0,
            };
            assert_eq!([next(), next(), next(), next()], [immediate, first, second, routine]);
        }
    }

    #[tokio::test]
    async fn a_connection_waits_once_and_the_higher_one_is_served_first() {
        let inbox = Arc::new(Inbox::default());
        let ready = |n, level| Arc::new(Ready::new(AssociationId(n), level, Arc::clone(&inbox)));
        let (routine, flash) = (ready(1, Precedence::Routine), ready(2, Precedence::Flash));
        for _ in 0..3 {
            routine.wake_by_ref();
            flash.wake_by_ref();
        }
        inbox.answer(Precedence::Immediate, DriverAnswer::Fatal(String::new()));
        inbox.filled().await;
        let next = || match inbox.pop() {
            Some(Work::Ready(AssociationId(n))) => n,
            Some(Work::Answer(_)) => 0,
            None => u64::MAX,
        };
        assert_eq!([next(), next(), next(), next()], [2, 0, 1, u64::MAX]);
        routine.begin();
        routine.set_level(Precedence::Override);
        flash.begin();
        flash.wake_by_ref();
        routine.wake_by_ref();
        assert_eq!([next(), next(), next()], [1, 2, u64::MAX]);
    }
}
