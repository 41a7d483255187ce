//! `xuxa delete`: by numbers and ranges of them.

use super::{InPart, with_store};
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::Result;
use clap::Args;
use ua::store::Store;

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
    with_store(access, async |store| all(store, &args.numbers).await).await?;
    if json {
        let text = |numbers: &Numbers| match numbers {
            Numbers::One(number) => number.to_string(),
            Numbers::Range(from, to) => format!("{from}-{to}"),
        };
        let deleted: Vec<String> = args.numbers.iter().map(text).collect();
        terminal::print_json(&serde_json::json!({ "deleted": deleted }));
    }
    Ok(0)
}

/// Single numbers first, all or none: a wrong one is found before a range is gone.
async fn all(store: &mut Store, numbers: &[Numbers]) -> Result<()> {
    let one = |numbers: &Numbers| match numbers {
        Numbers::One(number) => Some(*number),
        Numbers::Range(..) => None,
    };
    let mut single: Vec<u32> = numbers.iter().filter_map(one).collect();
    single.sort_unstable();
    single.dedup();
    store.delete(&single).await?;
    let mut is_any_gone = !single.is_empty();
    for numbers in numbers {
        if let Numbers::Range(from, to) = numbers {
            let deleted = store.delete_range(*from, *to).await;
            deleted.map_err(|error| {
                let error = anyhow::Error::from(error);
                match is_any_gone {
                    true => error.context(InPart(format!("{from}-{to} are not deleted"))),
                    false => error,
                }
            })?;
            is_any_gone = true;
        }
    }
    Ok(())
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
