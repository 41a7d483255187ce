//! Every table, whole: its printed form, its consistency and its default cells.

use super::{Automaton, Origin, Row, Step, Table, find, otherwise};

/// The arms of a cell: numbers of its rows, the default cell (`None`) where no row is unconditional.
pub(super) fn arms<T: Table>(state: T::State, event: T::Event) -> Vec<Option<usize>> {
    let mut arms = Vec::new();
    for (number, row) in T::ROWS.iter().enumerate() {
        if row.states.contains(&state) && row.events.contains(&event) {
            arms.push(Some(number));
            if row.when.is_empty() {
                return arms;
            }
        }
    }
    arms.push(None);
    arms
}

/// Prints a whole table, every event in every state, for the snapshots.
pub(crate) fn print<T: Table>() -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for event in T::EVENTS {
        let _ = writeln!(out, "{event:?}");
        for state in T::STATES {
            for arm in arms::<T>(*state, *event) {
                let row = arm.map(|number| &T::ROWS[number]);
                let when = row.map_or(&[][..], |row| row.when);
                let when: Vec<String> = when.iter().map(|when| format!("{when:?}")).collect();
                let when = if when.is_empty() {
                    String::new()
                } else {
                    format!("[{}] ", when.join(" & "))
                };
                let (step, next, clause) = match row {
                    Some(Row { action, next, clause, .. }) => {
                        (action.map_or(Step::Nothing, Step::Do), next.unwrap_or(*state), *clause)
                    }
                    None => {
                        let found = otherwise::<T>(*state, *event);
                        (found.step, found.next, found.clause)
                    }
                };
                let step = match step {
                    Step::Do(action) => format!("{action:?}"),
                    step => format!("{step:?}"),
                };
                let _ = writeln!(out, "  {state:?}: {when}{step} -> {next:?}  ({clause})");
            }
        }
    }
    out
}

/// Every cell of a table as its machine performs it, for the snapshots: `run` puts a machine into the
/// state, passes it the event in a situation in which the row counts, and returns the result.
pub(crate) fn cells<T: Table>(run: impl Fn(T::State, T::Event, usize) -> String) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for &event in T::EVENTS {
        for &state in T::STATES {
            for number in arms::<T>(state, event).into_iter().flatten() {
                let when = super::overrides::predicates(&T::ROWS[number]);
                let outcome = run(state, event, number);
                let _ = writeln!(out, "{event:?} in {state:?} {when}: {outcome}");
            }
        }
    }
    out
}

/// A value for the snapshots, its end cut off where it is long.
pub(crate) fn shown(value: &impl std::fmt::Debug) -> String {
    const MOST: usize = 160;
    let text = format!("{value:?}");
    let cut: String = text.chars().take(MOST).collect();
    if cut.len() == text.len() { text } else { format!("{cut}... ({})", text.len()) }
}

/// The policy of [`super`], written out once more, against every default cell of a table.
fn default_cells<T: Table>() -> usize {
    let mut count = 0;
    for &state in T::STATES {
        for &event in T::EVENTS {
            if arms::<T>(state, event).last() != Some(&None) {
                continue;
            }
            let mut automaton = Automaton::<T> { state };
            let entered = automaton.enter_if(event, |_| false);
            let place = format!("{}: {event:?} in {state:?}", T::LAYER);
            let late = T::is_late(state);
            let expected = match T::origin(event) {
                Origin::Request => (Step::Misuse, state, T::OTHERWISE.misuse),
                Origin::Received if !late => {
                    (Step::ProtocolError, T::OTHERWISE.failed, T::OTHERWISE.error)
                }
                Origin::Received | Origin::Answer | Origin::Local => {
                    (Step::Nothing, state, T::OTHERWISE.late)
                }
            };
            let got = (entered.step, automaton.state(), entered.clause);
            assert_eq!(got, expected, "{place}");
            let text = entered.to_string();
            assert_eq!(text, format!("{place} ({})", entered.clause));
            count += 1;
        }
    }
    count
}

/// Rows that no state and event reach, and rows behind one that always holds, do not exist.
fn every_row_counts<T: Table>() {
    for (number, row) in T::ROWS.iter().enumerate() {
        let reached = row.states.iter().any(|state| {
            row.events.iter().any(|event| arms::<T>(*state, *event).contains(&Some(number)))
        });
        assert!(reached, "{}: row {number}: {row:?}", T::LAYER);
    }
}

/// Every action stands in a cell.
fn every_action_is_used<T: Table>() {
    for action in T::ACTIONS {
        let used = T::ROWS.iter().any(|row| row.action == Some(*action));
        assert!(used, "{}: {action:?}", T::LAYER);
    }
}

/// The index and the list of rows agree.
fn the_index_is_right<T: Table>() {
    for &state in T::STATES {
        for &event in T::EVENTS {
            let unconditional = arms::<T>(state, event)
                .into_iter()
                .find(|arm| arm.is_none_or(|number| T::ROWS[number].when.is_empty()));
            let found = find::<T>(state, event, |_| false);
            assert_eq!(Some(found.row), unconditional, "{}: {event:?} in {state:?}", T::LAYER);
        }
    }
}

macro_rules! for_each_table {
    ($check:ident) => {{
        $check::<crate::cotp::table::Table>();
        $check::<crate::session::table::Table>();
        $check::<crate::presentation::table::Table>();
        $check::<crate::acse::table::Table>();
        $check::<crate::rtse::table::Table>();
        $check::<crate::rose::table::Table>();
    }};
}

#[test]
fn every_default_cell_follows_the_policy() {
    for_each_table!(default_cells);
}

#[test]
fn every_table_is_consistent() {
    for_each_table!(every_row_counts);
    for_each_table!(every_action_is_used);
    for_each_table!(the_index_is_right);
}
