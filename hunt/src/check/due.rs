//! What is due to whom.

use super::{Check, Due};
use crate::world::{Message, Profile};

/// The path of a copy so far.
#[derive(Clone, Debug)]
struct Path {
    /// The site where it is.
    at: usize,
    /// The lists in its history.
    lists: Vec<usize>,
    /// The links that it has passed.
    links: Vec<usize>,
}

/// Where a message is led on to.
#[derive(Default)]
struct Followed {
    /// Who gets a copy, and its path.
    copies: Vec<(usize, Path)>,
    /// The recipients that copies have on their ways.
    names: Vec<usize>,
}

impl Check<'_> {
    /// The outcome of a message for a recipient: a user, or one who does not exist.
    pub(super) fn due(&self, message: &Message, to: usize) -> Due {
        let acted = self.play.acted.contains(&message.number);
        if self.play.deletes(message.number) {
            return Due::Anything;
        }
        let due = match to >= self.world.users() {
            true => Due::NonDelivery,
            false => self.over(message, message.from / 2, to / 2),
        };
        if acted { Due::Either } else { due }
    }

    /// The outcome of the way from one site to another.
    pub(super) fn over(&self, message: &Message, from: usize, to: usize) -> Due {
        let way = self.world.way(from, to);
        let is_1984 = |link: &usize| self.world.links[*link].profile == Profile::P1Of1984;
        let has_no_form = !message.is_p2 && way.iter().any(is_1984);
        if has_no_form { Due::NonDelivery } else { Due::Delivery }
    }

    /// The outcomes of a message for those to whom it is not addressed, but who get it: the members of its lists, those
    /// to whom it is redirected, and its alternate recipient.
    pub(super) fn indirect(&self, message: &Message) -> Vec<(usize, Due)> {
        let acted = self.play.acted.contains(&message.number);
        let due = |(user, path): (usize, Path)| {
            let is_1984 = |link: &usize| self.world.links[*link].profile == Profile::P1Of1984;
            // P1 of 1984 has neither histories nor alternates.
            let passes_1984 = path.links.iter().any(is_1984);
            let due = match (self.play.deletes(message.number), acted || passes_1984) {
                (true, _) => Due::Anything,
                (_, true) => Due::Either,
                (false, false) => Due::Delivery,
            };
            (user, due)
        };
        self.followed(message).copies.into_iter().map(due).collect()
    }

    /// Where a message is led on to.
    fn followed(&self, message: &Message) -> Followed {
        let mut all = Followed::default();
        let begin = Path { at: message.from / 2, lists: Vec::new(), links: Vec::new() };
        for to in message.to.iter().filter(|to| self.world.leads_on(**to)) {
            self.follow(&begin, *to, &mut all);
        }
        if let Some(alternate) = message.alternate {
            let there = self.gone(&begin, self.world.users());
            self.follow(&there, alternate, &mut all);
        }
        all
    }

    /// How many copies of a message have this name for their recipient at some time: each may be reported.
    pub(super) fn named(&self, message: &Message, to: usize) -> usize {
        let direct = message.to.contains(&to) && !self.world.leads_on(to);
        let names = self.followed(message).names;
        usize::from(direct) + names.iter().filter(|name| **name == to).count()
    }

    /// The path once it has led to a recipient.
    fn gone(&self, path: &Path, to: usize) -> Path {
        let mut path = path.clone();
        let there = self.world.site_of(to);
        path.links.extend(self.world.way(path.at, there));
        path.at = there;
        path
    }

    /// All who get a copy for a recipient, each with the path of the copy.
    fn follow(&self, path: &Path, to: usize, all: &mut Followed) {
        let mut path = self.gone(path, to);
        all.names.push(to);
        match (self.world.list(to), self.world.redirected_to(to)) {
            // It is in the history already: a loop ends there.
            (Some((number, _)), _) if path.lists.contains(&number) => {}
            (Some((number, list)), _) => {
                path.lists.push(number);
                list.members.iter().for_each(|member| self.follow(&path, *member, all));
            }
            (None, Some(other)) => self.follow(&path, other, all),
            (None, None) if to < self.world.users() => all.copies.push((to, path)),
            (None, None) => {}
        }
    }

    /// How many copies of a message a user is entitled to.
    pub(super) fn copies(&self, message: &Message, user: usize) -> usize {
        let is_direct = |to: &&usize| **to == user && self.world.redirected_to(user).is_none();
        let direct = message.to.iter().filter(is_direct).count();
        direct + self.indirect(message).iter().filter(|(who, _)| *who == user).count()
    }

    /// Whether reports about a message are not checked: of lists, redirections and alternates.
    pub(super) fn is_indirect(&self, message: &Message) -> bool {
        message.alternate.is_some() || message.to.iter().any(|to| self.world.leads_on(*to))
    }
}
