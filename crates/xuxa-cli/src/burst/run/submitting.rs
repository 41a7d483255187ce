//! The submissions of a burst: a task for each group, and one for each of its associations.

use super::{Run, count};
use crate::burst::tally::Micros;
use crate::submission::{self, Disposition, Failure, MtaAccess, Watch};
use base::{Instant, Utc};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;
use ua::{Clock, User};

/// Submits the messages of a group, on all its associations.
pub(super) async fn submit_group(run: Rc<Run>, index: usize, users: Vec<User>) {
    let Some(group) = run.setup.plan.groups.get(index) else {
        return;
    };
    let first = run.setup.plan.groups.iter().take(index).map(|group| count(group.count)).sum();
    let waited = match group.after {
        Some((other, stage)) => run.wait_for(other, stage).await,
        None => Ok(()),
    };
    let is_given_up = waited.is_err();
    let line = Rc::new(GroupQueue {
        index,
        next: Cell::new(first),
        end: first + count(group.count),
        begin: run.setup.clock.now(),
        begin_utc: Clock::utc(),
        given_up: RefCell::new(waited.err().map(|missed| missed.to_string())),
    });
    let mut tasks = JoinSet::new();
    for (number, user) in users.into_iter().enumerate() {
        let (run, line) = (Rc::clone(&run), Rc::clone(&line));
        tasks.spawn_local(async move {
            match is_given_up {
                true => unbind(&run, user).await,
                false => submit_some(run, line, number, user).await,
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    // These have no association left.
    let why = line.given_up.take().unwrap_or_else(|| "no association is left".to_owned());
    while let Some(number) = line.take() {
        run.failed(number, &Failure::not_tried(&why));
    }
    run.group_ended(index);
}

/// The messages of a group that are not yet submitted, in their order.
struct GroupQueue {
    index: usize,
    next: Cell<usize>,
    end: usize,
    /// When the group began, on both clocks.
    begin: Instant,
    begin_utc: Utc,
    /// Why the rest of the group, or one of its associations, was given up.
    given_up: RefCell<Option<String>>,
}

impl GroupQueue {
    fn take(&self) -> Option<usize> {
        let number = self.next.get();
        self.next.set(number + 1);
        (number < self.end).then_some(number)
    }
}

/// Submits the next messages of the group on one association, until none is left.
async fn submit_some(run: Rc<Run>, line: Rc<GroupQueue>, association: usize, user: User) {
    let profiles = run.setup.from.get(line.index).map_or(&[][..], Vec::as_slice);
    let from = association % profiles.len().max(1);
    let Some(profile) = profiles.get(from) else {
        return;
    };
    let access = run.access(profile, &run.cut);
    let mut user = Some(user);
    while let Some(number) = line.take() {
        let start = run.setup.planned.get(number).and_then(|planned| planned.start);
        if let Some(start) = start {
            let at = tokio::time::sleep_until(run.setup.clock.at(line.begin + start));
            tokio::select! {
                () = at => {}
                () = run.setup.interrupted.wait() => {}
            }
        }
        if run.is_interrupted() {
            run.failed(number, &Failure::not_tried("interrupted"));
            continue;
        }
        let due = start.map(|start| line.begin_utc.0 + micros(start));
        run.tally.borrow_mut().assign(number, from, due);
        if let Err(failure) = submit_one(&run, &access, &mut user, number).await {
            run.failed(number, &failure);
            if failure.is_away {
                line.given_up.replace(Some(failure.reason));
                break;
            }
        }
    }
    if let Some(user) = user {
        unbind(&run, user).await;
    }
}

async fn unbind(run: &Run, user: User) {
    if let Err(error) = user.unbind().await {
        run.print_line(&format!("after the last answer: {error:#}"));
    }
}

fn micros(time: Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

async fn submit_one(
    run: &Run,
    access: &MtaAccess<'_>,
    user: &mut Option<User>,
    number: usize,
) -> Result<(), Failure> {
    let message = run.message(number).map_err(|error| Failure {
        disposition: Disposition::NotSent,
        tries: 0,
        reason: format!("{error:#}"),
        is_wrong_use: false,
        is_away: false,
    })?;
    let length = message.content.len();
    let mut watch = Begin { run, number, length };
    let retry_for = run.setup.plan.retry_for;
    let accepted = submission::submit(access, user, &message, retry_for, &mut watch).await?;
    let identifier = accepted.result.identifier.to_string();
    run.tally.borrow_mut().accepted(number, Clock::utc().0, &identifier, accepted.tries);
    run.changed.notify_waiters();
    Ok(())
}

/// Records when the first octet is sent.
struct Begin<'a> {
    run: &'a Run,
    number: usize,
    length: u64,
}

impl Watch for Begin<'_> {
    fn begin(&mut self) {
        self.run.tally.borrow_mut().begins(self.number, Clock::utc().0, self.length);
    }

    fn piece(&mut self, _: &[u8]) {}
}
