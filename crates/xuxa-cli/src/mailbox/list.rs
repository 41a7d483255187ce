//! `xuxa list` and `xuxa search`: the entries of the mailbox, none of which is taken out.

use super::line::{self, Line};
use super::with_store;
use crate::profile::Wrong;
use crate::quantity;
use crate::submission::MtaAccess;
use crate::terminal;
use crate::tui::pages::{self, Listing};
use crate::tui::show::row;
use anyhow::Result;
use base::{Precedence, Utc};
use clap::{Args, ValueEnum};
use p1::names::ORName;
use p7::Filter;
use ua::Clock;
use ua::store::{Entry, Find, Order, Pages, Status, Store};
use xuxa_tui::model::{From, Order as DisplayOrder};

/// Entries in one operation.
const PAGE: u32 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// The highest precedence first, and the newest of each; what has no precedence is Routine
    #[default]
    Precedence,
    /// The newest first
    Newest,
    /// As they came: the oldest first
    Arrival,
}

/// Which entries, and how many.
#[derive(Debug, Args)]
struct Which {
    /// Only this precedence; repeat for more
    #[arg(long, value_name = "PRECEDENCE")]
    precedence: Vec<Precedence>,
    /// Only what was neither listed nor read yet
    #[arg(long)]
    new: bool,
    /// Only from this originator: an O/R address, else a part of one
    #[arg(long, value_name = "ADDRESS|TEXT")]
    from: Option<String>,
    /// Only what came since this time, 040302ZMAY26 or 260504030201Z, or in this time until now, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Utc>,
    /// In which order
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// At most so many entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    which: Which,
    /// Only with this text in the subject
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Each of them in the subject, or a SIC, a precedence, or the O/R address of the originator
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    #[command(flatten)]
    which: Which,
}

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a time (260504030201Z) nor how long ago (30min, 2h)")]
struct SinceError(String);

fn parse_since(text: &str) -> Result<Utc, SinceError> {
    let ago = || {
        let ago = quantity::parse_time(text).ok()?;
        let now = Clock::utc().0;
        Some(Utc(now.saturating_sub(u64::try_from(ago.as_micros()).unwrap_or(u64::MAX))))
    };
    let time = ua::form::time(text, Clock::utc()).ok();
    time.or_else(ago).ok_or_else(|| SinceError(text.to_owned()))
}

/// What the store selects, and what only we can: a part of an originator's name.
struct Wanted {
    find: Find,
    from: Option<String>,
}

impl Which {
    fn wanted(&self, find: Find) -> Wanted {
        let mut find = find;
        if !self.precedence.is_empty() {
            find = find.precedences(&self.precedence);
        }
        if self.new {
            find = find.status(Status::New);
        }
        if let Some(time) = self.since {
            find = find.since(time);
        }
        let mut part = None;
        match self.from.as_deref().map(|text| (whole_name(text), text)) {
            Some((Some(name), _)) => find = find.originator(&name),
            Some((None, text)) => part = Some(text.to_lowercase()),
            None => {}
        }
        Wanted { find, from: part }
    }
}

/// An O/R address that names a user: with a country. All else is a part of one.
fn whole_name(text: &str) -> Option<ORName> {
    let name: ORName = text.parse().ok().filter(|_| text.contains('='))?;
    name.address.country.is_some().then_some(name)
}

impl Wanted {
    fn takes(&self, entry: &Entry) -> bool {
        let Some(part) = &self.from else { return true };
        let name = entry.originator.as_ref().map(|name| name.address.to_string().to_lowercase());
        let mut parts = part.split(['/', ';']).map(str::trim);
        name.is_some_and(|name| parts.all(|part| name.contains(part)))
    }
}

/// Runs `xuxa list`.
pub(super) async fn list(access: &MtaAccess<'_>, args: &ListArgs, json: bool) -> Result<u8> {
    let find = match &args.subject {
        Some(text) => Find::new().subject(text),
        None => Find::new(),
    };
    show(access, &args.which, find, json).await
}

/// Runs `xuxa search`.
pub(super) async fn search(access: &MtaAccess<'_>, args: &SearchArgs, json: bool) -> Result<u8> {
    let mut find = Find::new();
    for word in &args.words {
        find = find.and(of_word(word)?);
    }
    show(access, &args.which, find, json).await
}

/// What has the word in its subject, or as a SIC, a precedence or an originator.
fn of_word(word: &str) -> Result<Filter> {
    if word.is_empty() {
        return Err(Wrong("an empty word is in every subject: leave it out".to_owned()).into());
    }
    let mut any = vec![Find::new().subject(word)];
    if p772::SIC_LENGTH.contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric()) {
        any.push(Find::new().sic(word));
    }
    if let Ok(precedence) = word.parse::<Precedence>() {
        any.push(Find::new().precedences(&[precedence]));
    }
    if let Some(name) = whole_name(word) {
        any.push(Find::new().originator(&name));
    }
    Ok(Filter::Or(any.iter().filter_map(Find::filter).collect()))
}

async fn show(access: &MtaAccess<'_>, which: &Which, find: Find, json: bool) -> Result<u8> {
    let wanted = which.wanted(find);
    let (lines, more) =
        with_store(access, async |store| entries(store, &wanted, which).await).await?;
    if json {
        terminal::print_json(&serde_json::json!({ "entries": lines, "more": more }));
    } else if lines.is_empty() {
        terminal::print("no entries");
    } else {
        terminal::print(&line::table(&lines).to_string());
        if more {
            terminal::report_error(&format!("there are more than {}: see --limit", lines.len()));
        }
    }
    Ok(0)
}

/// The entries up to the limit, and whether there are more.
async fn entries(store: &mut Store, wanted: &Wanted, which: &Which) -> Result<(Vec<Line>, bool)> {
    let order = match which.by {
        By::Arrival => return by_arrival(store, wanted, which.limit).await,
        By::Newest => DisplayOrder::Arrival,
        By::Precedence => DisplayOrder::Precedence,
    };
    let limit = which.limit as usize;
    let mut listing = Listing { store, find: wanted.find.clone(), least: None, is_sparing: true };
    // Before they are listed: new ones are not new afterwards.
    let all = listing.store.summarize_range(&wanted.find, 0, None).await?;
    let (mut from, mut lines) = (From::Top, Vec::new());
    loop {
        // Where only we select, a page has to be larger than what is left.
        let count = match &wanted.from {
            None => (PAGE as usize).min(limit - lines.len()),
            Some(_) => PAGE as usize,
        };
        let (page, is_last) = pages::page(&mut listing, order, &from, count, 0).await?;
        for entry in page.iter().filter(|entry| wanted.takes(entry)) {
            if lines.len() == limit {
                return Ok((lines, true));
            }
            lines.push(Line::from(entry));
        }
        match page.last() {
            Some(last) if !is_last => from = From::After(row(last, |_| None)),
            _ => return Ok((lines, false)),
        }
        if lines.len() == limit && wanted.from.is_none() {
            return Ok((lines, all.count > limit as u64));
        }
    }
}

/// As they came, in the order of the store.
async fn by_arrival(store: &mut Store, wanted: &Wanted, limit: u32) -> Result<(Vec<Line>, bool)> {
    // One more shows whether there are more; it is listed too.
    let size = PAGE.min(limit.saturating_add(1));
    let mut pages = Pages::new(&wanted.find, Order::Arrival, size);
    let mut lines = Vec::new();
    loop {
        let page = store.next_page(&mut pages).await?;
        if page.is_empty() {
            return Ok((lines, false));
        }
        for entry in page.iter().filter(|entry| wanted.takes(entry)) {
            if lines.len() == limit as usize {
                return Ok((lines, true));
            }
            lines.push(Line::from(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_it_can_be() {
        let parts = |word: &str| match of_word(word).unwrap() {
            Filter::Or(any) => any.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((parts("fire in"), parts("ABC"), parts("a")), (1, 2, 1));
        // A subject, a SIC, a precedence.
        assert_eq!(parts("flash"), 3);
        assert_eq!(parts("/C=XX/ADMD=NATO/S=OPS"), 2);
        assert!(of_word("").unwrap_err().is::<Wrong>());
    }

    #[test]
    fn a_time_is_one_or_how_long_ago() {
        assert_eq!(parse_since("260504030201Z").unwrap().to_utc_time(), "260504030201Z");
        assert!(parse_since("2h").unwrap() < Clock::utc());
        assert!(parse_since("soon").is_err());
    }

    #[test]
    fn an_originator_is_a_whole_name_or_a_part_of_one() {
        let entry = Entry {
            originator: Some("/C=XX/ADMD=NATO/PRMD=ACT/S=Ops".parse().unwrap()),
            ..Entry::default()
        };
        let wanted = |from: &str| Wanted { find: Find::new(), from: Some(from.to_owned()) };
        assert!(wanted("act").takes(&entry) && wanted("s=ops").takes(&entry));
        assert!(!wanted("naples").takes(&entry) && !wanted("act").takes(&Entry::default()));
        assert!(wanted("s=ops/prmd=act").takes(&entry) && wanted("/s=ops").takes(&entry));
        assert!(!wanted("s=ops; prmd=naples").takes(&entry));
        assert!(whole_name("/C=XX/S=Ops").is_some());
        for part in ["ops", "S=OPS", "/S=OPS", "PRMD=ACT", "S=OPS/PRMD=ACT"] {
            assert!(whole_name(part).is_none(), "{part}");
        }
    }
}
