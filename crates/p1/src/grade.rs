//! Six precedences over three priorities: the priority-level-qualifier of STANAG 4406.

/// priority-level-qualifier (1.3.26.0.4406.0.8.0): the half of a priority a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriorityLevelQualifier {
    /// low, 0.
    Low,
    /// high, 1.
    High,
}
