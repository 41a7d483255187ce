//! Classification: the precedence at which a message, probe or report is scheduled.
//!
//! The envelope decides: priority and STANAG 4406's priority-level-qualifier together give six
//! levels. Without the qualifier, policy selects one of a priority's two levels; a relay never
//! adds a qualifier. Only if policy permits is the heading read, and only to decide what the
//! envelope leaves open.

use base::Precedence;
use bytes::Bytes;
use p1::content_type::ContentType;
use p1::extension::Extensions;
use p1::flags::Priority;
use p1::grade::{self, PriorityLevelQualifier};
use serde::{Deserialize, Serialize};

/// How the precedence of a message is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Policy {
    /// Levels of messages without the qualifier.
    pub no_qualifier: NoQualifier,
    /// Whether the heading of a message without the qualifier may be read (content types P22, P2
    /// and P772).
    pub peek_content: bool,
    /// Level of reports made by other MTAs, whose envelope has no priority.
    pub report_precedence: Precedence,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            no_qualifier: NoQualifier::default(),
            peek_content: false,
            report_precedence: Precedence::Immediate,
        }
    }
}

/// The level of each priority without the qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NoQualifier {
    /// urgent.
    pub urgent: Precedence,
    /// normal.
    pub normal: Precedence,
    /// non-urgent.
    pub non_urgent: Precedence,
}

impl Default for NoQualifier {
    fn default() -> NoQualifier {
        NoQualifier {
            urgent: Precedence::Flash,
            normal: Precedence::Priority,
            non_urgent: Precedence::Routine,
        }
    }
}

impl Policy {
    /// The level of a message. `prefix` is the beginning of its content, as far as available.
    pub fn message(
        &self,
        priority: Priority,
        extensions: &Extensions,
        content_type: &ContentType,
        prefix: &Bytes,
    ) -> Precedence {
        // A malformed qualifier counts as absent; a relay still passes it on.
        if let Ok(Some(qualifier)) = PriorityLevelQualifier::from_extensions(extensions) {
            return grade::join(priority, qualifier);
        }
        self.peek(content_type, prefix).unwrap_or(match priority {
            Priority::Urgent => self.no_qualifier.urgent,
            Priority::Normal => self.no_qualifier.normal,
            Priority::NonUrgent => self.no_qualifier.non_urgent,
        })
    }

    fn peek(&self, content_type: &ContentType, prefix: &Bytes) -> Option<Precedence> {
        let known = [ContentType::P22, ContentType::P2, ContentType::p772()];
        if !self.peek_content || !known.contains(content_type) {
            return None;
        }
        p772::peek_precedence(prefix)?.level()
    }

    /// The level of a probe: that of a message of normal priority, as a probe has no priority.
    pub fn probe(&self) -> Precedence {
        self.no_qualifier.normal
    }

    /// The level of a report made here: that of its subject, at least Priority.
    pub fn own_report(&self, subject: Precedence) -> Precedence {
        subject.max(Precedence::Priority)
    }

    /// The level of a report made by another MTA. The subject's level is not available: its entry
    /// is deleted after the transfer, and the keys kept against duplicates include the path, so
    /// the identifier alone does not find them.
    pub fn relayed_report(&self) -> Precedence {
        self.report_precedence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p1::extension::Dialect;

    fn with(qualifier: Option<PriorityLevelQualifier>) -> Extensions {
        let field = qualifier.map(|q| q.extension(Dialect::Modern).unwrap());
        Extensions(field.into_iter().collect())
    }

    #[test]
    fn every_priority_and_qualifier() {
        use PriorityLevelQualifier::{High, Low};
        let policy = Policy::default();
        let mut table = String::new();
        for priority in [Priority::NonUrgent, Priority::Normal, Priority::Urgent] {
            for qualifier in [Some(Low), Some(High), None] {
                let extensions = with(qualifier);
                let level = policy.message(priority, &extensions, &ContentType::P22, &Bytes::new());
                table += &format!("{priority:?} {qualifier:?}: {level}\n");
            }
        }
        insta::assert_snapshot!(table, @r"
        NonUrgent Some(Low): deferred
        NonUrgent Some(High): routine
        NonUrgent None: routine
        Normal Some(Low): priority
        Normal Some(High): immediate
        Normal None: priority
        Urgent Some(Low): flash
        Urgent Some(High): override
        Urgent None: flash
        ");
    }

    #[test]
    fn the_heading_counts_only_where_allowed_and_the_envelope_is_silent() {
        // [0] mm { SET { [15] { SEQUENCE { primary-precedence, 5 } } } }
        let heading: &[u8] = &[
            0xa0, 0x13, 0x31, 0x11, 0xaf, 0x0f, 0x30, 0x0d, 0x06, 0x08, 0x2b, 26, 0, 0xa2, 0x36, 0,
            2, 0, 0x02, 0x01, 0x05,
        ];
        let prefix = Bytes::from_static(heading);
        let p772 = ContentType::p772();
        let level = |policy: Policy, extensions: &Extensions, content_type: &ContentType| {
            policy.message(Priority::Normal, extensions, content_type, &prefix)
        };
        let silent = with(None);
        let peeking = Policy { peek_content: true, ..Policy::default() };
        assert_eq!(level(Policy::default(), &silent, &p772), Precedence::Priority);
        assert_eq!(level(peeking, &silent, &p772), Precedence::Override);
        assert_eq!(level(peeking, &silent, &ContentType::EDI), Precedence::Priority);
        let high = with(Some(PriorityLevelQualifier::High));
        assert_eq!(level(peeking, &high, &p772), Precedence::Immediate);
    }

    #[test]
    fn reports_are_at_least_priority_where_we_make_them() {
        let policy = Policy::default();
        let levels = Precedence::ALL.map(|p| policy.own_report(p).name()).join(" ");
        assert_eq!(levels, "priority priority priority immediate flash override");
        assert_eq!(policy.relayed_report(), Precedence::Immediate);
    }
}
