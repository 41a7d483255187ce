//! The simulation as its users see it.

mod chance;
mod messages;
mod nato;
mod routes;
mod setting;
mod slow;
mod traffic;
