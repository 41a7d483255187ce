//! `xuxa delete`: by numbers and ranges of them.

use super::{InPart, with_store};
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use ua::store::{Find, Store, StoreError};

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Numbers in `xuxa list`, and ranges of them: 3-7
    #[arg(required = true, value_name = "NUMBER|FROM-TO", value_parser = parse_numbers)]
    numbers: Vec<Numbers>,
}

/// A number, or a range with both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    One(u32),
    Range(u32, u32),
}

/// Why a text is not a number or a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NumbersError {
    #[error("{0:?} is neither a number, 7, nor a range, 3-7")]
    Form(String),
    #[error("{0:?}: the second number is below the first")]
    Reversed(String),
}

fn parse_numbers(text: &str) -> Result<Numbers, NumbersError> {
    let form = || NumbersError::Form(text.to_owned());
    let number = |text: &str| text.parse::<u32>().ok();
    match text.split_once('-') {
        None => number(text).map(Numbers::One).ok_or_else(form),
        Some((from, to)) => match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to => Ok(Numbers::Range(from, to)),
            (Some(_), Some(_)) => Err(NumbersError::Reversed(text.to_owned())),
            _ => Err(form()),
        },
    }
}

/// Runs `xuxa delete`.
pub(super) async fn delete(access: &MtaAccess<'_>, args: &DeleteArgs, json: bool) -> Result<u8> {
    let mut deleted = Deleted::default();
    let outcome =
        with_store(access, async |store| all(store, &args.numbers, &mut deleted).await).await;
    if json && (outcome.is_ok() || !deleted.what.is_empty()) {
        terminal::print_json(&deleted);
    } else if !json {
        deleted.show();
    }
    outcome.map(|()| 0)
}

/// What is gone.
#[derive(Debug, Default, Serialize)]
struct Deleted {
    /// Numbers and ranges.
    #[serde(rename = "deleted")]
    what: Vec<String>,
    /// Entries in them.
    count: u64,
}

impl Deleted {
    fn add(&mut self, what: String, count: u64) {
        self.what.push(what);
        self.count = self.count.saturating_add(count);
    }

    fn show(&self) {
        let what = self.what.join(", ");
        match self.count {
            0 if self.what.is_empty() => {}
            0 => terminal::print(&format!("the mailbox has no entries in {what}")),
            1 => terminal::print(&format!("deleted: {what} (1 entry)")),
            count => terminal::print(&format!("deleted: {what} ({count} entries)")),
        }
    }
}

/// Single numbers first, all or none: a wrong one is found before a range is gone.
async fn all(store: &mut Store, numbers: &[Numbers], deleted: &mut Deleted) -> Result<()> {
    let one = |numbers: &Numbers| match numbers {
        Numbers::One(number) => Some(*number),
        Numbers::Range(..) => None,
    };
    let mut single: Vec<u32> = numbers.iter().filter_map(one).collect();
    single.sort_unstable();
    single.dedup();
    store.delete(&single).await?;
    single.iter().for_each(|number| deleted.add(number.to_string(), 1));
    for numbers in numbers {
        if let Numbers::Range(from, to) = numbers {
            let gone = range(store, *from, *to).await;
            let count = gone.map_err(|error| {
                let error = anyhow::Error::from(error);
                match deleted.what.is_empty() {
                    false => error.context(InPart(format!("{from}-{to} are not deleted"))),
                    true => error,
                }
            })?;
            deleted.add(format!("{from}-{to}"), count);
        }
    }
    Ok(())
}

/// Deletes a range; returns how many entries it had.
async fn range(store: &mut Store, from: u32, to: u32) -> Result<u64, StoreError> {
    let count = store.summarize_range(&Find::new(), from, Some(to)).await?.count;
    if count > 0 {
        store.delete_range(from, to).await?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges() {
        assert_eq!(parse_numbers("7"), Ok(Numbers::One(7)));
        assert_eq!(parse_numbers("3-7"), Ok(Numbers::Range(3, 7)));
        assert_eq!(parse_numbers("7-3"), Err(NumbersError::Reversed("7-3".to_owned())));
        for bad in ["", "x", "-3", "3-", "1-2-3", "4294967296"] {
            assert!(parse_numbers(bad).is_err(), "{bad}");
        }
    }
}
