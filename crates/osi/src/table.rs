//! State tables as data: what a machine does in a state on an event, and which clause says so.

/// One cell of a state table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell<S, A> {
    /// What is done.
    pub(crate) action: A,
    /// The state it leads to.
    pub(crate) next: S,
    /// The clause that asks for it.
    pub(crate) clause: &'static str,
}

/// A cell; short, because tables are long.
pub(crate) const fn go<S, A>(action: A, next: S, clause: &'static str) -> Cell<S, A> {
    Cell { action, next, clause }
}

/// Prints a whole table, every state against every event, for the snapshot tests.
#[cfg(test)]
pub(crate) fn print<S, E, A>(
    states: &[S],
    events: &[E],
    cell: impl Fn(S, E) -> Cell<S, A>,
) -> String
where
    S: Copy + std::fmt::Debug,
    E: Copy + std::fmt::Debug,
    A: std::fmt::Debug,
{
    use std::fmt::Write;
    let mut out = String::new();
    for event in events {
        let _ = writeln!(out, "{event:?}");
        for state in states {
            let Cell { action, next, clause } = cell(*state, *event);
            let _ = writeln!(out, "  {state:?}: {action:?} -> {next:?}  ({clause})");
        }
    }
    out
}
