//! Addresses in options: by name or group of the address book, or written out.

use crate::profile::{Profile, Wrong};
use crate::terminal;
use anyhow::Result;
use p1::names::ORName;
use p772::OrDescriptor;
use ua::Recipient;
use ua::book::Book;
use ua::form::{self, Requests};

/// The address book, and the addresses of the profiles.
pub(crate) struct Names {
    book: Book,
    known: Vec<ORName>,
}

impl Names {
    /// Reads the book beside the profiles.
    pub(crate) fn load(profile: &Profile) -> Result<Names> {
        let book = Book::read(&profile.book()).map_err(|error| Wrong(error.to_string()))?;
        let known = profile.known.iter().filter_map(|text| form::address(text).ok()).collect();
        Ok(Names { book, known })
    }

    /// The addresses that a text stands for.
    pub(crate) fn all(&self, text: &str) -> Result<Vec<ORName>> {
        let found = self.book.resolve(text);
        found.map_err(|error| {
            let (error, text) = (error.to_string(), format!("{text:?}"));
            // Most of its errors name it.
            let named = if error.contains(&text) { String::new() } else { format!(" {text}") };
            Wrong(format!("recipient{named}: {error}")).into()
        })
    }

    /// The one address that a text stands for.
    pub(super) fn one(&self, text: &str) -> Result<ORName> {
        Ok(self.book.resolve_one(text).map_err(|error| Wrong(error.to_string()))?)
    }

    /// Users of a heading.
    pub(super) fn descriptors(&self, texts: &[String]) -> Result<Vec<OrDescriptor>> {
        let mut all = Vec::new();
        for text in texts {
            all.extend(self.all(text)?.into_iter().map(OrDescriptor::from));
        }
        Ok(all)
    }

    /// Recipients with their requests: `ops[rn,nrn]`; those in `every` are asked of all.
    pub(super) fn recipients(&self, texts: &[String], every: &[String]) -> Result<Vec<Recipient>> {
        let mut all: Vec<Recipient> = Vec::new();
        for text in texts {
            let (address, words) = form::bracketed(text)?;
            let mut requests = Requests::default();
            for word in every.iter().map(String::as_str).chain(words) {
                requests.add(word).map_err(|error| Wrong(error.to_string()))?;
            }
            for name in self.all(address)? {
                if !all.iter().any(|known| known.name == name) {
                    all.push(Recipient { name, requests });
                }
            }
        }
        Ok(all)
    }

    /// Warns of recipients whose domain may be a mistake.
    pub(super) fn warn(&self, recipients: &[Recipient]) {
        let names: Vec<ORName> = recipients.iter().map(|r| r.name.clone()).collect();
        for doubt in self.book.doubts(&names, &self.known) {
            terminal::report_error(&format!("warning: {doubt}"));
        }
    }
}
