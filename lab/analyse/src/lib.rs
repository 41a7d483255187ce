//! Analysis of captured packets: by code point, flow and message, and between points.
//!
//! One machine, [`Analysis`], takes frames with their times and gives rows as they are complete: one
//! for each direction of a flow, one for each message that P1 transfers. The sums by code point and
//! the outcome of packets between points are available at any time. Memory is bounded by [`Limits`]
//! whatever passes; what had to be forgotten is counted in [`Totals`].
//!
//! It has no files, sockets or clock: [`mod@file`] takes capture files apart octet by octet, in the
//! caller's buffer.
//!
//! ```
//! use analyse::{Analysis, Frame, Limits, LinkType, Time};
//!
//! let mut analysis = Analysis::new(Limits::default());
//! let point = analysis.point("eth0".to_owned(), LinkType::Raw);
//! let echo = [0x45, 0x60, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8, 0, 0, 0, 0, 1, 0, 1];
//! analysis.handle(Time(1), Frame { point, original: 28, octets: &echo });
//! analysis.finish();
//! let rows = std::iter::from_fn(|| analysis.poll()).count();
//! let (_, aggregate) = analysis.aggregates().next().ok_or("none")?;
//! assert_eq!((rows, aggregate.dscp, aggregate.volume.octets), (1, dscp::Dscp::CS3, 28));
//! # Ok::<(), &str>(())
//! ```

pub mod file;
mod flow;
mod link;
mod machine;
mod message;
mod numbered;
pub mod packet;
mod path;
pub mod report;
mod series;
mod summary;
mod table;
mod tcp;
mod time;

pub use link::{Carried, LinkType, Passed, carried};
pub use machine::{Analysis, Frame, Limits, Output};
pub use numbered::Received;
pub use report::{Aggregate, Flow, Hop, Message, Point, Totals};
pub use series::{Bin, Mean, Series};
pub use summary::Summary;
pub use tcp::TcpCounts;
pub use time::Time;
