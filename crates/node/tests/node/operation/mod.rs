//! What an operator changes: the configuration, the clock.

mod clock;
mod reload;
