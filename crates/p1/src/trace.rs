//! Trace information: where a message was, per domain and per MTA (X.411 12.2.1.1.1.3, 12.3.1).

use crate::eits::EncodedInformationTypes;
use crate::names::{GlobalDomainId, MtaName};
use crate::time::Time;
use bytes::Bytes;

/// routing-action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RoutingAction {
    /// relayed, 0.
    #[default]
    Relayed = 0,
    /// rerouted, 1: a second way, after the attempted one failed.
    Rerouted = 1,
}

/// other-actions: named bits, bit `n` of the BIT STRING being `1 << n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OtherActions(pub u32);

/// AdditionalActions, common to both traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AdditionalActions {
    /// deferred-time: when deferral ended.
    pub deferred_time: Option<Time>,
    /// converted-encoded-information-types.
    pub converted_eits: Option<EncodedInformationTypes>,
    /// other-actions.
    pub other_actions: OtherActions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// TraceInformationElement: one domain's passage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceElement {
    /// global-domain-identifier.
    pub domain: GlobalDomainId,
    /// arrival-time.
    pub arrival_time: Time,
    /// routing-action.
    pub routing_action: RoutingAction,
    /// attempted-domain, of a reroute.
    pub attempted_domain: Option<GlobalDomainId>,
    /// Deferral, conversion, redirection, list expansion.
    pub additional: AdditionalActions,
}

/// What a reroute tried before (CHOICE attempted).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attempted {
    /// mta.
    Mta(MtaName),
    /// domain.
    Domain(GlobalDomainId),
}

/// InternalTraceInformationElement: one MTA's passage within a domain (extension 38).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InternalTraceElement {
    /// global-domain-identifier.
    pub domain: GlobalDomainId,
    /// mta-name.
    pub mta: MtaName,
    /// arrival-time.
    pub arrival_time: Time,
    /// routing-action.
    pub routing_action: RoutingAction,
    /// attempted, of a reroute.
    pub attempted: Option<Attempted>,
    /// Deferral, conversion, redirection, list expansion.
    pub additional: AdditionalActions,
}
