//! The parameters of the errors, read and written.

use super::{
    AttributeProblem, AttributeProblemItem, AutoActionRequestProblem, DeleteProblem,
    ExtensionProblem, FetchRestriction, FetchRestrictionItem, MessageGroupProblem, ModifyProblem,
    MsError, RangeProblem, RegistrationProblem, SequenceNumberProblem, ServiceProblem, error_name,
};
use crate::entry::{EntryClass, SequenceNumber};
use crate::extension::MsExtension;
use crate::limits::{MAX_PROBLEMS, MAX_SEQUENCE_NUMBERS};
use crate::registration::{MessageGroupName, RegistrationTypes, number};
use crate::value::Value;
use crate::wire::{self, GENERAL_STRING, explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal as u};
use p1::p3::{AccessError, SecurityProblem};

/// A problem's number and what it is about: `[0]` and `[1]` of a SET.
fn read_pair<P, T>(
    e: &Element<'_>,
    problem: impl Fn(i64) -> P,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<(P, T), Error> {
    let (mut number_of, mut about) = (Member::new("problem"), Member::new("subject of a problem"));
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => number_of.once(m, wire::integer),
        1 => about.once(m, &read),
        _ => Ok(false),
    })?;
    Ok((problem(number_of.required(PROBLEM)?), about.required(SUBJECT)?))
}

fn write_pair(w: &mut Writer, problem: i64, about: impl FnOnce(&mut Writer)) {
    w.constructed(u::SET, |w| {
        wire::write_integer(w, 0, problem);
        about(w);
    });
}

const PROBLEM: Tag = Tag::context(0);
const SUBJECT: Tag = Tag::context(1);

/// `[n] SET OF` problems, which is the one mandatory member of a parameter.
fn read_problems<T>(
    e: &Element<'_>,
    n: u32,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut problems = Member::new("problems");
    read_set(require(e, u::SET)?, |m| match number(m) == n {
        true => problems.once(m, |m| wire::list(m, u::SET, MAX_PROBLEMS, &read)),
        false => Ok(false),
    })?;
    problems.required(Tag::context(n))
}

fn write_problems<T>(w: &mut Writer, n: u32, all: &[T], write: impl Fn(&T, &mut Writer)) {
    w.constructed(u::SET, |w| wire::write_list(w, n, u::SET, all, write));
}

impl AttributeProblemItem {
    fn read(e: &Element<'_>) -> Result<AttributeProblemItem, Error> {
        let (mut problem, mut kind) = (Member::new("problem"), Member::new("type"));
        let mut value = Member::new("value");
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => problem.once(m, wire::integer),
            1 => kind.once(m, wire::oid),
            2 => value.once(m, Value::keep_inner),
            _ => Ok(false),
        })?;
        Ok(AttributeProblemItem {
            problem: AttributeProblem(problem.required(PROBLEM)?),
            attribute_type: kind.required(SUBJECT)?,
            value: value.optional(),
        })
    }

    fn write(&self, w: &mut Writer) {
        write_pair(w, self.problem.0, |w| {
            wire::write_oid(w, 1, &self.attribute_type);
            if let Some(value) = &self.value {
                explicit(w, 2, |w| value.write(w));
            }
        });
    }
}

impl FetchRestrictionItem {
    fn read(e: &Element<'_>) -> Result<FetchRestrictionItem, Error> {
        let (mut problem, mut restriction) = (Member::new("problem"), Member::new("restriction"));
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => restriction.last(m, |m| wire::oid(m).map(FetchRestriction::ContentType)),
            1 => restriction.last(m, |m| wire::oids(m, u::SET).map(FetchRestriction::Eits)),
            2 => restriction.last(m, |m| wire::integer(m).map(FetchRestriction::AttributeLength)),
            3 => problem.once(m, wire::integer),
            _ => Ok(false),
        })?;
        Ok(FetchRestrictionItem {
            problem: problem.required(Tag::context(3))?,
            restriction: restriction.required(PROBLEM)?,
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_integer(w, 3, self.problem);
            match &self.restriction {
                FetchRestriction::ContentType(oid) => wire::write_oid(w, 0, oid),
                FetchRestriction::Eits(eits) => {
                    wire::write_list(w, 1, u::SET, eits, wire::write_bare_oid);
                }
                FetchRestriction::AttributeLength(length) => wire::write_integer(w, 2, *length),
            }
        });
    }
}

fn read_delete(e: &Element<'_>) -> Result<MsError, Error> {
    let (mut problems, mut deleted) = (Member::new("problems"), Member::new("entries-deleted"));
    let pair = |e: &Element<'_>| read_pair(e, DeleteProblem, SequenceNumber::read_inner);
    let most = MAX_SEQUENCE_NUMBERS;
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => problems.once(m, |m| wire::list(m, u::SET, MAX_PROBLEMS, pair)),
        1 => deleted.once(m, |m| wire::list(m, u::SET, most, SequenceNumber::read)),
        _ => Ok(false),
    })?;
    Ok(MsError::Delete {
        problems: problems.required(PROBLEM)?,
        entries_deleted: deleted.or_default(),
    })
}

fn read_range(e: &Element<'_>) -> Result<MsError, Error> {
    let mut problem = Member::new("problem");
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => problem.once(m, wire::integer),
        _ => Ok(false),
    })?;
    Ok(MsError::Range(RangeProblem(problem.required(PROBLEM)?)))
}

fn read_service(e: &Element<'_>) -> Result<MsError, Error> {
    let mut problem = Member::new("problem");
    let mut information = Member::new("supplementary-information");
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => problem.once(m, wire::integer),
        1 => information.once(m, |m| wire::text(m, GENERAL_STRING)),
        _ => Ok(false),
    })?;
    let problem = ServiceProblem(problem.required(PROBLEM)?);
    Ok(MsError::Service { problem, information: information.optional() })
}

fn read_extension(e: &Element<'_>) -> Result<MsError, Error> {
    let problem = match number(e) {
        0 => ExtensionProblem::Problem(MsExtension::read(&e.only_child()?)?),
        1 => ExtensionProblem::Unknown(wire::oid(e)?),
        _ => return Err(Fault::Unexpected(e.tag).into()),
    };
    Ok(MsError::Extension(problem))
}

fn read_register_ms(e: &Element<'_>) -> Result<MsError, Error> {
    let (mut problem, mut types) = (Member::new("problem"), Member::new("registration-type"));
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => problem.once(m, |m| wire::inner(m, u::ENUMERATED)?.integer()),
        1 => types.once(m, RegistrationTypes::read_inner),
        _ => Ok(false),
    })?;
    let problem = RegistrationProblem(problem.required(PROBLEM)?);
    Ok(MsError::RegisterMs { problem, types: types.required(SUBJECT)? })
}

fn read_modify(e: &Element<'_>) -> Result<MsError, Error> {
    let (mut modified, mut failing) =
        (Member::new("entries-modified"), Member::new("failing-entry"));
    let (mut at, mut problem) = (Member::new("modification-number"), Member::new("problem"));
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => modified.once(m, |m| crate::operation::numbers(m, u::SEQUENCE)),
        1 => failing.once(m, SequenceNumber::read_inner),
        2 => at.once(m, wire::integer),
        3 => problem.once(m, wire::integer),
        _ => Ok(false),
    })?;
    Ok(MsError::Modify {
        entries_modified: modified.or_default(),
        failing_entry: failing.required(Tag::context(1))?,
        modification_number: at.required(Tag::context(2))?,
        problem: ModifyProblem(problem.required(Tag::context(3))?),
    })
}

fn read_entry_class(e: &Element<'_>) -> Result<MsError, Error> {
    let (mut class, mut problem) = (Member::new("entry-class"), Member::new("problem"));
    read_set(require(e, u::SET)?, |m| match number(m) {
        0 => class.once(m, EntryClass::read_inner),
        1 => problem.once(m, wire::bits),
        _ => Ok(false),
    })?;
    let entry_class = class.required(PROBLEM)?;
    Ok(MsError::EntryClass { entry_class, problem: problem.required(SUBJECT)? })
}

impl MsError {
    /// From a code and the parameter that came with it, if any. Codes below 21 are P3's.
    ///
    /// # Errors
    /// A parameter that is missing or not of the error's type; the error is named, or the field.
    pub fn read(code: i64, parameter: Option<&Element<'_>>) -> Result<MsError, Error> {
        let read: fn(&Element<'_>) -> Result<MsError, Error> = match code {
            21 => |e| read_problems(e, 0, AttributeProblemItem::read).map(MsError::Attribute),
            22 => |e| {
                let pair = |e: &Element<'_>| read_pair(e, AutoActionRequestProblem, wire::oid);
                read_problems(e, 0, pair).map(MsError::AutoActionRequest)
            },
            23 => read_delete,
            24 => {
                |e| read_problems(e, 0, FetchRestrictionItem::read).map(MsError::FetchRestriction)
            }
            25 => read_range,
            26 => |e| Ok(MsError::Security(SecurityProblem(require(e, u::INTEGER)?.integer()?))),
            27 => read_service,
            28 => |e| {
                let entry = SequenceNumber::read_inner;
                let pair = |e: &Element<'_>| read_pair(e, SequenceNumberProblem, entry);
                read_problems(e, 1, pair).map(MsError::SequenceNumber)
            },
            29 => return Ok(MsError::InvalidParameters),
            30 => |e| {
                let (problem, name) =
                    read_pair(e, MessageGroupProblem, MessageGroupName::read_inner)?;
                Ok(MsError::MessageGroup { problem, name })
            },
            31 => read_extension,
            32 => read_register_ms,
            33 => read_modify,
            34 => read_entry_class,
            _ => return AccessError::read(code, parameter).map(MsError::Access),
        };
        parameter.ok_or(Fault::Truncated.into()).and_then(read).field(error_name(code))
    }

    /// Appends the error's parameter. Nothing for an unknown error without one.
    pub fn write_parameter(&self, w: &mut Writer) {
        match self {
            MsError::Attribute(all) => write_problems(w, 0, all, AttributeProblemItem::write),
            MsError::AutoActionRequest(all) => write_problems(w, 0, all, |(problem, kind), w| {
                write_pair(w, problem.0, |w| wire::write_oid(w, 1, kind));
            }),
            MsError::Delete { problems, entries_deleted } => w.constructed(u::SET, |w| {
                wire::write_list(w, 0, u::SET, problems, |(problem, entry), w| {
                    write_pair(w, problem.0, |w| entry.write_as(w, 1));
                });
                wire::write_some(w, 1, u::SET, entries_deleted, SequenceNumber::write);
            }),
            MsError::FetchRestriction(all) => {
                write_problems(w, 0, all, FetchRestrictionItem::write);
            }
            MsError::Range(problem) => write_pair(w, problem.0, |_| {}),
            MsError::Security(problem) => w.integer(u::INTEGER, problem.0),
            MsError::Service { problem, information } => write_pair(w, problem.0, |w| {
                if let Some(information) = information {
                    wire::write_text(w, 1, GENERAL_STRING, information);
                }
            }),
            MsError::SequenceNumber(all) => write_problems(w, 1, all, |(problem, entry), w| {
                write_pair(w, problem.0, |w| entry.write_as(w, 1));
            }),
            MsError::InvalidParameters => w.null(u::NULL),
            MsError::MessageGroup { problem, name } => {
                write_pair(w, problem.0, |w| explicit(w, 1, |w| name.write(w)));
            }
            MsError::Access(error) => error.write_parameter(w),
            other => other.write_parameter_of_1994(w),
        }
    }

    fn write_parameter_of_1994(&self, w: &mut Writer) {
        match self {
            MsError::Extension(ExtensionProblem::Problem(item)) => {
                explicit(w, 0, |w| item.write(w));
            }
            MsError::Extension(ExtensionProblem::Unknown(id)) => wire::write_oid(w, 1, id),
            MsError::RegisterMs { problem, types } => w.constructed(u::SET, |w| {
                explicit(w, 0, |w| w.integer(u::ENUMERATED, problem.0));
                explicit(w, 1, |w| types.write(w));
            }),
            MsError::Modify { entries_modified, failing_entry, modification_number, problem } => {
                w.constructed(u::SET, |w| {
                    wire::write_some(w, 0, u::SEQUENCE, entries_modified, SequenceNumber::write);
                    failing_entry.write_as(w, 1);
                    wire::write_integer(w, 2, *modification_number);
                    wire::write_integer(w, 3, problem.0);
                });
            }
            MsError::EntryClass { entry_class, problem } => w.constructed(u::SET, |w| {
                wire::write_integer(w, 0, entry_class.0);
                wire::write_bits(w, 1, *problem);
            }),
            _ => {}
        }
    }
}
