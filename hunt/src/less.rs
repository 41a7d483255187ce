//! A world without one of its parts, if nothing else in it needs that.

use crate::world::{What, World};
use std::mem;

impl World {
    /// Without a redirection.
    pub(crate) fn without_redirection(&self, number: usize) -> Option<World> {
        let mut world = self.clone();
        (number < world.redirected.len()).then(|| _ = world.redirected.remove(number))?;
        Some(world)
    }

    /// Without a list, to which nobody sends and which is in no other.
    pub(crate) fn without_list(&self, number: usize) -> Option<World> {
        let name = self.users() + 1 + number;
        let others = self.lists.iter().enumerate().filter(|(other, _)| *other != number);
        let in_lists = others.flat_map(|(_, list)| &list.members);
        let all = self.messages.iter().flat_map(|message| &message.to).chain(in_lists);
        let is_used = all.into_iter().any(|to| *to == name);
        if is_used || number >= self.lists.len() {
            return None;
        }
        let mut world = self.clone();
        world.lists.remove(number);
        world.rename(|to| if to > name { to - 1 } else { to });
        Some(world)
    }

    /// Without a link that no event concerns, where another path leads to every site.
    pub(crate) fn without_link(&self, number: usize) -> Option<World> {
        let concerns = |what: &What| link_of(&mut what.clone()).is_some_and(|link| *link == number);
        if number >= self.links.len() || self.has(concerns) {
            return None;
        }
        let mut world = self.clone();
        world.links.remove(number);
        for event in &mut world.events {
            if let Some(link) = link_of(&mut event.what).filter(|link| **link > number) {
                *link -= 1;
            }
        }
        world.is_whole().then_some(world)
    }

    /// Without a site that nobody sends to or from, that has no list, and that no event concerns.
    pub(crate) fn without_site(&self, site: usize) -> Option<World> {
        let is_there = |to: &usize| *to != self.users() && self.site_of(*to) == site;
        let sends = self.messages.iter().any(|message| {
            is_there(&message.from)
                || message.to.iter().any(is_there)
                || message.alternate.as_ref().is_some_and(is_there)
        });
        let mut listed = self.lists.iter().flat_map(|list| &list.members);
        let lists = self.lists.iter().any(|list| list.site == site) || listed.any(is_there);
        let mut redirected = self.redirected.iter();
        let redirects = redirected.any(|(from, to)| is_there(from) || is_there(to));
        // The last one has the recipient who does not exist.
        let has_nobody = site + 1 == self.sites.len();
        let concerns = |what: &What| {
            let mut what = what.clone();
            let link = link_of(&mut what).and_then(|link| self.links.get(*link));
            let touches = link.is_some_and(|link| link.ends.0 == site || link.ends.1 == site);
            let is_user = matches!(what, What::Cancel(user) if user / 2 == site);
            touches || is_user || site_of(&mut what).is_some_and(|of| *of == site)
        };
        if self.sites.len() < 3 || sends || lists || redirects || has_nobody || self.has(concerns) {
            return None;
        }
        let mut world = self.clone();
        world.sites.remove(site);
        let lower = |of: &mut usize| *of -= usize::from(*of > site);
        let touches = |ends: (usize, usize)| ends.0 == site || ends.1 == site;
        let stay = self.links.iter().enumerate().filter(|(_, link)| !touches(link.ends));
        let stay: Vec<usize> = stay.map(|(number, _)| number).collect();
        world.links.retain(|link| !touches(link.ends));
        for link in &mut world.links {
            lower(&mut link.ends.0);
            lower(&mut link.ends.1);
            link.only_caller.iter_mut().for_each(lower);
        }
        for event in &mut world.events {
            match link_of(&mut event.what) {
                Some(link) => *link = stay.iter().position(|other| other == link)?,
                None => site_of(&mut event.what).into_iter().for_each(lower),
            }
            if let What::Cancel(user) = &mut event.what
                && *user / 2 > site
            {
                *user -= 2;
            }
        }
        world.lists.iter_mut().for_each(|list| lower(&mut list.site));
        world.rename(|to| if to / 2 > site { to - 2 } else { to });
        world.is_whole().then_some(world)
    }

    /// Gives users, lists and the one who does not exist other numbers.
    fn rename(&mut self, name: impl Fn(usize) -> usize) {
        let change = |to: &mut usize| *to = name(mem::take(to));
        for message in &mut self.messages {
            change(&mut message.from);
            message.to.iter_mut().for_each(change);
            message.alternate.iter_mut().for_each(change);
        }
        self.lists.iter_mut().for_each(|list| list.members.iter_mut().for_each(change));
        for (from, to) in &mut self.redirected {
            change(from);
            change(to);
        }
    }

    /// Whether every site reaches every other.
    fn is_whole(&self) -> bool {
        let reached = self.ways_to(0).into_iter().filter(Option::is_some).count();
        reached + 1 == self.sites.len()
    }
}

/// The link that an event concerns.
fn link_of(what: &mut What) -> Option<&mut usize> {
    match what {
        What::Cut(link)
        | What::HalfOpen(link, _)
        | What::Down(link, _)
        | What::Slow(link, ..)
        | What::Stalled(link, _)
        | What::Lossy(link, ..)
        | What::Late(link, ..)
        | What::Bleached(link, _)
        | What::Lies(link, _)
        | What::Corrupt(link) => Some(link),
        _ => None,
    }
}

/// The site that an event concerns.
fn site_of(what: &mut What) -> Option<&mut usize> {
    match what {
        What::Partition(site, _)
        | What::Dies(site, _)
        | What::Restart(site)
        | What::Disk(site, ..)
        | What::Hangs(site, _)
        | What::Distrusts(site, _)
        | What::Clock(site, _)
        | What::Drifts(site, _)
        | What::Hold(site)
        | What::Release(site)
        | What::Retry(site)
        | What::Reroute(site)
        | What::Expire(site)
        | What::Delete(site)
        | What::Reload(site) => Some(site),
        _ => None,
    }
}
