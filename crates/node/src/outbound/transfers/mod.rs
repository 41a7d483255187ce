//! Transfers: started, paused, cut off and resumed.

pub(crate) mod dispatch;
pub(crate) mod kept;
pub(crate) mod preempt;
pub(crate) mod recovering;
pub(crate) mod stalled;
pub(crate) mod transfer;
pub(crate) mod turns;
