//! PPDUs and the APDUs in them, each in a frame that is right, so that damage reaches them.

use super::association::{p1_config, p1_plan, p3_config, p3_plan};
use super::checked::{AssociationPlan, CheckedAssociation};
use base::ber::{Tag, Writer, universal as u};
use bytes::Bytes;
use osi::api::{Config, Role};
use osi::profiles;
use osi::session::pdu::{AcceptSpdu, ConnectSpdu, Enclosure, MAX_USER_DATA, Spdu};
use osi::session::service::{ConnectionReference, requirements};

/// The two kinds of association: configuration, plan, functional units.
fn kinds() -> [(Config, AssociationPlan, u16); 2] {
    [(p1_config(), p1_plan(), requirements::RTSE), (p3_config(), p3_plan(), requirements::DUPLEX)]
}

/// A TSDU in TPKTs.
fn tpkts(tsdu: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let most = osi::tpkt::MAX_PAYLOAD - 3;
    let count = tsdu.len().div_ceil(most);
    for (data, n) in tsdu.chunks(most).zip(1..) {
        out.extend_from_slice(&osi::tpkt::header(data.len() + 3));
        out.extend_from_slice(&[2, 0xf0, if n == count { 0x80 } else { 0 }]);
        out.extend_from_slice(data);
    }
    out
}

fn write(body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    body(&mut w);
    w.into_vec()
}

/// User data of a PPDU: one value of this context (X.226 8.4.2).
fn values(context: i64, value: &[u8]) -> Vec<u8> {
    write(|w| {
        w.constructed(Tag::application(1), |w| {
            w.constructed(u::SEQUENCE, |w| {
                w.integer(u::INTEGER, context);
                w.constructed(Tag::context(0), |w| w.raw(value));
            });
        });
    })
}

/// CP or CPA of normal mode around these parameters.
fn connect_ppdu(parameters: impl FnOnce(&mut Writer)) -> Vec<u8> {
    write(|w| {
        w.constructed(u::SET, |w| {
            w.constructed(Tag::context(0), |w| w.integer(Tag::context(0), 1));
            w.constructed(Tag::context(2), parameters);
        });
    })
}

fn cp(config: &Config, acse: &[u8]) -> Vec<u8> {
    connect_ppdu(|w| {
        w.constructed(Tag::context(4), |w| {
            for context in &config.contexts {
                w.constructed(u::SEQUENCE, |w| {
                    w.integer(u::INTEGER, context.id);
                    w.oid(u::OID, &context.abstract_syntax);
                    w.constructed(u::SEQUENCE, |w| w.oid(u::OID, &profiles::ber()));
                });
            }
        });
        w.raw(&values(1, acse));
    })
}

fn cpa(config: &Config, acse: &[u8]) -> Vec<u8> {
    connect_ppdu(|w| {
        w.constructed(Tag::context(5), |w| {
            for _ in &config.contexts {
                w.constructed(u::SEQUENCE, |w| {
                    w.integer(Tag::context(0), 0);
                    w.oid(Tag::context(1), &profiles::ber());
                });
            }
        });
        w.raw(&values(1, acse));
    })
}

/// AARQ (60) or AARE (61) with this value of context 3 as its user information.
fn associate(tag: u32, config: &Config, value: &[u8]) -> Vec<u8> {
    write(|w| {
        w.constructed(Tag::application(tag), |w| {
            let name = config.application_contexts.first().cloned();
            w.constructed(Tag::context(1), |w| {
                name.iter().for_each(|name| w.oid(u::OID, name));
            });
            if tag == 1 {
                w.constructed(Tag::context(2), |w| w.integer(u::INTEGER, 0));
                w.constructed(Tag::context(3), |w| {
                    w.constructed(Tag::context(1), |w| w.integer(u::INTEGER, 0));
                });
            }
            w.constructed(Tag::context(30), |w| {
                w.constructed(u::EXTERNAL, |w| {
                    w.oid(u::OID, &profiles::ber());
                    w.integer(u::INTEGER, 3);
                    w.constructed(Tag::context(0), |w| w.raw(value));
                });
            });
        });
    })
}

/// A responder that is asked with this CP.
fn ask(config: &Config, plan: &AssociationPlan, units: u16, ppdu: &[u8]) {
    let mut initiator = CheckedAssociation::new(config.clone(), Role::Initiator, plan.clone());
    let mut responder = CheckedAssociation::new(config.clone(), Role::Responder, plan.clone());
    responder.feed(&std::mem::take(&mut initiator.out));
    let connect = Spdu::Connect(ConnectSpdu {
        reference: ConnectionReference {
            user: Bytes::from_static(b"\x04\x04user"),
            common: Bytes::from_static(b"\x17\x0d260101000000Z"),
            additional: Bytes::new(),
        },
        versions: 2,
        requirements: units,
        user_data: Bytes::copy_from_slice(ppdu),
        ..ConnectSpdu::default()
    });
    responder.feed(&tpkts(&connect.encode()));
    responder.finish();
}

/// An initiator that is answered with this PPDU: accepted or refused.
fn answer(config: &Config, plan: &AssociationPlan, units: u16, ppdu: &[u8]) {
    let user_data = Bytes::copy_from_slice(ppdu);
    let accept = Spdu::Accept(AcceptSpdu {
        version: Some(2),
        requirements: units,
        user_data: user_data.clone(),
        ..AcceptSpdu::default()
    });
    let refuse = Spdu::Refuse {
        reference: ConnectionReference::default(),
        requirements: None,
        reason: 2,
        user_data,
    };
    for spdu in [accept, refuse] {
        let mut initiator = CheckedAssociation::new(config.clone(), Role::Initiator, plan.clone());
        let mut responder = CheckedAssociation::new(config.clone(), Role::Responder, plan.clone());
        responder.feed(&std::mem::take(&mut initiator.out));
        initiator.feed(&std::mem::take(&mut responder.out));
        initiator.feed(&tpkts(&spdu.encode()));
        initiator.finish();
    }
}

/// Both ends of an open association without anything in progress, then these TSDUs to either.
fn open(config: &Config, plan: &AssociationPlan, tsdus: &[Vec<u8>], to: Role) {
    let quiet = AssociationPlan { units: Vec::new(), release: false, ..plan.clone() };
    // As initiator the receiver has an invocation or a transfer outstanding.
    let initiators = if to == Role::Initiator { plan } else { &quiet };
    let mut initiator =
        CheckedAssociation::new(config.clone(), Role::Initiator, initiators.clone());
    let mut responder = CheckedAssociation::new(config.clone(), Role::Responder, quiet);
    while !responder.is_open() {
        responder.feed(&std::mem::take(&mut initiator.out));
        initiator.feed(&std::mem::take(&mut responder.out));
    }
    initiator.feed(&std::mem::take(&mut responder.out));
    assert!(initiator.is_open(), "{:?} {:?}", initiator.observed, responder.observed);
    let receiver = if to == Role::Initiator { &mut initiator } else { &mut responder };
    tsdus.iter().for_each(|tsdu| receiver.feed(&tpkts(tsdu)));
    receiver.finish();
}

/// A DT with this PPDU.
fn data(ppdu: &[u8]) -> Vec<u8> {
    let mut tsdu = Spdu::Data(Enclosure::WHOLE).encode_tsdu();
    tsdu.extend_from_slice(ppdu);
    tsdu
}

/// Everything that ends an open association, with this PPDU.
fn endings(ppdu: &[u8]) -> [Vec<u8>; 3] {
    let user_data = Bytes::copy_from_slice(ppdu);
    [
        Spdu::Finish { keep: false, user_data: user_data.clone() }.encode_tsdu(),
        Spdu::Disconnect { user_data: user_data.clone() }.encode_tsdu(),
        Spdu::Abort { disconnect: 3, reflect: Bytes::new(), user_data }.encode_tsdu(),
    ]
}

pub(super) fn presentation(octets: &[u8]) {
    for (config, plan, units) in kinds() {
        if octets.len() <= MAX_USER_DATA {
            ask(&config, &plan, units, octets);
            answer(&config, &plan, units, octets);
            for tsdu in endings(octets) {
                open(&config, &plan, &[tsdu], Role::Responder);
            }
        }
    }
    let (config, plan) = (p3_config(), p3_plan());
    open(&config, &plan, &[data(octets)], Role::Responder);
}

pub(super) fn acse(octets: &[u8]) {
    if octets.len() > MAX_USER_DATA - 400 {
        return;
    }
    for (config, plan, units) in kinds() {
        ask(&config, &plan, units, &cp(&config, octets));
        answer(&config, &plan, units, &cpa(&config, octets));
        for tsdu in endings(&values(1, octets)) {
            open(&config, &plan, &[tsdu], Role::Responder);
        }
    }
}

pub(super) fn rtse(octets: &[u8]) {
    let (config, plan, units) = (p1_config(), p1_plan(), requirements::RTSE);
    if octets.len() <= MAX_USER_DATA - 400 {
        ask(&config, &plan, units, &cp(&config, &associate(0, &config, octets)));
        answer(&config, &plan, units, &cpa(&config, &associate(1, &config, octets)));
    }
    let start = Spdu::ActivityStart(Bytes::from_static(&[2, 1, 1])).encode_tsdu();
    let transfer = data(&values(3, octets));
    let sync = Spdu::MinorSync { serial: 1, explicit: true }.encode_tsdu();
    let end = Spdu::ActivityEnd(2).encode_tsdu();
    open(&config, &plan, &[start, transfer.clone(), sync, transfer.clone(), end], Role::Responder);
    // Outside an activity, and at the sender.
    open(&config, &plan, std::slice::from_ref(&transfer), Role::Responder);
    open(&config, &plan, &[transfer], Role::Initiator);
}

pub(super) fn rose(octets: &[u8]) {
    let (config, plan, units) = (p3_config(), p3_plan(), requirements::DUPLEX);
    if octets.len() <= MAX_USER_DATA - 400 {
        ask(&config, &plan, units, &cp(&config, &associate(0, &config, octets)));
        answer(&config, &plan, units, &cpa(&config, &associate(1, &config, octets)));
    }
    for role in [Role::Responder, Role::Initiator] {
        let tsdu = data(&values(5, octets));
        open(&config, &plan, &[tsdu.clone(), tsdu], role);
    }
}
