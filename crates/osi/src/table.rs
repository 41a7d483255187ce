//! State tables as data, and the one automaton that runs them: what a layer does in a state on an
//! event, the state that follows, and the clause that asks for it.
//!
//! [`state_table!`] defines the table of a layer: its states, events, actions and cells. An
//! [`Automaton`] holds the state. [`Automaton::enter`] finds the cell of the present state and the
//! event, changes the state to the cell's next state and returns the cell's action, which the
//! machine of the layer matches exhaustively. The state field is private to this module: a machine
//! cannot change its state except by an event.
//!
//! # An event without a cell
//!
//! The standards list the events that may happen in a state. For all others one policy holds in
//! every layer. It depends on where the event comes from ([`Origin`]) alone:
//!
//! | Event | Result | State after it |
//! |---|---|---|
//! | request of our own user | [`Step::Misuse`]: internal error. The machine changes nothing and reports it: the session service as an error, the other layers by an abort that names request and state | the same |
//! | answer of our own user, to something that the peer or a timer may have ended meanwhile | [`Step::Nothing`]: dropped | the same |
//! | received from the peer, while the connection is there or is being made | [`Step::ProtocolError`]: the abort of the layer, with its diagnostic | the table's `protocol_error` state |
//! | received from the peer, in a state of the table's `late` list: no connection is there any more, or not yet | [`Step::Nothing`]: dropped | the same |
//! | local: timers, the service below, the machine itself | [`Step::Nothing`]: dropped | the same |
//!
//! A cell whose action needs a parameter that the event does not carry is a fault of the table: the
//! action answers [`Lacking`], and the machine handles it as a misuse ([`Entered::fault`]).

#[cfg(test)]
mod mutants;
#[cfg(test)]
mod overrides;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::{cells, print, shown};

use std::fmt::{self, Debug};

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A request of our own user.
    Request,
    /// An answer of our own user to something that may have ended meanwhile.
    Answer,
    /// Received from the peer.
    Received,
    /// A timer, the service below, or the machine itself.
    Local,
}

/// One row of a table: the cells of its states and events that have the same content.
#[derive(Clone, Debug)]
pub(crate) struct Row<T: Table> {
    /// The states it is for.
    pub(crate) states: &'static [T::State],
    /// The events it is for.
    pub(crate) events: &'static [T::Event],
    /// Predicates that all hold. Where not, a later row for the same state and event counts.
    pub(crate) when: &'static [T::Predicate],
    /// What is done; `None` where the next state is all.
    pub(crate) action: Option<T::Action>,
    /// The next state; `None` for the same.
    pub(crate) next: Option<T::State>,
    /// The clause that asks for it.
    pub(crate) clause: &'static str,
}

/// What a table has for events without a cell.
#[derive(Clone, Debug)]
pub(crate) struct Otherwise<S> {
    /// The clause for a misuse.
    pub(crate) misuse: &'static str,
    /// The clause for what is dropped.
    pub(crate) late: &'static str,
    /// The clause for a protocol error.
    pub(crate) error: &'static str,
    /// The state after a protocol error.
    pub(crate) failed: S,
}

/// The table of one layer, as [`state_table!`] defines it.
pub(crate) trait Table: Copy + Debug + Sized + 'static {
    /// States.
    type State: Copy + Eq + Debug + 'static;
    /// Events.
    type Event: Copy + Eq + Debug + 'static;
    /// Predicates of cells; [`Unconditional`] where there are none.
    type Predicate: Copy + Debug + 'static;
    /// Actions.
    type Action: Copy + Eq + Debug + 'static;

    /// Name of the layer, as diagnostics begin with it.
    const LAYER: &'static str;
    /// All states; the first is the initial one.
    #[cfg(test)]
    const STATES: &'static [Self::State];
    /// The state at the beginning.
    const INITIAL: Self::State;
    /// All events.
    #[cfg(test)]
    const EVENTS: &'static [Self::Event];
    /// All actions.
    #[cfg(test)]
    const ACTIONS: &'static [Self::Action];
    /// All rows. The first that fits counts.
    const ROWS: &'static [Row<Self>];
    /// The rest.
    const OTHERWISE: Otherwise<Self::State>;

    /// Number of the first row for this state and event; beyond all rows where there is none.
    fn first(state: Self::State, event: Self::Event) -> usize;
    /// The source of an event.
    fn origin(event: Self::Event) -> Origin;
    /// Whether what the peer sends comes too late, or too early, in this state.
    fn is_late(state: Self::State) -> bool;
}

/// The predicates of a table without predicates.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unconditional {}

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<A> {
    /// The action of the cell.
    Do(A),
    /// Nothing but the next state.
    Nothing,
    /// No cell: a request of our own user that is not allowed here.
    Misuse,
    /// No cell: the peer may not send this here.
    ProtocolError,
}

/// The action of a cell needs a parameter that its event does not carry. Nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacking;

/// Whether an action found its parameter.
pub(crate) type Performed = Result<(), Lacking>;

/// The outcome of [`Automaton::enter`]. Its `Display` is the diagnostic (layer, event, state,
/// clause), formatted only where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered<T: Table> {
    /// The action that the machine performs.
    pub(crate) step: Step<T::Action>,
    /// The event.
    pub(crate) event: T::Event,
    /// The state in which the event came.
    pub(crate) before: T::State,
    /// The clause of the cell.
    pub(crate) clause: &'static str,
}

impl<T: Table> fmt::Display for Entered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?} in {:?} ({})", T::LAYER, self.event, self.before, self.clause)
    }
}

impl<T: Table> Entered<T> {
    /// The diagnostic of a cell whose action needs a parameter that the event does not carry.
    pub(crate) fn fault(&self) -> String {
        format!("{self}: internal error: {:?} lacks its parameter", self.step)
    }
}

/// A cell as found for a state and an event.
#[derive(Clone, Debug)]
pub(crate) struct Found<T: Table> {
    /// Number of its row; `None` for a default cell.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the cell for tests"))]
    pub(crate) row: Option<usize>,
    step: Step<T::Action>,
    next: T::State,
    clause: &'static str,
}

/// The state of one machine, driven by its table.
#[derive(Clone, Debug)]
pub(crate) struct Automaton<T: Table> {
    state: T::State,
}

impl<T: Table> Automaton<T> {
    /// An automaton in the initial state.
    pub(crate) fn new() -> Automaton<T> {
        Automaton { state: T::INITIAL }
    }

    /// An automaton in this state.
    #[cfg(test)]
    pub(crate) fn at(state: T::State) -> Automaton<T> {
        Automaton { state }
    }

    /// The present state.
    pub(crate) fn state(&self) -> T::State {
        self.state
    }

    /// Whether some cell of the present state does this on the event.
    pub(crate) fn offers(&self, event: T::Event, action: T::Action) -> bool {
        let rows = T::ROWS.iter().skip(T::first(self.state, event));
        rows.filter(|row| row.states.contains(&self.state) && row.events.contains(&event))
            .any(|row| row.action == Some(action))
    }

    /// Takes an event; `holds` evaluates the predicates of the cells.
    pub(crate) fn enter_if(
        &mut self,
        event: T::Event,
        holds: impl Fn(T::Predicate) -> bool,
    ) -> Entered<T> {
        let before = self.state;
        let found = find::<T>(before, event, holds);
        #[cfg(test)]
        let found = overrides::applied(before, event, found);
        self.state = found.next;
        Entered { step: found.step, event, before, clause: found.clause }
    }
}

impl<T: Table<Predicate = Unconditional>> Automaton<T> {
    /// Takes an event.
    pub(crate) fn enter(&mut self, event: T::Event) -> Entered<T> {
        self.enter_if(event, |never| match never {})
    }
}

pub(crate) fn find<T: Table>(
    state: T::State,
    event: T::Event,
    holds: impl Fn(T::Predicate) -> bool,
) -> Found<T> {
    let first = T::first(state, event);
    let rows = T::ROWS.iter().enumerate().skip(first);
    for (number, row) in rows {
        if row.states.contains(&state)
            && row.events.contains(&event)
            && row.when.iter().all(|when| holds(*when))
        {
            return Found {
                row: Some(number),
                step: row.action.map_or(Step::Nothing, Step::Do),
                next: row.next.unwrap_or(state),
                clause: row.clause,
            };
        }
    }
    otherwise(state, event)
}

/// The default cell: the policy of the module's documentation.
fn otherwise<T: Table>(state: T::State, event: T::Event) -> Found<T> {
    let Otherwise { misuse, late, error, failed } = T::OTHERWISE;
    let (step, next, clause) = match T::origin(event) {
        Origin::Request => (Step::Misuse, state, misuse),
        Origin::Received if !T::is_late(state) => (Step::ProtocolError, failed, error),
        Origin::Received | Origin::Answer | Origin::Local => (Step::Nothing, state, late),
    };
    Found { row: None, step, next, clause }
}

/// Defines the table of a layer: `State`, `Event`, `Action`, and `Table`, the type that implements
/// the trait of that name.
///
/// A line of `cells` reads `events in states [predicates] => action -> next state, clause`. `any`
/// stands for all states, `nothing` for no action, `same` for the state in which the event came. The
/// first line that fits counts.
macro_rules! state_table {
    (
        $(#[$table_doc:meta])*
        table $layer:literal $(with $predicate:ident)?;

        $(#[$states_doc:meta])*
        states { $initial:ident: $($(#[$state_doc:meta])* $state:ident,)+ }

        $(#[$events_doc:meta])*
        events {
            requests { $($(#[$request_doc:meta])* $request:ident,)* }
            answers { $($(#[$answer_doc:meta])* $answer:ident,)* }
            received { $($(#[$received_doc:meta])* $received:ident,)* }
            local { $($(#[$local_doc:meta])* $local:ident,)* }
        }

        $(#[$actions_doc:meta])*
        actions { $($(#[$action_doc:meta])* $action:ident,)+ }

        otherwise {
            misuse: $misuse:literal;
            late in $($late_state:ident)|+: $late:literal;
            protocol_error -> $failed:ident: $error:literal;
        }

        cells {
            $($($event:ident)|+ in $($from:ident)|+ $([$($when:ident),+])?
                => $do:ident -> $next:ident, $clause:literal;)+
        }
    ) => {
        $(#[$states_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum State { $($(#[$state_doc])* $state,)+ }

        $(#[$events_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event {
            $($(#[$request_doc])* $request,)*
            $($(#[$answer_doc])* $answer,)*
            $($(#[$received_doc])* $received,)*
            $($(#[$local_doc])* $local,)*
        }

        $(#[$actions_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Action { $($(#[$action_doc])* $action,)+ }

        $(#[$table_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Table;

        type Predicate = $crate::table::state_table!(@type $($predicate)?);
        const STATES: &[State] = &[$(State::$state,)+];
        const EVENTS: &[Event] = &[
            $(Event::$request,)* $(Event::$answer,)* $(Event::$received,)* $(Event::$local,)*
        ];
        const ROWS: &[$crate::table::Row<Table>] = &[$($crate::table::Row {
            states: $crate::table::state_table!(@states $($from)|+),
            events: &[$(Event::$event),+],
            when: &[$($(Predicate::$when),+)?],
            action: $crate::table::state_table!(@action $do),
            next: $crate::table::state_table!(@next $next),
            clause: $clause,
        },)+];
        /// By state and event: the first row.
        #[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
        const FIRST: [[usize; EVENTS.len()]; STATES.len()] = {
            let mut first = [[usize::MAX; EVENTS.len()]; STATES.len()];
            let mut number = ROWS.len();
            while number > 0 {
                number -= 1;
                let (states, events) = (ROWS[number].states, ROWS[number].events);
                let mut state = 0;
                while state < states.len() {
                    let mut event = 0;
                    while event < events.len() {
                        first[states[state] as usize][events[event] as usize] = number;
                        event += 1;
                    }
                    state += 1;
                }
            }
            first
        };

        impl $crate::table::Table for Table {
            type State = State;
            type Event = Event;
            type Predicate = Predicate;
            type Action = Action;

            const LAYER: &'static str = $layer;
            #[cfg(test)]
            const STATES: &'static [State] = STATES;
            const INITIAL: State = State::$initial;
            #[cfg(test)]
            const EVENTS: &'static [Event] = EVENTS;
            #[cfg(test)]
            const ACTIONS: &'static [Action] = &[$(Action::$action,)+];
            const ROWS: &'static [$crate::table::Row<Table>] = ROWS;
            const OTHERWISE: $crate::table::Otherwise<State> = $crate::table::Otherwise {
                misuse: $misuse,
                late: $late,
                error: $error,
                failed: State::$failed,
            };

            fn first(state: State, event: Event) -> usize {
                let row = FIRST.get(state as usize).and_then(|row| row.get(event as usize));
                row.copied().unwrap_or(usize::MAX)
            }

            fn origin(event: Event) -> $crate::table::Origin {
                match event {
                    $(Event::$request => $crate::table::Origin::Request,)*
                    $(Event::$answer => $crate::table::Origin::Answer,)*
                    $(Event::$received => $crate::table::Origin::Received,)*
                    $(Event::$local => $crate::table::Origin::Local,)*
                }
            }

            fn is_late(state: State) -> bool {
                matches!(state, $(State::$late_state)|+)
            }
        }

        #[cfg(test)]
        mod tests {
            #[test]
            fn every_state_against_every_event() {
                insta::assert_snapshot!(
                    concat!($layer, "_table"),
                    $crate::table::print::<super::Table>()
                );
            }
        }
    };
    (@states any) => { STATES };
    (@states $($state:ident)|+) => { &[$(State::$state),+] };
    (@action nothing) => { None };
    (@action $action:ident) => { Some(Action::$action) };
    (@next same) => { None };
    (@next $next:ident) => { Some(State::$next) };
    (@type) => { $crate::table::Unconditional };
    (@type $predicate:ident) => { $predicate };
}
pub(crate) use state_table;
