//! One cell with another content, for the mutation test (see [`super::mutants`]): the environment of
//! the process names it. In test builds alone.

use super::{Found, Row, Step, Table};
use std::fmt::Debug;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The variable that names the cell and its content: `layer/state/event/predicates/kind/value`.
pub(super) const VARIABLE: &str = "OSI_TABLE_OVERRIDE";

/// Most events that the tests of a layer take. With a wrong cell a machine may run for ever.
const MAX_EVENTS: usize = 4_000_000;

/// The change of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverrideKind {
    /// It has no action.
    Omitted,
    /// It has another action.
    Action,
    /// It leads to another state.
    Next,
}

impl OverrideKind {
    pub(super) const ALL: [OverrideKind; 3] =
        [OverrideKind::Omitted, OverrideKind::Action, OverrideKind::Next];
}

#[derive(Debug)]
struct Override {
    layer: String,
    state: String,
    event: String,
    predicates: String,
    kind: OverrideKind,
    value: String,
}

fn parsed(text: &str) -> Option<Override> {
    let mut parts = text.split('/').map(str::to_owned);
    let mut part = || parts.next();
    let (layer, state, event, predicates) = (part()?, part()?, part()?, part()?);
    let kind = part()?;
    let kind = OverrideKind::ALL.into_iter().find(|k| format!("{k:?}") == kind)?;
    Some(Override { layer, state, event, predicates, kind, value: part()? })
}

/// The predicates of a row as part of the name of a cell; `-` where there are none.
pub(super) fn predicates<T: Table>(row: &Row<T>) -> String {
    let all: Vec<String> = row.when.iter().map(|when| format!("{when:?}")).collect();
    if all.is_empty() { "-".to_owned() } else { all.join("+") }
}

/// The override of this process. The first failed assertion of a process with one ends it: the cell
/// is caught.
fn current() -> Option<&'static Override> {
    static CURRENT: OnceLock<Option<Override>> = OnceLock::new();
    let current = CURRENT.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        let found = parsed(&text).unwrap_or_else(|| panic!("{VARIABLE}: {text}"));
        std::panic::set_hook(Box::new(|_| end()));
        Some(found)
    });
    current.as_ref()
}

#[expect(clippy::disallowed_methods, reason = "a failed test of a process that has no other use")]
fn end() {
    std::process::exit(101)
}

fn named<T: Copy + Debug>(all: &[T], name: &str) -> T {
    let mut all = all.iter().copied();
    all.find(|one| format!("{one:?}") == name).unwrap_or_else(|| panic!("{name} is unknown"))
}

/// The cell as found, or its override.
pub(super) fn applied<T: Table>(state: T::State, event: T::Event, found: Found<T>) -> Found<T> {
    static EVENTS: AtomicUsize = AtomicUsize::new(0);
    let Some(wrong) = current() else { return found };
    assert!(EVENTS.fetch_add(1, Ordering::Relaxed) < MAX_EVENTS, "the machine runs for ever");
    let row = found.row.filter(|_| wrong.layer == T::LAYER).map(|number| &T::ROWS[number]);
    let same = row.is_some_and(|row| {
        wrong.state == format!("{state:?}")
            && wrong.event == format!("{event:?}")
            && wrong.predicates == predicates(row)
    });
    match wrong.kind {
        _ if !same => found,
        OverrideKind::Omitted => Found { step: Step::Nothing, ..found },
        OverrideKind::Action => Found { step: Step::Do(named(T::ACTIONS, &wrong.value)), ..found },
        OverrideKind::Next => Found { next: named(T::STATES, &wrong.value), ..found },
    }
}
