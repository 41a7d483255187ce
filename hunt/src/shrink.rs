//! A world that fails is made smaller, as long as it fails in the same way.

use crate::check::Broken;
use crate::outcome::run;
use crate::world::World;
use std::collections::BTreeSet;
use testkit::real::Mutant;

/// Leaves out messages, events, lists, redirections and sites, first many and then one by one, for so many runs at most.
pub fn shrink(world: &World, mutant: Option<Mutant>, most: u32) -> World {
    let kinds = |world: &World| -> BTreeSet<Broken> {
        run(world, mutant, false).failures.iter().map(|failure| failure.broken).collect()
    };
    let wanted = kinds(world);
    let fails = |world: &World| !kinds(world).is_disjoint(&wanted);
    let (mut smallest, mut runs) = (world.clone(), 0);
    loop {
        let parts = |world: &World| {
            world.messages.len()
                + world.events.len()
                + world.lists.len()
                + world.redirected.len()
                + world.sites.len()
        };
        let before = parts(&smallest);
        cut(&mut smallest, &mut runs, most, &fails, |world| &mut world.events);
        cut(&mut smallest, &mut runs, most, &fails, |world| &mut world.messages);
        recipients(&mut smallest, &mut runs, most, &fails);
        sites(&mut smallest, &mut runs, most, &fails);
        if parts(&smallest) == before || runs >= most {
            return smallest;
        }
    }
}

fn cut<T: Clone>(
    smallest: &mut World,
    runs: &mut u32,
    most: u32,
    fails: &impl Fn(&World) -> bool,
    part: fn(&mut World) -> &mut Vec<T>,
) {
    let mut length = part(smallest).len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        while at < part(smallest).len() && *runs < most {
            let mut smaller = smallest.clone();
            let all = part(&mut smaller);
            all.drain(at..(at + length).min(all.len()));
            *runs += 1;
            if fails(&smaller) {
                *smallest = smaller;
            } else {
                at += length;
            }
        }
        length = if length == 1 { 0 } else { length.div_ceil(2) };
    }
}

/// Leaves out what nothing else in the world needs: a site, a list that is the last one, a redirection.
fn sites(smallest: &mut World, runs: &mut u32, most: u32, fails: &impl Fn(&World) -> bool) {
    let mut part = 0;
    while *runs < most {
        let ways = [
            smallest.without_site(part),
            smallest.without_redirection(part),
            smallest.without_list(part),
            smallest.without_link(part),
        ];
        let smaller = ways.into_iter().flatten().find(|smaller| {
            *runs += 1;
            fails(smaller)
        });
        match smaller {
            Some(smaller) => *smallest = smaller,
            None if part >= 8 => return,
            None => part += 1,
        }
    }
}

fn recipients(smallest: &mut World, runs: &mut u32, most: u32, fails: &impl Fn(&World) -> bool) {
    for message in 0..smallest.messages.len() {
        for recipient in (0..smallest.messages[message].to.len()).rev() {
            if smallest.messages[message].to.len() < 2 || *runs >= most {
                break;
            }
            let mut smaller = smallest.clone();
            smaller.messages[message].to.remove(recipient);
            *runs += 1;
            if fails(&smaller) {
                *smallest = smaller;
            }
        }
    }
}
