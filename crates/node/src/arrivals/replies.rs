//! Answers to the operations that a user invoked.

use crate::api::event::{Kind, LogLevel};
use crate::arrivals::Arrivals;
use crate::arrivals::submission::RESOURCE_LIMITATION;
use crate::context::Context;
use base::AssociationId;
use base::ber::Writer;
use bytes::Bytes;
use engine::SubmitError;
use osi::api::{AbortReason, Payload, Problem, Request};
use p1::p3::AccessError;

const MISTYPED_ARGUMENT: Problem = Problem { kind: 1, value: 2 };

impl Arrivals {
    pub(crate) fn answer(
        &self,
        cx: &mut Context,
        id: AssociationId,
        invoke: i64,
        operation: i64,
        result: Bytes,
    ) {
        self.answered(cx, id);
        cx.request(id, Request::Result { invoke, operation, result: Payload::whole(result) });
    }

    pub(crate) fn answered(&self, cx: &mut Context, id: AssociationId) {
        if let Some(p3) = cx.associations.p3_mut(id) {
            p3.unanswered = p3.unanswered.saturating_sub(1);
        }
    }

    pub(crate) fn refuse_submission(
        &self,
        cx: &mut Context,
        id: AssociationId,
        invoke: i64,
        error: &SubmitError,
    ) {
        cx.event(LogLevel::Warning, Kind::SubmissionRefused, error.to_string()).association(id);
        self.answer_error(cx, id, invoke, &error.access_error());
    }

    pub(crate) fn answer_error(
        &self,
        cx: &mut Context,
        id: AssociationId,
        invoke: i64,
        error: &AccessError,
    ) {
        let mut writer = Writer::new();
        error.write_parameter(&mut writer);
        self.answered(cx, id);
        let parameter = writer.into_vec().into();
        cx.request(id, Request::Error { invoke, error: error.code(), parameter });
    }

    pub(crate) fn reject(
        &self,
        cx: &mut Context,
        id: AssociationId,
        invoke: i64,
        problem: Problem,
    ) {
        self.answered(cx, id);
        cx.request(id, Request::Reject { invoke: Some(invoke), problem });
    }

    /// An argument that could not be read, is beyond our limits, or could not be stored.
    pub(crate) fn refuse_malformed(
        &self,
        cx: &mut Context,
        id: AssociationId,
        invoke: i64,
        reason: AbortReason,
    ) {
        match reason {
            AbortReason::InvalidParameter => self.reject(cx, id, invoke, MISTYPED_ARGUMENT),
            // What a submission control's permissible-maximum-content-length is for
            // (X.411 8.2.2.2): no other error of message-submission is about size.
            AbortReason::PermanentProblem => {
                self.answer_error(cx, id, invoke, &AccessError::ControlViolated);
            }
            // message-submission has no error for an MTA that cannot for now.
            _ => self.reject(cx, id, invoke, RESOURCE_LIMITATION),
        }
    }
}
