//! What an MTA does with a message: accept, trace, loop check, route, split, deliver, report, expire.

pub mod journal;
