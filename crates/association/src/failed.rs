//! Why an association of ours did not open, or was lost: whose part it was, at which layer, in words.
//!
//! The layers below name themselves at the beginning of what they report (`session: refused, ...`), and the deepest
//! refusal, of RTSE or of the bind, comes with its number.

use base::ber::Element;
use base::{Instant, Now, Utc};
use osi::api::RefuseReason;
use osi::shown;
use p1::bind::MtaBindError;
use status::FailureStatus;

/// What osi puts between the refusal of session and that of RTSE.
const OF_RTSE: &str = "; RTORJ refuseReason ";

/// Whose part a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The peer refused.
    TheyRefused,
    /// The peer aborted, or closed the connection.
    TheyEnded,
    /// What the peer sent is not taken here.
    WeRefused,
    /// Nothing came.
    NoAnswer,
}

impl Part {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Part::TheyRefused => "they refused",
            Part::TheyEnded => "they ended",
            Part::WeRefused => "we refused",
            Part::NoAnswer => "no answer",
        }
    }
}

/// Why an association of ours failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose part it was.
    pub part: Part,
    /// The layer, as `mta try` names it.
    pub layer: &'static str,
    /// In words.
    pub reason: String,
}

/// The standard's words for a refuseReason of RTSE (X.228 9.1).
fn refuse_reason(reason: RefuseReason) -> Option<&'static str> {
    Some(match reason {
        RefuseReason::Busy => "rtsBusy (0)",
        RefuseReason::CannotRecover => "cannotRecover (1)",
        RefuseReason::ValidationFailure => "validationFailure (2)",
        RefuseReason::DialogueMode => "unacceptableDialogueMode (3)",
        RefuseReason::Bind | RefuseReason::ApplicationContext | RefuseReason::Unspecified => {
            return None;
        }
    })
}

/// A refusal of the peer: the error of the bind, the text of its event, and what it is in the status.
pub fn refusal(
    reason: RefuseReason,
    bind_error: Option<&[u8]>,
    detail: &str,
) -> (Option<MtaBindError>, String, Failure) {
    let read = bind_error.map(|e| (e, Element::parse(e).and_then(|e| MtaBindError::read(&e))));
    let words = in_words(reason, detail);
    let (error, text) = match read {
        Some((_, Ok(error))) => (Some(error), format!("refused: {error}: {detail}")),
        Some((octets, Err(unread))) => {
            let octets = shown::value(octets);
            (None, format!("refused: {words}; bind error: {unread}: {octets}"))
        }
        None => (None, format!("refused: {words}")),
    };
    (error, text, Failure::refused(error, &words))
}

/// A refusal in words, once: that of RTSE has more than that of session, which carries it.
fn in_words(reason: RefuseReason, detail: &str) -> String {
    let detail = detail.replace("User(", "acse-service-user (");
    match (refuse_reason(reason), reason) {
        (Some(words), _) if detail.contains(OF_RTSE) => format!("rtse: RTORJ, {words} (X.228 9.1)"),
        (_, RefuseReason::ApplicationContext) => {
            format!("{detail}: application-context-name-not-supported (2)")
        }
        (_, RefuseReason::Busy) => format!("{detail}: busy"),
        (Some(words), _) => format!("{detail}: {words}"),
        _ => detail,
    }
}

impl Failure {
    /// The peer refused, with this error of the bind, or this text of [`in_words`].
    fn refused(error: Option<MtaBindError>, text: &str) -> Failure {
        let Some(error) = error else {
            return Failure { part: Part::TheyRefused, ..Failure::from_text(text) };
        };
        let reason = match error {
            MtaBindError::Other(_) => error.to_string(),
            named => format!("MTABindError {named} ({})", named.number()),
        };
        Failure { part: Part::TheyRefused, layer: "bind", reason }
    }

    /// By the text with which the association ended.
    pub fn from_text(detail: &str) -> Failure {
        let (layer, reason) = deepest(detail).unwrap_or_else(|| {
            let other = if detail.contains("in time") { "transport" } else { "tcp" };
            (other, detail.to_owned())
        });
        let closed = reason.starts_with("the TCP connection was closed");
        let of_name = layer == "tcp" && NAMES.iter().any(|part| reason.contains(part));
        let layer = match layer {
            _ if closed => "tcp",
            _ if of_name => "name",
            layer => layer,
        };
        let has = |parts: &[&str]| parts.iter().any(|part| detail.contains(part));
        let part = match layer {
            "bind" => Part::WeRefused,
            "name" => Part::NoAnswer,
            _ if has(SILENCE) => Part::NoAnswer,
            "tcp" if has(&["no connection"]) => match has(&["refused"]) {
                true => Part::TheyRefused,
                false => Part::NoAnswer,
            },
            "tcp" => Part::TheyEnded,
            _ if has(ENDS) => Part::TheyEnded,
            _ if has(REFUSALS) => Part::TheyRefused,
            _ => Part::WeRefused,
        };
        Failure { part, layer, reason }
    }

    /// The same for the status: it failed then, for the last of so many times, and is tried again then.
    pub fn status(
        &self,
        now: Now,
        at: Utc,
        failures: u32,
        until: Option<Instant>,
    ) -> FailureStatus {
        let until = until.filter(|until| *until > now.mono);
        FailureStatus {
            part: self.part.words().replace(' ', "_"),
            layer: self.layer.to_owned(),
            reason: self.reason.clone(),
            at: at.to_string(),
            failures,
            next_try: until.map(|until| later(now, until).to_string()),
            next_try_seconds: until.map(|until| until.since(now.mono).as_secs_f64()),
        }
    }

    /// Whose part, at which layer, and when the next try is.
    pub fn with_wait(&self, now: Now, until: Option<Instant>) -> String {
        let wait = match until.filter(|until| *until > now.mono) {
            Some(until) => {
                let seconds = until.since(now.mono).as_secs_f64();
                format!("next try in {seconds:.1} s, at {}", to_second(later(now, until)))
            }
            None => "next try at once".to_owned(),
        };
        format!("{} at {}; {wait}", self.part.words(), self.layer)
    }
}

/// The deepest layer in a text of several, and what it reports. A refusal of transport is also reported as one of session.
fn deepest(detail: &str) -> Option<(&'static str, String)> {
    let depth_of = |piece: &str| LAYERS.iter().position(|(begin, _)| piece.starts_with(begin));
    let mut found: Vec<(usize, String)> = Vec::new();
    for piece in detail.split("; ") {
        match (depth_of(piece), found.last_mut()) {
            (Some(depth), _) => found.push((depth, piece.to_owned())),
            (None, Some((_, text))) => *text = format!("{text}; {piece}"),
            (None, None) => {}
        }
    }
    let by_depth = |(depth, _): &&(usize, String)| *depth;
    let first = found.first().filter(|(depth, _)| *depth <= TRANSPORT);
    let (depth, text) = first.or_else(|| found.iter().max_by_key(by_depth))?;
    let (begin, layer) = LAYERS.get(*depth)?;
    Some((*layer, text.strip_prefix(begin)?.trim_start().to_owned()))
}

/// The place of transport in [`LAYERS`].
const TRANSPORT: usize = 1;

/// Beginnings of what the layers report, from the bottom up.
const LAYERS: &[(&str, &str)] = &[
    ("no connection:", "tcp"),
    ("transport:", "transport"),
    ("session:", "session"),
    ("presentation:", "presentation"),
    ("acse:", "acse"),
    ("rtse:", "rtse"),
    ("x410 mode:", "rtse"),
    ("invalid bind result of the peer:", "bind"),
];

/// A name without an address.
const NAMES: &[&str] = &["resolver", "lookup", "no address"];

/// Nothing came, in the words of several layers.
const SILENCE: &[&str] = &["did not come within", "no answer", "in time", "Timeout in"];

/// The peer aborted, likewise.
const ENDS: &[&str] = &["the peer sent", "S-U-ABORT", "aborted by the peer", "ABRT", "ARU"];

/// The peer refused, likewise.
const REFUSALS: &[&str] =
    &["refused, reason", "disconnect request", "the peer rejected", "CPR", "AARE, result", "RTORJ"];

/// The wall clock's time of an instant to come.
fn later(now: Now, at: Instant) -> Utc {
    now.utc + at.since(now.mono)
}

/// RFC 3339 without the fraction of a second.
fn to_second(at: Utc) -> String {
    let text = at.to_string();
    text.get(..19).map_or_else(|| text.clone(), |text| format!("{text}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[track_caller]
    fn check(detail: &str, part: Part, layer: &str) {
        let failure = Failure::from_text(detail);
        assert_eq!((failure.part, failure.layer), (part, layer), "{detail}");
    }

    #[test]
    fn each_layer_is_found_and_whose_part_it_was() {
        use Part::{NoAnswer, TheyEnded, TheyRefused, WeRefused};
        for (detail, part, layer) in [
            ("no connection: 127.0.0.1:1: Connection refused (os error 111)", TheyRefused, "tcp"),
            ("no connection: 192.0.2.1:102: no answer within 10s", NoAnswer, "tcp"),
            ("no connection: rome: no answer from the resolver within 5s", NoAnswer, "name"),
            ("transport: the TCP connection was closed (X.224 6.8)", TheyEnded, "tcp"),
            ("the connection closed: reset", TheyEnded, "tcp"),
            ("transport: disconnect request, reason 3: address unknown", TheyRefused, "transport"),
            ("transport: the CC did not come within the setup timeout", NoAnswer, "transport"),
            ("session: refused, reason 129: session selector unknown", TheyRefused, "session"),
            ("session: ACCEPT or REFUSE did not come within the setup", NoAnswer, "session"),
            ("presentation: CPR, provider-reason 3: called", TheyRefused, "presentation"),
            ("presentation: Cpa: missing [0] (X.226 6.4.2.2)", WeRefused, "presentation"),
            ("presentation: the peer accepted no context of 1.2", WeRefused, "presentation"),
            ("acse: AARE, result 1, User(2) (X.227 7.1.3.4)", TheyRefused, "acse"),
            ("session: refused, reason 2: by; acse: AARE, result 1, User(2)", TheyRefused, "acse"),
            ("session: refused, reason 2: by; presentation: a CPR of", TheyRefused, "presentation"),
            (
                "transport: disconnect request; session: refused, reason 133",
                TheyRefused,
                "transport",
            ),
            ("rtse: the peer sent RTAB, userError; acse: ABRT", TheyEnded, "rtse"),
            ("acse: ABRT, source acse-service-user (X.227 7.3.3)", TheyEnded, "acse"),
            ("rtse: the peer sent RTAB, protocolError", TheyEnded, "rtse"),
            ("rtse: Invalid in Sta01 (X.228 7.7.4): windowSize 0", WeRefused, "rtse"),
            ("no association in time (limits.bind_timeout)", NoAnswer, "transport"),
            ("invalid bind result of the peer: the password is wrong", WeRefused, "bind"),
        ] {
            check(detail, part, layer);
        }
    }

    #[test]
    fn a_refusal_is_in_the_words_of_the_standard_once() {
        let detail = "session: refused, reason 2: rejected by the called SS-user (X.225 8.3.5.10); \
                      RTORJ refuseReason 2 (X.228 9.1)";
        let text = in_words(RefuseReason::ValidationFailure, detail);
        assert_eq!(text, "rtse: RTORJ, validationFailure (2) (X.228 9.1)");
        let failure = Failure::refused(None, &text);
        assert_eq!((failure.part, failure.layer), (Part::TheyRefused, "rtse"));
        assert_eq!(failure.reason, "RTORJ, validationFailure (2) (X.228 9.1)");
        let of_both =
            Failure::from_text("session: refused, reason 2: by; acse: AARE, result 1; of it");
        assert_eq!(of_both.reason, "AARE, result 1; of it");
        let context = in_words(RefuseReason::ApplicationContext, "acse: AARE, result 1, User(2)");
        assert!(context.contains("result 1, acse-service-user (2)"), "{context}");
        assert!(context.ends_with("application-context-name-not-supported (2)"), "{context}");
        let bind = Failure::refused(Some(MtaBindError::AuthenticationError), "acse: AARE");
        assert_eq!(bind.reason, "MTABindError authentication-error (2)");
        assert_eq!(bind.layer, "bind");
    }

    #[test]
    fn the_wait_has_its_length_and_its_end() {
        let now = Now { mono: Instant(5_000_000), utc: Utc(1_767_323_045_678_901) };
        let failure = Failure::from_text("session: refused, reason 129: session selector unknown");
        let until = now.mono + Duration::from_secs(90);
        assert_eq!(
            failure.with_wait(now, Some(until)),
            "they refused at session; next try in 90.0 s, at 2026-01-02T03:05:35Z"
        );
        assert!(failure.with_wait(now, None).ends_with("next try at once"));
    }
}
