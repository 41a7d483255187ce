//! How an edge answers what is read: the same over every store.

use super::{Found, Read};
use crate::query::{Ask, Row};
use base::Precedence;
use engine::ItemSource;
use engine::journal::MailboxId;

/// Answers a question. Blocks as the store does.
pub fn answer(source: &(impl ItemSource + ?Sized), read: &Read) -> Found {
    let found = match read {
        Read::Open { mailbox, names } => opened(source, *mailbox, names),
        Read::Items(ask) => rows(source, ask).map(Found::Items),
    };
    found.unwrap_or_else(|error| Found::Failed(error.to_string()))
}

fn opened<S: ItemSource + ?Sized>(
    source: &S,
    id: MailboxId,
    names: &[String; 2],
) -> Result<Found, S::Error> {
    let [totals, registrations] = names;
    let values = [source.value(totals)?, source.value(registrations)?];
    let mut counts = [0; Precedence::ALL.len()];
    for (count, precedence) in counts.iter_mut().zip(Precedence::ALL) {
        *count = source.count(id, precedence)?;
    }
    Ok(Found::Opened { values, counts })
}

fn rows<S: ItemSource + ?Sized>(source: &S, ask: &Ask) -> Result<Vec<Row>, S::Error> {
    let ids = match ask {
        Ask::Items { mailbox, precedence, after, limit } => {
            let items = source.items(*mailbox, *precedence, *after, *limit)?;
            let row = |(number, record)| Row { precedence: *precedence, number, record };
            return Ok(items.into_iter().map(row).collect());
        }
        Ask::Find(ids) => ids,
    };
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        for precedence in Precedence::ALL.into_iter().rev() {
            if let Some(record) = source.item(precedence, *id)? {
                rows.push(Row { precedence, number: id.number, record });
                break;
            }
        }
    }
    Ok(rows)
}
