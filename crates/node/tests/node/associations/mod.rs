//! When associations are opened, how they carry on slow lines, and which fault ended them.

mod blame;
mod opening;
mod release;
mod slow;
mod x410;
