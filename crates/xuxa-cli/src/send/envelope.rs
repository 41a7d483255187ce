//! What the options of `xuxa send` put into the envelope.

use crate::profile::Wrong;
use crate::send::heading::parse_time;
use crate::send::names::Names;
use anyhow::{Result, bail};
use base::Utc;
use clap::Args;
use p1::SecurityLabel;
use std::time::Duration;
use ua::EnvelopeOptions;

/// What the envelope carries.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Envelope")]
pub(super) struct EnvelopeArgs {
    /// Security label: policy and classification, as 1.3.26.0.4406.0.5.1/restricted
    #[arg(long, value_name = "POLICY/CLASS")]
    label: Option<SecurityLabel>,
    /// Deliver it no sooner: 260504030201Z, 040302ZMAY26, 2026-05-04T03:02Z, +2h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    defer_until: Option<Utc>,
    /// Deliver it no later: afterwards the MTS reports non-delivery
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    latest: Option<Utc>,
    /// Have a report of non-delivery return the content
    #[arg(long)]
    return_content: bool,
    /// Who gets it if a recipient cannot: an O/R address or a name of the address book
    #[arg(long, value_name = "ADDRESS")]
    alternate: Option<String>,
    /// If an address is nobody's, the recipient's MTA may give it to its own alternate recipient
    #[arg(long)]
    alternate_allowed: bool,
    /// Do not follow a redirection that a recipient has set: report non-delivery
    #[arg(long)]
    no_reassignment: bool,
}

/// So much may a time be before now: the clocks of two machines differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

impl EnvelopeArgs {
    /// Refuses times that cannot be meant.
    pub(super) fn check(&self, now: Utc) -> Result<()> {
        let least = now.0.saturating_sub(u64::try_from(CLOCKS_DIFFER.as_micros()).unwrap_or(0));
        for (option, time) in [("--defer-until", self.defer_until), ("--latest", self.latest)] {
            if let Some(time) = time.filter(|time| time.0 < least) {
                bail!(Wrong(format!(
                    "{option} {} is past: it is {} now (is the clock of this machine right?)",
                    time.to_utc_time(),
                    now.to_utc_time()
                )));
            }
        }
        match (self.defer_until, self.latest) {
            (Some(sooner), Some(later)) if later < sooner => bail!(Wrong(format!(
                "--latest {} is before --defer-until {}: it could never be delivered",
                later.to_utc_time(),
                sooner.to_utc_time()
            ))),
            _ => Ok(()),
        }
    }

    /// What they are for the envelope; addresses are looked up in the book.
    pub(super) fn options(&self, names: &Names) -> Result<EnvelopeOptions> {
        let alternate = self.alternate.as_deref().map(|text| names.one(text)).transpose()?;
        Ok(EnvelopeOptions {
            label: self.label.clone(),
            deferred_until: self.defer_until,
            latest_delivery: self.latest,
            return_content: self.return_content,
            alternate,
            alternate_allowed: self.alternate_allowed,
            no_reassignment: self.no_reassignment,
            exempted: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_past_by_what_clocks_differ() {
        let now = Utc::from_utc_time(b"260504030201Z").unwrap();
        let check = |defer: Option<&[u8]>, latest: Option<&[u8]>| {
            let time = |text: &[u8]| Utc::from_utc_time(text).unwrap();
            let (defer_until, latest) = (defer.map(time), latest.map(time));
            EnvelopeArgs { defer_until, latest, ..EnvelopeArgs::default() }.check(now)
        };
        assert!(check(None, None).is_ok());
        assert!(check(Some(b"260504030101Z"), None).is_ok());
        assert!(check(Some(b"260504030100Z"), None).unwrap_err().is::<Wrong>());
        assert!(check(None, Some(b"250504030201Z")).unwrap_err().is::<Wrong>());
        assert!(check(Some(b"260504040000Z"), Some(b"260504050000Z")).is_ok());
        assert!(check(Some(b"260504050000Z"), Some(b"260504040000Z")).is_err());
    }
}
