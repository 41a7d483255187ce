//! Trace information: the domains and the MTAs that a message has passed (X.411 12.2.1.1.1.3, 12.3.1).

use crate::eits::EncodedInformationTypes;
use crate::extension::{Defaults, ExtensionField, Extensions, number};
use crate::names::{GlobalDomainId, MtaName};
use crate::time::Time;
use crate::wire::{bits, bound, keep_all, list, tag, write_bits, write_kept, written};
use base::Utc;
use base::ber::{Element, Error, Fault, Field, Member, Reader, Tag, Writer, read_set, universal};
use bytes::Bytes;

/// routing-action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RoutingAction {
    /// relayed, 0.
    #[default]
    Relayed = 0,
    /// rerouted, 1: on a second route, after the attempted one failed.
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

/// TraceInformationElement: the message passed this domain.
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

/// InternalTraceInformationElement: the message passed this MTA of a domain (extension 38).
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

const ARRIVAL: Tag = Tag::context(0);
const DEFERRED: Tag = Tag::context(1);
const ROUTING_ACTION: Tag = Tag::context(2);
const OTHER_ACTIONS: Tag = Tag::context(3);

impl OtherActions {
    /// redirected.
    pub const REDIRECTED: OtherActions = OtherActions(1);
    /// dl-operation.
    pub const DL_OPERATION: OtherActions = OtherActions(1 << 1);

    /// Whether every bit of `other` is set.
    pub fn contains(self, other: OtherActions) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for OtherActions {
    type Output = OtherActions;
    fn bitor(self, other: OtherActions) -> OtherActions {
        OtherActions(self.0 | other.0)
    }
}

/// The SET of both kinds of element: domain- and mta-supplied-information.
struct Supplied {
    arrival: Member<Time>,
    action: Option<RoutingAction>,
    attempted: Option<Attempted>,
    additional: AdditionalActions,
}

impl Supplied {
    fn read(e: &Element<'_>) -> Result<Supplied, Error> {
        let (mut arrival, mut action) =
            (Member::new("arrival-time"), Member::new("routing-action"));
        let (mut attempted, mut deferred) =
            (Member::new("attempted"), Member::new("deferred-time"));
        let mut eits = Member::new("converted-encoded-information-types");
        let mut other = Member::new("other-actions");
        let unknown = read_set(e, |m| match m.tag {
            ARRIVAL => arrival.once(m, Time::read),
            ROUTING_ACTION => action.once(m, read_action),
            tag::GLOBAL_DOMAIN => {
                attempted.once(m, |m| Ok(Attempted::Domain(GlobalDomainId::read(m)?)))
            }
            universal::IA5_STRING => attempted.once(m, |m| Ok(Attempted::Mta(MtaName::read(m)?))),
            DEFERRED => deferred.once(m, Time::read),
            tag::EITS => eits.once(m, EncodedInformationTypes::read),
            OTHER_ACTIONS => other.once(m, |m| Ok(OtherActions(bits(m)?))),
            _ => Ok(false),
        })?;
        let additional = AdditionalActions {
            deferred_time: deferred.optional(),
            converted_eits: eits.optional(),
            other_actions: other.or_default(),
            unknown: keep_all(&unknown),
        };
        let (action, attempted) = (action.optional(), attempted.optional());
        Ok(Supplied { arrival, action, attempted, additional })
    }
}

fn read_action(e: &Element<'_>) -> Result<RoutingAction, Error> {
    match e.integer()? {
        0 => Ok(RoutingAction::Relayed),
        1 => Ok(RoutingAction::Rerouted),
        _ => Err(Fault::Value("RoutingAction").into()),
    }
}

/// Writes the SET of both kinds of element.
fn write_supplied(
    w: &mut Writer,
    arrival: &Time,
    action: RoutingAction,
    attempted: impl FnOnce(&mut Writer),
    (additional, defaults): (&AdditionalActions, Defaults),
) {
    w.constructed(universal::SET, |w| {
        arrival.write_as(w, ARRIVAL);
        w.integer(ROUTING_ACTION, action as i64);
        attempted(w);
        if let Some(time) = &additional.deferred_time {
            time.write_as(w, DEFERRED);
        }
        if let Some(eits) = &additional.converted_eits {
            eits.write(w);
        }
        if defaults.writes_later(&additional.other_actions, &OtherActions::default()) {
            let least = if additional.other_actions == OtherActions::default() { 2 } else { 0 };
            write_bits(w, OTHER_ACTIONS, additional.other_actions.0, least);
        }
        write_kept(w, &additional.unknown);
    });
}

fn read_domain(inner: &mut Reader<'_>) -> Result<GlobalDomainId, Error> {
    GlobalDomainId::read(&inner.require(tag::GLOBAL_DOMAIN)?)
}

impl TraceElement {
    /// A relay's own element: arrived at `arrival`, no special action.
    pub fn relayed(domain: GlobalDomainId, arrival: Utc) -> TraceElement {
        TraceElement {
            domain,
            arrival_time: arrival.into(),
            routing_action: RoutingAction::Relayed,
            attempted_domain: None,
            additional: AdditionalActions::default(),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// Malformed, or a mandatory part missing.
    pub fn read(e: &Element<'_>) -> Result<TraceElement, Error> {
        let name = "trace-information";
        let mut inner = e.children().field(name)?;
        let domain = read_domain(&mut inner).field(name)?;
        let supplied =
            inner.require(universal::SET).and_then(|e| Supplied::read(&e)).field(name)?;
        inner.finish().field(name)?;
        let attempted_domain = match supplied.attempted {
            Some(Attempted::Domain(domain)) => Some(domain),
            None => None,
            Some(Attempted::Mta(_)) => {
                return Err(Fault::Unexpected(universal::IA5_STRING)).field(name);
            }
        };
        Ok(TraceElement {
            domain,
            arrival_time: supplied.arrival.required(ARRIVAL)?,
            // Mandatory, but a relay does not need it.
            routing_action: supplied.action.unwrap_or_default(),
            attempted_domain,
            additional: supplied.additional,
        })
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SEQUENCE, |w| {
            self.domain.write(w);
            let attempted = |w: &mut Writer| {
                if let Some(domain) = &self.attempted_domain {
                    domain.write(w);
                }
            };
            let (arrival, action) = (&self.arrival_time, self.routing_action);
            write_supplied(w, arrival, action, attempted, (&self.additional, defaults));
        });
    }
}

impl InternalTraceElement {
    /// A relay's own element: arrived at `arrival`, no special action.
    pub fn relayed(domain: GlobalDomainId, mta: MtaName, arrival: Utc) -> InternalTraceElement {
        InternalTraceElement {
            domain,
            mta,
            arrival_time: arrival.into(),
            routing_action: RoutingAction::Relayed,
            attempted: None,
            additional: AdditionalActions::default(),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// Malformed, or a mandatory part missing.
    pub fn read(e: &Element<'_>) -> Result<InternalTraceElement, Error> {
        let name = "internal-trace-information";
        let mut inner = e.children().field(name)?;
        let domain = read_domain(&mut inner).field(name)?;
        let mta =
            inner.require(universal::IA5_STRING).and_then(|e| MtaName::read(&e)).field(name)?;
        let supplied =
            inner.require(universal::SET).and_then(|e| Supplied::read(&e)).field(name)?;
        inner.finish().field(name)?;
        Ok(InternalTraceElement {
            domain,
            mta,
            arrival_time: supplied.arrival.required(ARRIVAL)?,
            routing_action: supplied.action.unwrap_or_default(),
            attempted: supplied.attempted,
            additional: supplied.additional,
        })
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SEQUENCE, |w| {
            self.domain.write(w);
            self.mta.write_as(w, universal::IA5_STRING);
            let attempted = |w: &mut Writer| match &self.attempted {
                Some(Attempted::Mta(mta)) => mta.write_as(w, universal::IA5_STRING),
                Some(Attempted::Domain(domain)) => domain.write(w),
                None => {}
            };
            let (arrival, action) = (&self.arrival_time, self.routing_action);
            write_supplied(w, arrival, action, attempted, (&self.additional, defaults));
        });
    }
}

/// Reads TraceInformation, under whichever tag: at most 512 elements.
///
/// # Errors
/// An element is malformed, or there are more than 512.
pub fn read_trace(e: &Element<'_>) -> Result<Vec<TraceElement>, Error> {
    list(e, bound::TRANSFERS, TraceElement::read).field("trace-information")
}

/// Writes TraceInformation.
pub fn write_trace(w: &mut Writer, trace: &[TraceElement], defaults: Defaults) {
    w.constructed(tag::TRACE, |w| trace.iter().for_each(|e| e.write(w, defaults)));
}

/// When the message first arrived at a domain: the time of the oldest element, if it is valid.
pub fn first_arrival(trace: &[TraceElement]) -> Option<Utc> {
    trace.first().and_then(|e| e.arrival_time.utc)
}

/// The internal trace among an envelope's extensions, oldest first; empty if absent.
///
/// # Errors
/// Malformed, or more than 512 elements.
pub fn internal_trace(extensions: &Extensions) -> Result<Vec<InternalTraceElement>, Error> {
    let name = "internal-trace-information";
    match extensions.standard(number::INTERNAL_TRACE_INFORMATION) {
        Some(field) => {
            let e = Element::parse(&field.value).field(name)?;
            list(&e, bound::TRANSFERS, InternalTraceElement::read).field(name)
        }
        None => Ok(Vec::new()),
    }
}

/// The value of an internal trace with the members of the value of their DEFAULT; `None` where it is malformed.
pub(crate) fn explicit_internal_trace(value: &[u8]) -> Option<Bytes> {
    let e = Element::parse(value).ok()?;
    let trace = list(&e, bound::TRANSFERS, InternalTraceElement::read).ok()?;
    let all = |w: &mut Writer| trace.iter().for_each(|e| e.write(w, Defaults::Explicit));
    Some(written(|w| w.constructed(universal::SEQUENCE, all)))
}

/// Adds an element to the internal trace. If there is none, it is created.
///
/// # Errors
/// The existing internal trace is malformed or full. Then nothing is changed.
pub fn add_internal_trace(
    extensions: &mut Extensions,
    element: InternalTraceElement,
) -> Result<(), Error> {
    let trace = internal_trace(extensions)?;
    if trace.len() >= bound::TRANSFERS {
        return Err(Fault::TooMany(bound::TRANSFERS as u64)).field("internal-trace-information");
    }
    update_internal_trace(extensions, |trace| trace.push(element))
}

/// Changes the internal trace and keeps it in its dialect. If there is none, it is created.
///
/// # Errors
/// The existing internal trace is malformed. Then nothing is changed.
pub fn update_internal_trace(
    extensions: &mut Extensions,
    change: impl FnOnce(&mut Vec<InternalTraceElement>),
) -> Result<(), Error> {
    let mut trace = internal_trace(extensions)?;
    change(&mut trace);
    let old = extensions.standard(number::INTERNAL_TRACE_INFORMATION);
    // A received extension keeps its dialect and criticality.
    let (dialect, criticality) = old.map(|f| (f.dialect, f.criticality)).unwrap_or_default();
    let field = ExtensionField::standard(number::INTERNAL_TRACE_INFORMATION, criticality, |w| {
        w.constructed(universal::SEQUENCE, |w| {
            trace.iter().for_each(|e| e.write(w, Defaults::LeftOut));
        });
    });
    extensions.set(ExtensionField { dialect, ..field });
    Ok(())
}
