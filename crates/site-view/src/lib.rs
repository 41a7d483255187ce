//! A site of several nodes as an operator sees it.
//!
//! ```text
//!   the database ──Surveyor──▶ Survey ──▶ SiteReport ──▶ text, JSON, exit code   (mta cluster status)
//!                                 │
//!                                 └────▶ Alarms ──▶ lines of the log, figures    (each node, by Watcher)
//! ```
//!
//! What is shown is what the database knows: so it is the same at each node, and is shown without a daemon too.

mod alarms;
mod elsewhere;
mod examine;
mod fault;
mod gauges;
mod identity;
mod own;
mod place;
mod report;
mod servers;
mod text;
mod watcher;
mod words;

pub use alarms::{Alarms, Level, Line, Observed};
pub use elsewhere::{Elsewhere, ElsewherePage, ElsewhereRequest, Place};
pub use examine::{Examined, examine};
pub use fault::DatabaseFault;
pub use gauges::Gauge;
pub use identity::{IDENTITY, Identity, OtherSite};
pub use own::add_site;
pub use place::{HeldPlace, PlaceError, key_of};
pub use report::{
    Health, IfDied, NodeReport, Own, ServerReport, ShardReport, SiteReport, report, unseen,
};
pub use watcher::{Figures, StandbyFigures, Watcher};
