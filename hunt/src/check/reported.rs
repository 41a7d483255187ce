//! The reports, and that every message is accounted for.

use super::{Broken, Check, Due, Reported};
use crate::world::{Link, Message, Profile};
use p1::flags::ReportRequest;
use std::collections::{BTreeMap, BTreeSet};
use testkit::Delivered;
use testkit::build::name;

impl Check<'_> {
    /// The reports that users took: none that is foreign, and each once.
    pub(super) fn reports(&mut self, accepted: &BTreeMap<String, usize>) -> Reported {
        let mut reported = Reported::new();
        let addresses: BTreeMap<String, usize> = (0..=self.world.users() + self.world.lists.len())
            .map(|user| (name(&self.world.address(user)).to_string(), user))
            .collect();
        for user in 0..self.world.users() {
            let u = &self.play.network.users[user];
            let mut found: BTreeMap<(usize, usize, bool), Vec<usize>> = BTreeMap::new();
            for (at, (delivered, recipient)) in u.delivered.iter().zip(&u.reported).enumerate() {
                let Delivered::Report { subject, delivered } = delivered else { continue };
                let about = accepted.get(subject).filter(|n| self.message(**n).from == user);
                let to = recipient.as_ref().and_then(|recipient| addresses.get(recipient));
                match about.zip(to) {
                    Some((number, to)) if self.may_be_reported(self.message(*number), *to) => {
                        found.entry((*number, *to, *delivered)).or_default().push(at);
                    }
                    _ => {
                        let what = format!("a report about {subject} for {recipient:?}");
                        self.fail(Broken::Report, what);
                    }
                }
            }
            for ((number, to, delivered), copies) in found {
                let who = self.world.user_name(to);
                let what = format!("the report of {number} for {who}");
                // A copy that is expired while its transfer is in doubt is reported by both sides.
                let entitled = self.named(self.message(number), to);
                if !self.play.acted.contains(&number) {
                    self.at_most(entitled, user, &what, &copies);
                }
                reported.entry((number, to)).or_default().insert(delivered);
            }
        }
        reported
    }

    /// Whether a report about a message may name this one: a recipient, or one to whom it is led on.
    fn may_be_reported(&self, message: &Message, to: usize) -> bool {
        let mut names: Vec<usize> = message.to.iter().copied().chain(message.alternate).collect();
        let mut next = 0;
        while let Some(&name) = names.get(next) {
            next += 1;
            let members = self.world.list(name).map_or(&[][..], |(_, list)| &list.members);
            let led_on: Vec<usize> =
                members.iter().copied().chain(self.world.redirected_to(name)).collect();
            let new = led_on.into_iter().filter(|name| !names.contains(name));
            names.extend(new.collect::<Vec<_>>());
        }
        names.contains(&to)
    }

    /// The reports about those to whom a message is led on: true, those that were asked for, and all of them.
    fn indirect_reports(
        &mut self,
        message: &Message,
        came: &BTreeMap<usize, BTreeSet<usize>>,
        reported: &Reported,
    ) {
        let number = message.number;
        let is_1984 = |link: &Link| link.profile == Profile::P1Of1984;
        // P1 of 1984 has no histories, by which a report finds its way back; of several copies each has its report.
        if self.world.links.iter().any(is_1984) || self.play.acted.contains(&number) {
            return;
        }
        for (user, due) in self.indirect(message) {
            if self.copies(message, user) != 1 {
                continue;
            }
            let reports = reported.get(&(number, user)).cloned().unwrap_or_default();
            let arrived = came.get(&user).is_some_and(|came| came.contains(&number));
            let what = format!("message {number} for {}, led on", self.world.user_name(user));
            if reports.contains(&!arrived) || reports.contains(&true) && !asks(message, true) {
                let what = format!("{what}: reports {reports:?}, arrived is {arrived}");
                self.fail(Broken::Report, what);
            } else if due == Due::Delivery && asks(message, arrived) && !reports.contains(&arrived)
            {
                self.fail(Broken::Report, format!("{what}: no report, arrived is {arrived}"));
            }
        }
    }

    /// Every message is accounted for, for each of its recipients.
    pub(super) fn account(&mut self, came: &BTreeMap<usize, BTreeSet<usize>>, reported: &Reported) {
        let none = BTreeSet::new();
        let world = self.world;
        for message in &world.messages {
            // The reports to the user of a mailbox are items there, which nobody may read.
            let sees_reports = world.reads(message.from)
                || !(message.from % 2 == 1 && world.sites[message.from / 2].has_mailbox);
            let indirect = self.indirect(message);
            for (user, due) in &indirect {
                if *due == Due::Delivery
                    && !came.get(user).is_some_and(|c| c.contains(&message.number))
                {
                    let who = world.user_name(*user);
                    let what =
                        format!("message {} for {who}, by a list or as alternate", message.number);
                    self.fail(Broken::Lost, what);
                }
            }
            if sees_reports && !indirect.is_empty() {
                self.indirect_reports(message, came, reported);
            }
            for to in message.to.iter().filter(|to| !world.leads_on(**to)) {
                let number = message.number;
                let what = format!("message {number} for {}", world.user_name(*to));
                let arrived = came.get(to).is_some_and(|came| came.contains(&number));
                let reports = reported.get(&(number, *to)).unwrap_or(&none);
                let due = self.due(message, *to);
                let acted = self.play.acted.contains(&number);
                let asks = |delivered: bool| asks(message, delivered);
                if arrived && due == Due::NonDelivery && indirect.iter().all(|(user, _)| user != to)
                {
                    self.fail(Broken::Ordered, format!("{what} arrived"));
                }
                if !arrived && due == Due::Delivery {
                    let (broken, how) = match reports.contains(&false) {
                        true => (Broken::GivenUp, "reported as not delivered"),
                        false => (Broken::Lost, "did not arrive"),
                    };
                    self.fail(broken, format!("{what}: {how}"));
                }
                if !sees_reports || self.is_indirect(message) {
                    continue;
                }
                for delivered in reports {
                    // A copy that is expired while its transfer is in doubt is reported, and may have arrived.
                    let in_doubt = acted && !*delivered;
                    if *delivered != arrived && !in_doubt || !asks(*delivered) {
                        let kind = if *delivered { "delivery" } else { "non-delivery" };
                        let what = format!("{what}: a {kind} report, and arrived is {arrived}");
                        self.fail(Broken::Report, what);
                    }
                }
                // An operator ended it while nobody knew whether it had arrived.
                let in_doubt = acted && arrived && reports.contains(&false);
                let missing = asks(arrived) && !reports.contains(&arrived) && !in_doubt;
                if missing && due != Due::Anything {
                    self.fail(Broken::Report, format!("{what}: no report, arrived is {arrived}"));
                }
            }
        }
    }
}

/// Whether its originator wants such a report.
fn asks(message: &Message, delivered: bool) -> bool {
    match message.report {
        ReportRequest::Report => true,
        ReportRequest::NonDelivery => !delivered,
        ReportRequest::None => false,
    }
}
