//! The predicates of the session tables (X.225 A.5), evaluated by [`super::variables`].

/// Predicates, numbered as in X.225 A.5; dk, mi, ma are the data, synchronize-minor and
/// major/activity tokens. Those without a number there have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// We made the transport connection.
    P01,
    /// dk not available, or ours.
    P03,
    /// Duplex, no collision of releases.
    P04,
    /// dk not available, or the peer's.
    P05,
    /// No collision of releases.
    P10,
    /// ma available and ours.
    P11,
    /// Where there are activities: inside one. dk not available or the peer's, mi available and the
    /// peer's.
    P14,
    /// As P14, with both ours.
    P15,
    /// Inside an activity, minor synchronize; a confirmation may be received.
    P17,
    /// Inside an activity, minor synchronize; a confirmation may be sent.
    P18,
    /// Serial number = V(M).
    P19,
    /// Serial number = V(M) - 1.
    P20,
    /// Serial number is neither V(M) - 1.
    NotP20,
    /// V(M) > serial number >= V(A).
    P21,
    /// Activity management.
    P34,
    /// Inside an activity, ma available and ours.
    P39,
    /// ma available and the peer's.
    P40,
    /// Activity management, outside an activity, dk, mi and ma each not available or the peer's.
    P44,
    /// As P44, with all ours.
    P45,
    /// Exceptions and half-duplex.
    P48,
    /// Exceptions, inside an activity, dk available and the peer's.
    P50,
    /// As P50, with dk ours.
    P51,
    /// Exceptions, no activity management, dk ours.
    P52,
    /// Some of the tokens asked for are available.
    P53,
    /// All tokens to be given are available and ours.
    P54,
    /// Activity management, outside an activity, all tokens not available or ours.
    P55,
    /// As P54, dk among them.
    P58,
    /// All tokens given are available and the peer's.
    P59,
    /// As P59, dk not among them.
    P60,
    /// As P59, dk among them.
    P61,
    /// Activity management, outside an activity, all tokens not available or the peer's.
    P62,
    /// All tokens not available or ours, outside an activity.
    P63,
    /// No token is available.
    NotP65,
    /// All tokens not available or the peer's, outside an activity.
    P68,
    /// Collision of releases.
    P69,
    /// Duplex.
    P70,
    /// Inside an activity, dk, mi, ma ours (ma available).
    P71,
    /// Inside an activity, dk, mi, ma the peer's (ma available).
    P72,
    /// No collision of releases, or the DISCONNECT has come.
    P75,
    /// The CONNECT is not acceptable to the provider (8.3.5.10).
    P76,
    /// The ACCEPT selects version 2 and one of half-duplex and duplex (7.4.3).
    Acceptable,
    /// Our user has answered the release already.
    Answered,
}
