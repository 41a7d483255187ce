//! The heading extensions of X.420 itself (Annex A; object identifiers 2.6.1.5.n).

use crate::heading::{Heading, decode_all};
use crate::military::RawExtension;
use crate::oids;
use base::ber::{Element, Error, Writer, universal as u};

/// Numbers of the extensions.
const INCOMPLETE_COPY: u8 = 0;
const LANGUAGES: u8 = 1;
const AUTO_SUBMITTED: u8 = 2;

/// Auto-submitted: how far a person took part in the submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoSubmitted {
    /// not-auto-submitted, 0.
    No,
    /// auto-generated, 1.
    Generated,
    /// auto-replied, 2.
    Replied,
}

impl AutoSubmitted {
    fn new(value: i64) -> Option<AutoSubmitted> {
        Some(match value {
            0 => AutoSubmitted::No,
            1 => AutoSubmitted::Generated,
            2 => AutoSubmitted::Replied,
            _ => return None,
        })
    }

    fn value(self) -> i64 {
        match self {
            AutoSubmitted::No => 0,
            AutoSubmitted::Generated => 1,
            AutoSubmitted::Replied => 2,
        }
    }
}

impl Heading {
    /// Takes one extension in; `false` if it is unknown or repeated, or its value does not decode:
    /// then the caller keeps it raw.
    pub(crate) fn absorb_civil(&mut self, extension: &RawExtension) -> bool {
        let n = oids::civil_extension_number(extension.kind.content());
        let value = extension.value.as_deref();
        match (n, value) {
            (Some(INCOMPLETE_COPY), None | Some([5, 0])) => {
                !std::mem::replace(&mut self.incomplete_copy, true)
            }
            (Some(LANGUAGES), Some(value)) if self.languages.is_empty() => {
                self.languages = languages(value).unwrap_or_default();
                !self.languages.is_empty()
            }
            (Some(AUTO_SUBMITTED), Some(value)) if self.auto_submitted.is_none() => {
                let number = Element::parse(value).and_then(|e| e.integer()).ok();
                self.auto_submitted = number.and_then(AutoSubmitted::new);
                self.auto_submitted.is_some()
            }
            _ => false,
        }
    }

    pub(crate) fn has_civil(&self) -> bool {
        self.incomplete_copy || !self.languages.is_empty() || self.auto_submitted.is_some()
    }

    pub(crate) fn encode_civil(&self, w: &mut Writer) {
        let mut extension = |n: u8, value: &dyn Fn(&mut Writer)| {
            w.constructed(u::SEQUENCE, |w| {
                oids::write_civil_extension(w, n);
                value(w);
            });
        };
        if self.incomplete_copy {
            extension(INCOMPLETE_COPY, &|_| {});
        }
        if !self.languages.is_empty() {
            extension(LANGUAGES, &|w| {
                w.constructed(u::SET, |w| {
                    self.languages.iter().for_each(|code| w.string(u::PRINTABLE_STRING, code));
                });
            });
        }
        if let Some(auto) = self.auto_submitted {
            extension(AUTO_SUBMITTED, &|w| w.integer(u::ENUMERATED, auto.value()));
        }
    }
}

fn languages(value: &[u8]) -> Result<Vec<String>, Error> {
    decode_all(&Element::parse(value)?, |code| code.text())
}
