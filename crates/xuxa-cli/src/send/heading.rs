//! Options of `xuxa send` for the rest of a heading, and what they mean.

#![allow(rustdoc::broken_intra_doc_links, reason = "the comments are the help of the options")]

use crate::send::names::Names;
use anyhow::{Context as _, Result, bail};
use base::{Precedence, Utc};
use clap::{Args, ValueEnum};
use p1::SecurityLabel;
use p1::names::ORName;
use p772::{
    AddressListDesignator, Addressing, Heading, Importance, InformationLabels, MmhsPrecedence,
    OtherRecipient, PilotInformation, Sensitivity,
};
use ua::{Clock, form};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ImportanceArg {
    Low,
    Normal,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SensitivityArg {
    Personal,
    Private,
    CompanyConfidential,
}

/// Fields of X.420, which a civil message has too.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Heading")]
pub(super) struct CivilArgs {
    /// The user who authorised the message; repeat for more
    #[arg(long, value_name = "ADDRESS")]
    authorized_by: Vec<String>,
    /// Where replies are to go; repeat for more
    #[arg(long, value_name = "ADDRESS")]
    reply_to: Vec<String>,
    /// When a reply is due: 260504030201Z, 040302ZMAY26, 2026-05-04T03:02Z, +2h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    reply_by: Option<Utc>,
    /// When the message loses its value
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expires: Option<Utc>,
    /// The message that this one answers: LOCAL*ADDRESS, as `IPM id` shows it
    #[arg(long, value_name = "IPM")]
    in_reply_to: Option<String>,
    /// A message that this one replaces; repeat for more
    #[arg(long, value_name = "IPM")]
    obsoletes: Vec<String>,
    /// A message that this one belongs to; repeat for more
    #[arg(long, value_name = "IPM")]
    related: Vec<String>,
    /// Importance, as the originator sees it
    #[arg(long, value_enum)]
    importance: Option<ImportanceArg>,
    /// Sensitivity
    #[arg(long, value_enum)]
    sensitivity: Option<SensitivityArg>,
    /// Language of the body: a code of ISO 639; repeat for more
    #[arg(long, value_name = "CODE")]
    language: Vec<String>,
    /// Mark it as forwarded automatically
    #[arg(long)]
    auto_forwarded: bool,
    /// Mark it as a copy in which body parts or recipients are missing
    #[arg(long)]
    incomplete_copy: bool,
}

/// Fields of STANAG 4406 alone.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Military heading (STANAG 4406)")]
pub(super) struct MilitaryArgs {
    /// A member of a list to whom the message must not go; repeat for more
    #[arg(long, value_name = "ADDRESS", conflicts_with = "civil")]
    exempt: Vec<String>,
    /// An address list: ADDRESS[action], with info, notify=action|info|both, reply=action|info|both
    #[arg(long, value_name = "LIST", conflicts_with = "civil")]
    address_list: Vec<String>,
    /// A recipient reached by other means: NAME[action] or NAME[info]
    #[arg(long, value_name = "NAME", conflicts_with = "civil")]
    other_recipient: Vec<String>,
    /// Handling instruction; repeat for more
    #[arg(long, value_name = "TEXT", conflicts_with = "civil")]
    handling: Vec<String>,
    /// The originator's own reference
    #[arg(long, value_name = "TEXT", conflicts_with = "civil")]
    originator_reference: Option<String>,
    /// The originator's plain-language address designator
    #[arg(long, value_name = "TEXT", conflicts_with = "civil")]
    plad: Option<String>,
    /// ACP 127 message identifier: routing indicator, station serial number, file time
    #[arg(long, value_name = "TEXT", conflicts_with = "civil")]
    acp127_id: Option<String>,
    /// Codress message: its number
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "civil")]
    codress: Option<i64>,
    /// Pilot forwarding: precedence=flash | to=ADDRESS | label=POLICY/CLASS | handling=TEXT
    #[arg(long, value_name = "PILOT", conflicts_with = "civil")]
    pilot: Vec<String>,
    /// Label in the heading (deprecated by STANAG 4406; --label is the envelope's)
    #[arg(long, value_name = "POLICY/CLASS", conflicts_with = "civil")]
    information_label: Option<SecurityLabel>,
}

/// Reads a time of an option, counted from now where it begins with `+`.
pub(super) fn parse_time(text: &str) -> Result<Utc, form::FormError> {
    form::time(text, Clock::utc())
}

impl CivilArgs {
    /// Adds these fields to a heading.
    pub(super) fn apply(&self, heading: &mut Heading, names: &Names) -> Result<()> {
        let ipms = |texts: &[String]| -> Result<Vec<_>> {
            texts.iter().map(|text| Ok(form::ipm(text)?)).collect()
        };
        heading.authorizing_users = names.descriptors(&self.authorized_by)?;
        heading.reply_recipients = names.descriptors(&self.reply_to)?;
        heading.reply_time = self.reply_by;
        heading.expiry_time = self.expires;
        heading.replied_to = self.in_reply_to.as_deref().map(form::ipm).transpose()?;
        heading.obsoleted = ipms(&self.obsoletes)?;
        heading.related = ipms(&self.related)?;
        heading.importance = match self.importance {
            Some(ImportanceArg::Low) => Importance::Low,
            Some(ImportanceArg::High) => Importance::High,
            Some(ImportanceArg::Normal) | None => Importance::Normal,
        };
        heading.sensitivity = self.sensitivity.map(|sensitivity| match sensitivity {
            SensitivityArg::Personal => Sensitivity::Personal,
            SensitivityArg::Private => Sensitivity::Private,
            SensitivityArg::CompanyConfidential => Sensitivity::CompanyConfidential,
        });
        heading.languages.clone_from(&self.language);
        heading.auto_forwarded = self.auto_forwarded;
        heading.incomplete_copy = self.incomplete_copy;
        Ok(())
    }
}

impl MilitaryArgs {
    /// Members of lists who get no copy: the heading only names them, the envelope excludes them.
    pub(super) fn exempted(&self, names: &Names) -> Result<Vec<ORName>> {
        let mut all: Vec<ORName> = Vec::new();
        for text in &self.exempt {
            for name in names.all(text)? {
                if !all.iter().any(|known| known.same_as(&name)) {
                    all.push(name);
                }
            }
        }
        Ok(all)
    }

    /// Adds these fields to a heading.
    pub(super) fn apply(&self, heading: &mut Heading, names: &Names) -> Result<()> {
        let military = &mut heading.military;
        military.exempted_addresses = names.descriptors(&self.exempt)?;
        military.address_lists =
            self.address_list.iter().map(|l| address_list(l, names)).collect::<Result<_>>()?;
        military.other_recipients =
            self.other_recipient.iter().map(|text| other(text)).collect::<Result<_>>()?;
        military.handling_instructions.clone_from(&self.handling);
        military.originator_reference.clone_from(&self.originator_reference);
        military.originator_plad.clone_from(&self.plad);
        military.acp127_message_identifier.clone_from(&self.acp127_id);
        military.codress = self.codress;
        military.pilot_forwarding =
            self.pilot.iter().map(|text| pilot(text, names)).collect::<Result<_>>()?;
        military.information_labels = self
            .information_label
            .clone()
            .map(|content| InformationLabels { content, ..InformationLabels::default() });
        Ok(())
    }
}

fn address_list(text: &str, names: &Names) -> Result<AddressListDesignator> {
    let (address, words) = form::bracketed(text)?;
    let mut list = AddressListDesignator {
        addressing: Addressing::Primary,
        list: names.one(address)?.into(),
        notification_request: None,
        reply_request: None,
    };
    for word in words {
        let whom = |whom: &str| match whom {
            "action" => Ok(0),
            "info" => Ok(1),
            "both" => Ok(2),
            _ => bail!("{word:?} in {text:?}: use action, info or both"),
        };
        match word.split_once('=') {
            None if word == "action" => list.addressing = Addressing::Primary,
            None if word == "info" => list.addressing = Addressing::Copy,
            Some(("notify", value)) => list.notification_request = Some(whom(value)?),
            Some(("reply", value)) => list.reply_request = Some(whom(value)?),
            _ => bail!("{word:?} in {text:?}: use action, info, notify=WHOM or reply=WHOM"),
        }
    }
    Ok(list)
}

fn other(text: &str) -> Result<OtherRecipient> {
    let (designator, words) = form::bracketed(text)?;
    let addressing = match words.as_slice() {
        [] | ["action"] => Addressing::Primary,
        ["info"] => Addressing::Copy,
        _ => bail!("{text:?}: write NAME[action] or NAME[info]"),
    };
    Ok(OtherRecipient { addressing, designator: designator.to_owned() })
}

fn pilot(text: &str, names: &Names) -> Result<PilotInformation> {
    let mut pilot = PilotInformation::default();
    for part in text.split('|') {
        let (key, value) =
            part.split_once('=').map_or((part.trim(), ""), |(k, v)| (k.trim(), v.trim()));
        match key {
            "precedence" => {
                let level: Precedence =
                    value.parse().with_context(|| format!("in pilot {text:?}"))?;
                pilot.precedence = Some(MmhsPrecedence::from(level));
            }
            "to" => pilot.recipients.extend(names.all(value)?.into_iter().map(Into::into)),
            "label" => pilot.label = Some(value.parse()?),
            "handling" => pilot.handling.push(value.to_owned()),
            _ => bail!("{key:?} in pilot {text:?}: use precedence=, to=, label= and handling="),
        }
    }
    Ok(pilot)
}
