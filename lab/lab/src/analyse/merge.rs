//! Several captures as one, by time.

use super::Source;
use ::analyse::{Analysis, Frame};
use anyhow::Result;

/// What was fed to an analysis so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Feed {
    /// Octets of all files.
    pub octets: u64,
    /// Packets.
    pub packets: u64,
}

/// How many packets go by between two looks.
const LOOK: u64 = 1 << 14;

/// Reads all files to their ends, the earliest packet of all first; within a file the order is kept.
/// `each` is called after every packet, `look` now and then.
///
/// # Errors
/// A file cannot be read any longer, or the error of `each` or `look`.
pub(crate) fn files(
    sources: &mut [Source],
    analysis: &mut Analysis,
    mut each: impl FnMut(&mut Analysis) -> Result<()>,
    mut look: impl FnMut(&Feed) -> Result<()>,
) -> Result<Feed> {
    let mut points = Points::default();
    // Interfaces are known before the first packet, so that none is taken for the only one.
    for (number, source) in sources.iter().enumerate() {
        points.add(number, source, analysis);
    }
    let mut feed = Feed::default();
    loop {
        let each_next = sources.iter().enumerate();
        let times = each_next.filter_map(|(n, of)| Some((of.pending()?.time, n)));
        let Some((_, number)) = times.min() else { break };
        let Some(source) = sources.get_mut(number) else { break };
        points.add(number, source, analysis);
        if let Some(pending) = source.pending()
            && let Some(point) = points.get(number, pending.interface)
        {
            let (original, octets) = (pending.original, pending.octets);
            analysis.handle(pending.time, Frame { point, original, octets });
            each(analysis)?;
        }
        source.advance()?;
        feed.packets += 1;
        if feed.packets.is_multiple_of(LOOK) {
            feed.octets = sources.iter().map(Source::offset).sum();
            look(&feed)?;
            if testbed::clock::is_interrupted() {
                break;
            }
        }
    }
    feed.octets = sources.iter().map(Source::offset).sum();
    Ok(feed)
}

/// The points of all interfaces: one that is described again in a later section is the same.
#[derive(Default)]
struct Points {
    files: Vec<Vec<usize>>,
}

impl Points {
    /// Those of a file that are new.
    fn add(&mut self, number: usize, source: &Source, analysis: &mut Analysis) {
        if self.files.len() <= number {
            self.files.resize(number + 1, Vec::new());
        }
        let Some(known) = self.files.get_mut(number) else { return };
        let interfaces = source.interfaces();
        while let Some(interface) = interfaces.get(known.len()) {
            let same = |(_, of): &(usize, &::analyse::file::CaptureInterface)| *of == interface;
            let before = interfaces.iter().take(known.len()).enumerate();
            let place = before.filter(|_| interface.name.is_some()).find(same);
            let place = place.and_then(|(place, _)| known.get(place).copied());
            let point = place.unwrap_or_else(|| {
                let name = match &interface.name {
                    Some(name) => format!("{}:{name}", short(source.name())),
                    None if known.is_empty() => short(source.name()).to_owned(),
                    None => format!("{}:{}", short(source.name()), known.len()),
                };
                analysis.point(name, interface.link)
            });
            known.push(point);
        }
    }

    fn get(&self, number: usize, interface: usize) -> Option<usize> {
        self.files.get(number)?.get(interface).copied()
    }
}

/// A file's name without its directories and its last extension.
fn short(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    }
}
