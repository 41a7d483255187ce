//! Connection establishment (X.226 6.2): CP, CPA and CPR.

use super::machine::{Presentation, With};
use super::pdu::{self, Cp, CpError, Cpa, Cpr, Proposal, ProviderReason, Verdict, provider_reason};
use super::service::{Contexts, Indication, Request};
use super::table::Event;
use crate::api::Role;
use crate::session::service as session;
use crate::shown;
use crate::table::{Lacking, Performed};
use base::ber::{Error, Fault, Oid};
use bytes::Bytes;
use std::fmt;

/// Why a CP is refused.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    /// We are the initiator.
    Initiator,
    /// It calls another presentation selector.
    Selector,
    /// No context of this abstract syntax can be used.
    Context(Oid),
    /// Session functional units that the peer did not propose.
    Requirements(u16),
    /// The PPDU itself.
    Ppdu(CpError),
}

impl Refusal {
    /// The provider-reason of the CPR (X.226 8.2).
    fn reason(&self) -> i64 {
        match self {
            Refusal::Selector => provider_reason::ADDRESS_UNKNOWN,
            Refusal::Ppdu(CpError::Version) => provider_reason::VERSION,
            Refusal::Ppdu(CpError::DefaultContext) => provider_reason::DEFAULT_CONTEXT,
            Refusal::Ppdu(CpError::Malformed(e)) => match (&e.fault, e.field) {
                (Fault::TooDeep(_) | Fault::TooMany(_) | Fault::TooLong(_), _) => {
                    provider_reason::LOCAL_LIMIT
                }
                (_, Some("User-data" | "PDV-list" | "presentation-data-values")) => {
                    provider_reason::USER_DATA
                }
                _ => provider_reason::NOT_SPECIFIED,
            },
            Refusal::Initiator
            | Refusal::Context(_)
            | Refusal::Requirements(_)
            | Refusal::Ppdu(CpError::X410Mode) => provider_reason::NOT_SPECIFIED,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Initiator => f.write_str("S-CONNECT indication to an initiator"),
            Refusal::Selector => f.write_str("called-presentation-selector is not ours"),
            Refusal::Context(missing) => {
                write!(f, "abstract syntax {missing} was not proposed with BER")
            }
            Refusal::Requirements(lacking) => write!(f, "session requirements lack {lacking:#06x}"),
            Refusal::Ppdu(CpError::X410Mode) => {
                f.write_str("CP asks for X.410 mode, which is not configured for this peer")
            }
            Refusal::Ppdu(CpError::Version) => f.write_str("protocol-version lacks version 1"),
            Refusal::Ppdu(CpError::DefaultContext) => {
                f.write_str("default-context-name is not supported")
            }
            Refusal::Ppdu(CpError::Malformed(e)) => write!(f, "{e}"),
        }
    }
}

impl Presentation {
    /// P-CONNECT.request.
    pub(super) fn send_cp(&mut self, with: With) -> Performed {
        let With::Request(Request::Connect { reference, requirements, value }) = with else {
            return Err(Lacking);
        };
        let contexts = self.offered.iter().map(|c| Proposal {
            id: c.id,
            abstract_syntax: c.abstract_syntax.clone(),
            ber: true,
        });
        let cp = Cp {
            calling: self.local.presentation.clone(),
            called: self.remote.presentation.clone(),
            contexts: contexts.collect(),
            values: vec![value],
        };
        self.down.push_back(session::Request::Connect(session::Connect {
            calling_selector: self.local.session.clone(),
            called_selector: self.remote.session.clone(),
            reference,
            requirements,
            user_data: pdu::encode_cp(&cp),
        }));
        Ok(())
    }

    /// P-CONNECT.response, accepting.
    pub(super) fn send_cpa(&mut self, with: With) -> Performed {
        let With::Request(Request::Accept { requirements, value }) = with else {
            return Err(Lacking);
        };
        let cpa = Cpa {
            responding: self.local.presentation.clone(),
            results: std::mem::take(&mut self.verdicts),
            values: vec![value],
        };
        self.down.push_back(session::Request::Accept(session::Accept {
            responding_selector: self.local.session.clone(),
            requirements,
            user_data: pdu::encode_cpa(&cpa),
        }));
        Ok(())
    }

    /// P-CONNECT.response, refusing.
    pub(super) fn send_cpr(&mut self, with: With) -> Performed {
        let With::Request(Request::Refuse { value }) = with else { return Err(Lacking) };
        let results = std::mem::take(&mut self.verdicts);
        let cpr = Cpr { results, values: vec![value], ..Cpr::default() };
        self.refuse(pdu::encode_cpr(&cpr));
        Ok(())
    }

    fn refuse(&mut self, user_data: Bytes) {
        self.down.push_back(session::Request::Refuse(session::Refuse { reason: 2, user_data }));
    }

    /// P-CONNECT.indication.
    pub(super) fn connect_indication(&mut self, with: With) -> Performed {
        let With::Cp { verdicts, contexts, indication } = with else { return Err(Lacking) };
        self.verdicts = verdicts;
        self.contexts = contexts;
        self.up.push_back(indication);
        Ok(())
    }

    /// S-CONNECT indication.
    pub(super) fn connect(&mut self, connect: session::Connect) {
        let cp = match pdu::decode_cp(&connect.user_data) {
            Ok(cp) => cp,
            Err(e) => {
                let with = With::Refusal(Vec::new(), Refusal::Ppdu(e));
                return self.on(Event::CpRefused, with);
            }
        };
        let verdicts = self.judge(&cp.contexts);
        let contexts = Contexts(
            cp.contexts
                .iter()
                .zip(&verdicts)
                .filter(|(_, v)| **v == Verdict::Acceptance)
                .map(|(p, _)| (p.id, p.abstract_syntax.clone()))
                .collect(),
        );
        let refusal = self.refusal(&cp, &connect, &contexts);
        let (event, with) = match refusal {
            Some(refusal) => (Event::CpRefused, With::Refusal(verdicts, refusal)),
            None => {
                let indication = Indication::Connect {
                    session_selector: connect.calling_selector,
                    presentation_selector: cp.calling,
                    reference: connect.reference,
                    requirements: connect.requirements,
                    contexts: contexts.clone(),
                    values: cp.values,
                };
                (Event::Cp, With::Cp { verdicts, contexts, indication })
            }
        };
        self.on(event, with);
    }

    /// The reason to refuse this CP; `None` if it is acceptable.
    fn refusal(&self, cp: &Cp, connect: &session::Connect, contexts: &Contexts) -> Option<Refusal> {
        if self.role == Role::Initiator {
            return Some(Refusal::Initiator);
        }
        if crate::api::calls_another(cp.called.as_ref(), self.local.presentation.as_ref()) {
            return Some(Refusal::Selector);
        }
        if let Some(missing) = self.missing(contexts) {
            return Some(Refusal::Context(missing.clone()));
        }
        let lacking = self.requirements & !connect.requirements;
        (lacking != 0).then_some(Refusal::Requirements(lacking))
    }

    /// A result for each context proposed.
    fn judge(&self, proposals: &[Proposal]) -> Vec<Verdict> {
        let judge = |p: &Proposal| {
            if !self.offered.iter().any(|c| c.abstract_syntax == p.abstract_syntax) {
                Verdict::ProviderRejection(1)
            } else if !p.ber {
                Verdict::ProviderRejection(2)
            } else {
                Verdict::Acceptance
            }
        };
        proposals.iter().map(judge).collect()
    }

    /// Refuses a CP for the provider's reason.
    pub(super) fn refuse_cp(&mut self, with: With) -> Performed {
        let With::Refusal(results, refusal) = with else { return Err(Lacking) };
        let detail = if matches!(refusal, Refusal::Ppdu(CpError::X410Mode)) {
            self.refuse(pdu::encode_cpr_x410());
            format!("presentation: {refusal} (X.226 6.2.5.1)")
        } else {
            let provider_reason = Some(refusal.reason());
            self.refuse(pdu::encode_cpr(&Cpr { results, provider_reason, ..Cpr::default() }));
            format!("presentation: refused: {refusal} (X.226 6.2.4.7)")
        };
        self.up.push_back(Indication::ProviderAbort { detail });
        Ok(())
    }

    /// P-CONNECT confirm, or ARP where the CPA does not fit the CP.
    pub(super) fn accepted(&mut self, with: With) -> Performed {
        let With::Accept(accept) = with else { return Err(Lacking) };
        self.take_cpa(&accept);
        Ok(())
    }

    fn take_cpa(&mut self, accept: &session::Accept) {
        let cpa = match pdu::decode_cpa(&accept.user_data) {
            Ok(cpa) => cpa,
            Err(e) => return self.invalid(Event::Cpa, e),
        };
        if cpa.results.len() != self.offered.len() {
            let fault = Fault::Value("one result for each context proposed");
            let field = Some("presentation-context-definition-result-list");
            return self.invalid(Event::Cpa, Error { fault, field });
        }
        let accepted = self.offered.iter().zip(&cpa.results);
        self.contexts = Contexts(
            accepted
                .filter(|(_, v)| **v == Verdict::Acceptance)
                .map(|(c, _)| (c.id, c.abstract_syntax.clone()))
                .collect(),
        );
        let lacking = self.requirements & !accept.requirements;
        let problem = if let Some(s) = self.missing(&self.contexts) {
            Some(format!("presentation: the peer accepted no context of {s} (X.226 6.2.4.8)"))
        } else if lacking != 0 {
            Some(format!("session: the peer did not accept requirements {lacking:#06x}"))
        } else {
            None
        };
        match problem {
            Some(detail) => {
                let with = With::Detail(ProviderReason::InvalidParameter, Some(1), detail);
                self.on(Event::Invalid, with);
            }
            None => self.up.push_back(Indication::Accepted { values: cpa.values }),
        }
    }

    /// P-CONNECT confirm, refusing.
    pub(super) fn refused(&mut self, with: With) -> Performed {
        let With::Refuse(refuse) = with else { return Err(Lacking) };
        let mut detail = crate::session::refusal(refuse.reason);
        let mut transient = crate::session::is_congestion(refuse.reason);
        let mut values = Vec::new();
        if !refuse.user_data.is_empty() {
            match pdu::decode_cpr(&refuse.user_data) {
                Ok(cpr) => {
                    if let Some(reason) = cpr.provider_reason {
                        transient = reason == provider_reason::TEMPORARY_CONGESTION;
                        let name = provider_reason::name(reason);
                        detail = format!(
                            "presentation: CPR, provider-reason {reason}: {name} (X.226 6.2.5.5)"
                        );
                    }
                    if cpr.x410 {
                        let octets = shown::value(&refuse.user_data);
                        detail = format!(
                            "presentation: a CPR of X.410 mode, {octets}, where normal mode was \
                             proposed: the peer may have that mode only (X.226 6.2.5.5)"
                        );
                    }
                    values = cpr.values;
                }
                Err(e) => {
                    detail = format!("{detail}, with {e}: {}", shown::value(&refuse.user_data));
                }
            }
        }
        self.up.push_back(Indication::Refused { values, transient, detail });
        Ok(())
    }
}
