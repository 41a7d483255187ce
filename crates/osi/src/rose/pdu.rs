//! ROSE APDUs (X.229 clause 9) that are sent: what comes before a streamed argument.

use crate::api::Problem;
use base::ber::{Header, Length, Tag, Writer, universal as u};

/// Problems this layer finds by itself (X.229 9.1): kind and value.
pub(crate) mod problem {
    use crate::api::Problem;
    /// GeneralProblem unrecognisedAPDU.
    pub(crate) const UNRECOGNISED_APDU: Problem = Problem { kind: 0, value: 0 };
    /// GeneralProblem mistypedAPDU.
    pub(crate) const MISTYPED_APDU: Problem = Problem { kind: 0, value: 1 };
    /// InvokeProblem duplicateInvocation.
    pub(crate) const DUPLICATE_INVOCATION: Problem = Problem { kind: 1, value: 0 };
    /// InvokeProblem unrecognisedOperation.
    pub(crate) const UNRECOGNISED_OPERATION: Problem = Problem { kind: 1, value: 1 };
    /// InvokeProblem resourceLimitation.
    pub(crate) const RESOURCE_LIMITATION: Problem = Problem { kind: 1, value: 3 };
    /// InvokeProblem unrecognisedLinkedID.
    pub(crate) const UNRECOGNISED_LINKED_ID: Problem = Problem { kind: 1, value: 5 };
    /// InvokeProblem linkedResponseUnexpected.
    pub(crate) const LINKED_RESPONSE_UNEXPECTED: Problem = Problem { kind: 1, value: 6 };
    /// ReturnResultProblem unrecognisedInvocation.
    pub(crate) const RESULT_UNRECOGNISED: Problem = Problem { kind: 2, value: 0 };
    /// ReturnErrorProblem unrecognisedInvocation.
    pub(crate) const ERROR_UNRECOGNISED: Problem = Problem { kind: 3, value: 0 };
    /// ReturnErrorProblem unrecognisedError.
    pub(crate) const UNRECOGNISED_ERROR: Problem = Problem { kind: 3, value: 2 };

    /// Writes the problem in the standard's words; those that this layer does not send by number.
    pub(crate) fn describe(problem: Problem, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = known(problem) {
            return f.write_str(name);
        }
        let list = match problem.kind {
            0 => "GeneralProblem",
            1 => "InvokeProblem",
            2 => "ReturnResultProblem",
            3 => "ReturnErrorProblem",
            other => return write!(f, "problem [{other}] {}", problem.value),
        };
        write!(f, "{list} {}", problem.value)
    }

    /// The problem in the standard's words.
    pub(crate) fn name(problem: Problem) -> &'static str {
        known(problem).unwrap_or("a problem found by its user")
    }

    fn known(problem: Problem) -> Option<&'static str> {
        Some(match problem {
            UNRECOGNISED_APDU => "GeneralProblem unrecognisedAPDU",
            MISTYPED_APDU => "GeneralProblem mistypedAPDU",
            DUPLICATE_INVOCATION => "InvokeProblem duplicateInvocation",
            UNRECOGNISED_OPERATION => "InvokeProblem unrecognisedOperation",
            RESOURCE_LIMITATION => "InvokeProblem resourceLimitation",
            UNRECOGNISED_LINKED_ID => "InvokeProblem unrecognisedLinkedID",
            LINKED_RESPONSE_UNEXPECTED => "InvokeProblem linkedResponseUnexpected",
            RESULT_UNRECOGNISED => "ReturnResultProblem unrecognisedInvocation",
            ERROR_UNRECOGNISED => "ReturnErrorProblem unrecognisedInvocation",
            UNRECOGNISED_ERROR => "ReturnErrorProblem unrecognisedError",
            _ => return None,
        })
    }
}

fn integers(values: &[i64]) -> Vec<u8> {
    let mut w = Writer::new();
    for value in values {
        w.integer(u::INTEGER, *value);
    }
    w.into_vec()
}

/// The header of an APDU whose members are `inner` and `streamed` further octets, and `inner`.
fn open(tag: Tag, inner: &[u8], streamed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Header::write(tag, true, Length::Definite(inner.len() as u64 + streamed), &mut out);
    out.extend_from_slice(inner);
    out
}

/// ROIV, `[1]`, up to the argument.
pub(crate) fn invoke(invoke: i64, operation: i64, argument: u64) -> Vec<u8> {
    open(Tag::context(1), &integers(&[invoke, operation]), argument)
}

/// RORS, `[2]`, up to the result; without one (of 0 octets) there is no operation value either.
pub(crate) fn result(invoke: i64, operation: i64, result: u64) -> Vec<u8> {
    let mut inner = integers(&[invoke]);
    if result > 0 {
        inner.extend(open(u::SEQUENCE, &integers(&[operation]), result));
    }
    open(Tag::context(2), &inner, result)
}

/// ROER, `[3]`, up to the parameter.
pub(crate) fn error(invoke: i64, error: i64, parameter: u64) -> Vec<u8> {
    open(Tag::context(3), &integers(&[invoke, error]), parameter)
}

/// RORJ, `[4]`.
pub(crate) fn reject(invoke: Option<i64>, problem: Problem) -> Vec<u8> {
    let mut w = Writer::new();
    w.constructed(Tag::context(4), |w| {
        match invoke {
            Some(invoke) => w.integer(u::INTEGER, invoke),
            None => w.null(u::NULL),
        }
        w.integer(Tag::context(u32::from(problem.kind)), problem.value);
    });
    w.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_count_what_is_streamed() {
        assert_eq!(invoke(1, 3, 2), [0xa1, 8, 2, 1, 1, 2, 1, 3]);
        assert_eq!(result(1, 3, 2), [0xa2, 10, 2, 1, 1, 0x30, 5, 2, 1, 3]);
        assert_eq!(result(1, 3, 0), [0xa2, 3, 2, 1, 1]);
        assert_eq!(error(1, 7, 0), [0xa3, 6, 2, 1, 1, 2, 1, 7]);
        assert_eq!(reject(None, problem::MISTYPED_APDU), [0xa4, 5, 5, 0, 0x80, 1, 1]);
        assert_eq!(reject(Some(9), problem::RESULT_UNRECOGNISED), [0xa4, 6, 2, 1, 9, 0x82, 1, 0]);
    }
}
