//! What is left at a site.

use super::{Broken, Check};
use crate::world::SITES;
use base::AssociationId;
use node::ChannelId;
use node::event::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::Disk;
use testkit::Events;

impl Check<'_> {
    /// A channel never has more associations that it opened than its configuration has, and one that is kept for what is
    /// above all in transfer. Each transfer that is recovered has an association of its own.
    pub(super) fn associations(&mut self, site: usize) {
        let s = &self.play.network.sites[site];
        let mut open: BTreeMap<ChannelId, BTreeSet<AssociationId>> = BTreeMap::new();
        let mut deaths = s.deaths.iter().copied().peekable();
        let mut most: BTreeMap<ChannelId, usize> = BTreeMap::new();
        for (at, event) in &s.events {
            while deaths.next_if(|death| death <= at).is_some() {
                open.clear();
            }
            let Some((channel, id)) = event.channel.zip(event.association) else { continue };
            let its = open.entry(channel).or_default();
            match event.kind {
                Kind::AssociationOpened if event.detail == "as initiator" => {
                    its.insert(id);
                    let so_far = most.entry(channel).or_default();
                    *so_far = its.len().max(*so_far);
                }
                Kind::AssociationLost | Kind::AssociationReleased => _ = its.remove(&id),
                _ => {}
            }
        }
        for (channel, most) in most {
            let Some(link) = self.link_of(site, channel.peer) else { continue };
            let bound = link.associations as usize + 1;
            if most > bound {
                let what = format!(
                    "at {}: {most} associations of {channel:?} at once, {bound} are the bound",
                    SITES[site]
                );
                self.fail(Broken::Wasted, what);
            }
        }
    }

    /// Nothing is left at a site, on the disk or in memory.
    pub(super) fn site(&mut self, site: usize) {
        let s = &self.play.network.sites[site];
        let name = SITES[site];
        let left = self.play.queued(site);
        if s.is_down || !left.is_empty() {
            self.fail(Broken::Stuck, format!("{name} is down: {}, left: {left:?}", s.is_down));
        }
        let files = s.store.disk.list(Path::new("bodies")).unwrap_or_default();
        // A part that was taken up after the loss of power waits on its association, until the next transfer on it or its
        // end.
        let kept = files.iter().filter(|(name, _)| name.ends_with(".notes")).count();
        let held = s.node.holds();
        if (held.arrivals, held.pending, held.keys) != (kept, 0, 0) {
            self.fail(Broken::Stuck, format!("at {name}: {held:?}"));
        }
        for refused in &s.store.refused {
            self.fail(Broken::Refused, format!("at {name}: {refused}"));
        }
        for problem in &s.store.problems {
            self.fail(Broken::Damaged, format!("at {name}: {problem}"));
        }
        if s.count(Kind::Damaged) > 0 {
            self.fail(Broken::Damaged, format!("at {name}: {:?}", s.details(Kind::Damaged)));
        }
        let Some(store) = s.store.opened().filter(|_| left.is_empty()) else { return };
        let bodies = store.bodies(None, 99).map_or(99, |bodies| bodies.len());
        let has_items = self.world.sites[site].has_mailbox;
        if bodies > 0 || store.contents().memory_held() > 0 || files.len() > 2 * kept && !has_items
        {
            let what = format!("at {name}: {bodies} contents, files {files:?}");
            self.fail(Broken::Orphaned, what);
        }
        if !store.damage().is_none() {
            self.fail(Broken::Damaged, format!("at {name}: {:?}", store.damage()));
        }
    }
}
