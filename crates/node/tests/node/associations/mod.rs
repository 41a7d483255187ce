//! When associations are opened, how they carry on slow lines, and which fault ended them.

mod blame;
mod one_port;
mod opening;
mod release;
mod slow;
mod x410;
