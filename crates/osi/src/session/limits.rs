//! Ranges of the parameters our user hands in (X.225 8.3).

use super::pdu::{MAX_SERIAL, MAX_USER_DATA, MAX_USER_DATA_1};
use super::service::{ConnectionReference, Request};
use crate::lower::Misuse;
use bytes::Bytes;

const SELECTOR: usize = 16;
const ACTIVITY: usize = 6;

/// Refuses what does not fit its field.
pub(super) fn check(request: &Request) -> Result<(), Misuse> {
    match request {
        Request::Connect(connect) => {
            let name = "S-CONNECT.request";
            selector(name, connect.calling_selector.as_ref())?;
            selector(name, connect.called_selector.as_ref())?;
            reference(name, &connect.reference)?;
            user_data(name, &connect.user_data)
        }
        Request::Accept(accept) => {
            selector("S-CONNECT.response", accept.responding_selector.as_ref())?;
            user_data("S-CONNECT.response", &accept.user_data)
        }
        Request::Refuse(refuse) => user_data("S-CONNECT.response", &refuse.user_data),
        Request::PleaseTokens { user_data: data } => user_data("S-TOKEN-PLEASE.request", data),
        Request::ActivityStart { activity } => {
            at_most("S-ACTIVITY-START.request", "activity identifier", activity, ACTIVITY)
        }
        Request::ActivityResume(resume) => {
            let name = "S-ACTIVITY-RESUME.request";
            at_most(name, "activity identifier", &resume.activity, ACTIVITY)?;
            at_most(name, "old activity identifier", &resume.old_activity, ACTIVITY)?;
            if resume.serial >= MAX_SERIAL {
                return Err(out_of_range(name, "serial number", "X.225 8.3.30"));
            }
            resume.old_reference.as_ref().map_or(Ok(()), |old| reference(name, old))
        }
        Request::Release { user_data: data } => user_data("S-RELEASE.request", data),
        Request::ReleaseResponse { user_data: data } => user_data("S-RELEASE.response", data),
        Request::Abort { user_data: data } => user_data("S-U-ABORT.request", data),
        Request::Data { .. }
        | Request::GiveTokens
        | Request::GiveControl
        | Request::ActivityInterrupt(_)
        | Request::ActivityInterruptResponse
        | Request::ActivityDiscard(_)
        | Request::ActivityDiscardResponse
        | Request::ActivityEnd
        | Request::ActivityEndResponse
        | Request::MinorSync
        | Request::MinorSyncResponse { .. }
        | Request::ExceptionReport(_) => Ok(()),
    }
}

/// Refuses what version 1 has no room for. An abort goes without its user data there.
pub(super) fn check_version_1(request: &Request) -> Result<(), Misuse> {
    let (name, data) = match request {
        Request::Accept(accept) => ("S-CONNECT.response", &accept.user_data),
        Request::Refuse(refuse) => ("S-CONNECT.response", &refuse.user_data),
        Request::PleaseTokens { user_data } => ("S-TOKEN-PLEASE.request", user_data),
        Request::Release { user_data } => ("S-RELEASE.request", user_data),
        Request::ReleaseResponse { user_data } => ("S-RELEASE.response", user_data),
        _ => return Ok(()),
    };
    at_most(name, "user data in version 1", data, MAX_USER_DATA_1)
}

fn out_of_range(request: &'static str, parameter: &str, clause: &'static str) -> Misuse {
    Misuse { request, why: format!("{parameter} out of range"), clause }
}

fn at_most(
    request: &'static str,
    parameter: &str,
    value: &Bytes,
    most: usize,
) -> Result<(), Misuse> {
    if value.len() <= most { Ok(()) } else { Err(out_of_range(request, parameter, "X.225 8.3")) }
}

fn selector(request: &'static str, value: Option<&Bytes>) -> Result<(), Misuse> {
    value.map_or(Ok(()), |value| at_most(request, "session selector", value, SELECTOR))
}

fn reference(request: &'static str, value: &ConnectionReference) -> Result<(), Misuse> {
    at_most(request, "SS-user reference", &value.user, 64)?;
    at_most(request, "common reference", &value.common, 64)?;
    at_most(request, "additional reference information", &value.additional, 4)
}

fn user_data(request: &'static str, value: &Bytes) -> Result<(), Misuse> {
    at_most(request, "user data", value, MAX_USER_DATA)
}
