//! The one reader of SETs: members in any order (X.690 8.11). Unknown members are handed back,
//! repeated ones are refused, missing ones are named.

use super::{Element, Error, Fault, Field, Tag};

/// Reads a SET. `take` gets each member in the order of the encoding and returns whether the type
/// has a member of this tag; the result holds the others, in their order.
///
/// # Errors
/// A primitive or malformed SET; those of `take`.
pub fn read_set<'a>(
    e: &Element<'a>,
    mut take: impl FnMut(&Element<'a>) -> Result<bool, Error>,
) -> Result<Vec<Element<'a>>, Error> {
    let mut members = e.children()?;
    let mut unknown = Vec::new();
    while let Some(member) = members.next()? {
        if !take(&member)? {
            unknown.push(member);
        }
    }
    Ok(unknown)
}

/// As [`read_set`], and no tag comes twice, whether the type has it or not. Tag numbers above 31,
/// which no type of ours has, may.
///
/// # Errors
/// As [`read_set`]; a tag that came before.
pub fn read_distinct_set<'a>(
    e: &Element<'a>,
    mut take: impl FnMut(&Element<'a>) -> Result<bool, Error>,
) -> Result<Vec<Element<'a>>, Error> {
    let mut seen = 0_u128;
    read_set(e, |member| {
        let Tag { class, number } = member.tag;
        if number < 32 {
            let bit = 1 << (class as u32 * 32 + number);
            if seen & bit != 0 {
                return Err(Fault::Unexpected(member.tag).into());
            }
            seen |= bit;
        }
        take(member)
    })
}

/// One member of a SET: its name in the standard, and its value once it was read.
#[derive(Clone, Debug)]
pub struct Member<T> {
    name: &'static str,
    value: Option<T>,
}

impl<T> Member<T> {
    /// A member of this name, which has not come.
    pub const fn new(name: &'static str) -> Member<T> {
        Member { name, value: None }
    }

    /// Reads the value of a member that comes once. Always `true`, for [`read_set`].
    ///
    /// # Errors
    /// Those of `read`, which name the member unless a field inside is named; the member came before,
    /// of which the tag is named.
    pub fn once<'a>(
        &mut self,
        e: &Element<'a>,
        read: impl FnOnce(&Element<'a>) -> Result<T, Error>,
    ) -> Result<bool, Error> {
        match self.value.replace(read(e).field(self.name)?) {
            None => Ok(true),
            Some(_) => Err(Fault::Unexpected(e.tag).into()),
        }
    }

    /// Reads the value of a member of which the last counts, or of one alternative of a member that
    /// is a CHOICE. Always `true`, for [`read_set`].
    ///
    /// # Errors
    /// Those of `read`, which name the member unless a field inside is named.
    pub fn last<'a>(
        &mut self,
        e: &Element<'a>,
        read: impl FnOnce(&Element<'a>) -> Result<T, Error>,
    ) -> Result<bool, Error> {
        self.value = Some(read(e).field(self.name)?);
        Ok(true)
    }

    /// The value of an OPTIONAL member.
    pub fn optional(self) -> Option<T> {
        self.value
    }

    /// The value of a mandatory member, which has this tag.
    ///
    /// # Errors
    /// It is missing; the error names it.
    pub fn required(self, tag: Tag) -> Result<T, Error> {
        self.value.ok_or(Fault::Missing(tag)).field(self.name)
    }
}

impl<T: Default> Member<T> {
    /// The value of a member with a DEFAULT.
    pub fn or_default(self) -> T {
        self.value.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Tag = Tag::context(0);
    const B: Tag = Tag::context(1);

    fn read(octets: &[u8], distinct: bool) -> Result<(i64, Option<i64>, usize), Error> {
        let (mut a, mut b) = (Member::new("a"), Member::new("b"));
        let e = Element::parse(octets)?;
        let take = |m: &Element<'_>| match m.tag {
            A => a.once(m, Element::integer),
            B => b.last(m, Element::integer),
            _ => Ok(false),
        };
        let unknown = if distinct { read_distinct_set(&e, take) } else { read_set(&e, take) };
        let unknown = unknown.field("set")?.len();
        Ok((a.required(A)?, b.optional(), unknown))
    }

    #[test]
    fn members_come_in_any_order_and_unknown_ones_are_handed_back() {
        assert_eq!(read(&[0x31, 6, 0x80, 1, 5, 0x81, 1, 6], false), Ok((5, Some(6), 0)));
        assert_eq!(read(&[0x31, 6, 0x81, 1, 6, 0x80, 1, 5], true), Ok((5, Some(6), 0)));
        let unknown = [0x31, 9, 0x82, 1, 0, 0x80, 1, 5, 0x82, 1, 0];
        assert_eq!(read(&unknown, false), Ok((5, None, 2)));
        let twice = Error { fault: Fault::Unexpected(Tag::context(2)), field: Some("set") };
        assert_eq!(read(&unknown, true), Err(twice));
        // Tags above 31 may come twice.
        let high = [0x31, 11, 0x9f, 32, 1, 0, 0x80, 1, 5, 0x9f, 32, 1, 0];
        assert_eq!(read(&high, true), Ok((5, None, 2)));
    }

    #[test]
    fn members_that_come_twice_are_missing_or_malformed_are_named() {
        let failed = |octets: &[u8]| {
            let e = read(octets, false).unwrap_err();
            (e.field, e.fault)
        };
        assert_eq!(failed(&[0x31, 6, 0x80, 1, 5, 0x80, 1, 6]), (Some("set"), Fault::Unexpected(A)));
        assert_eq!(
            read(&[0x31, 9, 0x80, 1, 5, 0x81, 1, 6, 0x81, 1, 7], false),
            Ok((5, Some(7), 0))
        );
        assert_eq!(failed(&[0x31, 3, 0x81, 1, 5]), (Some("a"), Fault::Missing(A)));
        assert_eq!(failed(&[0x31, 2, 0x81, 0]).0, Some("b"));
        assert_eq!(failed(&[0x31, 3, 0x80, 2, 5]), (Some("set"), Fault::Truncated));
        assert_eq!(failed(&[0x11, 0]).0, Some("set"));
    }
}
