//! delete, summarize, and a change of credentials.

use super::call::Call;
use super::{Find, Store, StoreError};
use base::ber::{Element, Oid};
use p1::bind::{Credentials, Password};
use p1::p3::ChangeCredentials;
use p7::attributes::AttributeType;
use p7::operation::{
    DELETE, DeleteArgument, DeleteItems, DeleteResult, RegisterMsArgument, SUMMARIZE,
    SummarizeArgument, SummarizeResult,
};
use p7::selector::Range;
use p7::{EntryClass, Selector, SequenceNumber, Value};

/// Entries in one delete. A store of ours takes them in one operation whatever their number.
const MAX_AT_ONCE: usize = 1_000;

/// How many entries there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The selected entries.
    pub count: u64,
    /// Their lowest and highest number; `None` where there are none.
    pub span: Option<(u32, u32)>,
    /// For each attribute asked for, in this order, how many entries have which value.
    pub attributes: Vec<Counted>,
}

/// How many entries have which value of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Those that do not have the attribute.
    pub absent: u64,
    /// A value, and how many have it.
    pub present: Vec<(Value, u64)>,
}

impl Store {
    /// Deletes these entries. Of a part of up to 1,000 of them all are deleted, or, if one of them does not exist, none.
    ///
    /// # Errors
    /// [`StoreError::Operation`], or what ended the association. Earlier parts are deleted then.
    pub async fn delete(&mut self, numbers: &[u32]) -> Result<(), StoreError> {
        for part in numbers.chunks(MAX_AT_ONCE) {
            let numbers = part.iter().copied().map(SequenceNumber).collect();
            self.delete_items(DeleteItems::SequenceNumbers(numbers)).await?;
        }
        Ok(())
    }

    /// Deletes the entries with numbers from `first` to `last`, as many as there are.
    ///
    /// # Errors
    /// [`StoreError::Operation`], or what ended the association.
    pub async fn delete_range(&mut self, first: u32, last: u32) -> Result<(), StoreError> {
        let (from, to) = (Some(SequenceNumber(first)), Some(SequenceNumber(last)));
        let range = Some(Range::SequenceNumber { from, to });
        self.delete_items(DeleteItems::Selector(Selector { range, ..Selector::default() })).await
    }

    async fn delete_items(&mut self, items: DeleteItems) -> Result<(), StoreError> {
        let argument =
            DeleteArgument { entry_class: EntryClass::DELIVERY, items, extensions: Vec::new() };
        let octets = self.call(Call::retrieval("delete", DELETE, |w| argument.write(w))).await?;
        let malformed = StoreError::malformed("delete");
        let element = Element::parse(&octets).map_err(&malformed)?;
        DeleteResult::read(&element).map_err(malformed).map(drop)
    }

    /// Counts the entries found, and how many have each value of these attributes. The store reads all of them.
    ///
    /// # Errors
    /// [`StoreError::Operation`], or what ended the association.
    pub async fn summarize(
        &mut self,
        find: &Find,
        attributes: &[AttributeType],
    ) -> Result<Summary, StoreError> {
        let requests: Vec<Oid> = attributes.iter().map(AttributeType::oid).collect();
        let selector = Selector { filter: find.filter(), ..Selector::default() };
        let result = self.summarize_as(selector, requests).await?;
        Ok(Summary {
            count: unsigned(result.count),
            span: result.span.map(|span| (span.lowest.0, span.highest.0)),
            attributes: result.summaries.iter().map(counted).collect(),
        })
    }

    /// Counts the entries found among those from a number on, to another one or the end. It changes no status.
    ///
    /// # Errors
    /// As [`Store::summarize`].
    pub async fn summarize_range(
        &mut self,
        find: &Find,
        from: u32,
        to: Option<u32>,
    ) -> Result<Summary, StoreError> {
        let number = |number: u32| SequenceNumber(number);
        let range =
            Range::SequenceNumber { from: (from > 0).then(|| number(from)), to: to.map(number) };
        let range = (from > 0 || to.is_some()).then_some(range);
        let selector = Selector { range, filter: find.filter(), ..Selector::default() };
        let result = self.summarize_as(selector, Vec::new()).await?;
        Ok(Summary {
            count: unsigned(result.count),
            span: result.span.map(|span| (span.lowest.0, span.highest.0)),
            attributes: Vec::new(),
        })
    }

    /// Asks for what costs the store nothing: whether it still answers.
    ///
    /// # Errors
    /// The association ended.
    pub async fn check(&mut self) -> Result<(), StoreError> {
        let last = Some(SequenceNumber(i32::MAX as u32));
        let range = Some(Range::SequenceNumber { from: last, to: last });
        match self.summarize_as(Selector { range, ..Selector::default() }, Vec::new()).await {
            Ok(_) | Err(StoreError::Operation(_) | StoreError::Rejected(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The highest sequence number of an entry that the store has; 0 if it has none. The store reads at most half of
    /// its entries for it, and changes none.
    ///
    /// # Errors
    /// As [`Store::summarize`].
    pub async fn highest(&mut self) -> Result<u32, StoreError> {
        for bit in (0..31).rev() {
            let from = Some(SequenceNumber(1 << bit));
            let range = Some(Range::SequenceNumber { from, to: None });
            let selector = Selector { range, ..Selector::default() };
            if let Some(span) = self.summarize_as(selector, Vec::new()).await?.span {
                return Ok(span.highest.0);
            }
        }
        Ok(0)
    }

    async fn summarize_as(
        &mut self,
        selector: Selector,
        summary_requests: Vec<Oid>,
    ) -> Result<SummarizeResult, StoreError> {
        let argument =
            SummarizeArgument { selector, summary_requests, ..SummarizeArgument::default() };
        let call = Call::retrieval("summarize", SUMMARIZE, |w| argument.write(w));
        let octets = self.call(call).await?;
        let malformed = StoreError::malformed("summarize");
        let element = Element::parse(&octets).map_err(&malformed)?;
        SummarizeResult::read(&element).map_err(malformed)
    }

    /// Changes the password of this user, for later binds.
    ///
    /// # Errors
    /// [`StoreError::Operation`] with [`p7::MsError::Access`]: the old password is not this, or the new one is not
    /// acceptable; or what ended the association.
    pub async fn change_password(
        &mut self,
        old: &Password,
        new: &Password,
    ) -> Result<(), StoreError> {
        let change = ChangeCredentials {
            old: Credentials::Simple(old.clone()),
            new: Credentials::Simple(new.clone()),
        };
        self.register(&RegisterMsArgument {
            change_credentials: Some(change),
            ..RegisterMsArgument::default()
        })
        .await
    }
}

fn counted(summary: &p7::operation::Summary) -> Counted {
    let present = summary.present.iter();
    Counted {
        absent: summary.absent.map_or(0, unsigned),
        present: present.map(|value| (value.value.clone(), unsigned(value.count))).collect(),
    }
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
