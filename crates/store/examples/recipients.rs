//! Measures a message with many recipients: each step of an arrival, of a report and of their
//! commit, timed separately.
//!
//! `cargo run --release -p store --example recipients -- [RECIPIENTS] [DIRECTORY]`

use base::{PeerId, Utc};
use bytes::Bytes;
use engine::journal::{BodySource, Op};
use engine::{Config, Content, Engine, Route, RouteTarget, canonical};
use p1::apdu::MtsApduHead;
use p1::content_type::ContentType;
use p1::extension::{Dialect, Extensions};
use p1::flags::{Priority, ReportRequest};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use p1::parser::{ApduParser, Event};
use std::error::Error;
use std::time::Instant;
use store::queue::commit_one;
use store::{BatchId, Options, QueueStore};

/// Length of a content, in octets.
const OCTETS: usize = 1_000;
/// Recipients prepared per slice, as in the node.
const SLICE: usize = 1_000;
/// Typical octets of one read from a connection.
const PIECE: usize = 16 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let recipients: usize = args.next().map_or(Ok(14_000), |n| n.parse())?;
    let directory = args.next().map_or_else(|| std::env::temp_dir().join("recipients"), Into::into);
    let store = store::open(&directory, Options::default())?;
    for (what, known, local) in [
        ("unknown here", 0, true),
        ("known here, a mailbox each", recipients.min(1_000), true),
        ("for a peer", 0, false),
    ] {
        println!("{recipients} recipients {what}");
        arrival(&*store, recipients, known, local)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = run();
    println!("  {what:<28} {:>9.3} ms", start.elapsed().as_secs_f64() * 1e3);
    done
}

fn name(address: &str) -> Result<ORName, Box<dyn Error>> {
    let address: ORAddress = address.parse()?;
    Ok(ORName { address, directory_name: None })
}

fn engine_of(
    own: &str,
    users: impl Iterator<Item = String>,
    routes: &[(&str, RouteTarget)],
) -> Result<Engine, Box<dyn Error>> {
    let route = |(prefix, to): &(&str, RouteTarget)| -> Result<Route, Box<dyn Error>> {
        Ok(Route { prefix: prefix.parse()?, to: *to })
    };
    let address =
        |text: String| -> Result<String, Box<dyn Error>> { Ok(canonical(&text.parse()?)) };
    Ok(Engine::new(Config {
        mta: MtaName(format!("MTA-{own}")),
        domain: GlobalDomainId::new("IT", "NET", Some(own)),
        routes: routes.iter().map(route).collect::<Result<_, _>>()?,
        mailboxes: users.map(address).collect::<Result<_, _>>()?,
        alternate_recipient: None,
        content_max: Default::default(),
        accepted_max: u64::MAX,
        returned_max: 10 << 20,
        forms: Default::default(),
        expire: engine::Periods::default(),
        classify: engine::classify::Policy::default(),
        clearances: Default::default(),
        salt: 0,
        epoch: 1,
    }))
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn arrival(
    store: &dyn QueueStore,
    recipients: usize,
    known: usize,
    local: bool,
) -> Result<(), Box<dyn Error>> {
    let (act, naples) = ("/C=IT/ADMD=NET/PRMD=ACT", "/C=IT/ADMD=NET/PRMD=NAPLES");
    let user = |n: usize| format!("{act}/O=HEADQUARTERS/S=USER{n}");
    let peer = |n| RouteTarget::Peer(PeerId(n));
    let mut there = engine_of(
        "NAPLES",
        std::iter::once(format!("{naples}/S=OPS")),
        &[(act, peer(0)), (naples, RouteTarget::Local)],
    )?;
    let to_act = if local { RouteTarget::Local } else { peer(1) };
    let mut here = engine_of("ACT", (0..known).map(user), &[(act, to_act), (naples, peer(0))])?;
    let to = |n: usize| -> Result<PerRecipientSubmissionFields, Box<dyn Error>> {
        let recipient = name(&user(n))?;
        let report_request = ReportRequest::NonDelivery;
        Ok(PerRecipientSubmissionFields { recipient, report_request, ..Default::default() })
    };
    let envelope = MessageSubmissionEnvelope {
        originator: name(&format!("{naples}/S=OPS"))?,
        original_eits: None,
        content_type: ContentType::p772(),
        content_identifier: Some("ref 1".to_owned()),
        priority: Priority::Normal,
        indicators: Default::default(),
        deferred_delivery_time: None,
        recipients: (0..recipients).map(to).collect::<Result<_, _>>()?,
        extensions: Extensions::default(),
        unknown: Vec::new(),
    };
    let now = Utc(1_767_323_045_000_000);
    let content = Content { length: OCTETS as u64, ..Content::default() };
    let mailbox = canonical(&envelope.originator.address);
    let sent = timed("submit (there)", || there.submit(now, &mailbox, &envelope, &content, &[]))?;
    let record = &sent.accepted.entries.first().ok_or("no entry")?.record;
    let payload = timed("transfer payload (there)", || {
        there.transfer_payload(record, Dialect::Modern.into())
    });
    let mut octets = payload.head.to_vec();
    octets.resize(octets.len() + OCTETS, b'x');
    octets.extend_from_slice(&payload.tail);
    println!("  {} octets on the wire", octets.len());
    let head = timed("parse", || parse(&octets))?;
    let mut prepared = here.begin(&head);
    let mut longest = 0.0_f64;
    timed("prepare (keys and routes)", || {
        loop {
            let start = Instant::now();
            let done = here.prepare(&mut prepared, &head, SLICE);
            longest = longest.max(start.elapsed().as_secs_f64());
            if done {
                break;
            }
        }
    });
    println!("    its longest slice          {:>9.3} ms", longest * 1e3);
    timed("clone of the envelope", || std::hint::black_box(head.clone()));
    let taken = timed("accept", || here.accept_prepared(now, head, &content, prepared, &[]));
    println!("  {} entries", taken.accepted.entries.len());
    let body = vec![b'x'; OCTETS];
    let batch = timed("batch (encodes)", || {
        engine::batch(&taken.accepted, BodySource::Octets(Bytes::from(body)))
    });
    let (seen, entries): (Vec<Op>, Vec<Op>) =
        batch.into_iter().partition(|op| matches!(op, Op::PutSeen { .. }));
    let only = |ops| timed_commit(store, ops);
    only(("commit of the entries", entries.clone()))?;
    only(("commit of the keys", seen))?;
    let is_entry = |op: &&Op| matches!(op, Op::PutEntry { .. });
    if let Some(Op::PutEntry { record, .. }) = entries.iter().find(is_entry) {
        println!("  record of {} octets", record.len());
        timed("peek of a record", || engine::Record::peek(record).is_ok());
        let record = timed("decode of a record", || engine::Record::decode(record))?;
        timed("payload of a record", || here.transfer_payload(&record, Dialect::Modern.into()));
        timed("expire", || here.expire(now, &record));
        timed("reroute", || here.reroute(now, &record, &[]));
    }
    Ok(())
}

fn timed_commit(
    store: &dyn QueueStore,
    (what, ops): (&str, Vec<Op>),
) -> Result<(), Box<dyn Error>> {
    let what = format!("{what} ({})", ops.len());
    Ok(timed(&what, || commit_one(store, BatchId(0), ops))?)
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn parse(octets: &[u8]) -> Result<MtsApduHead, Box<dyn Error>> {
    let (mut parser, mut head) = (ApduParser::new(16 << 20), None);
    let mut longest = 0.0_f64;
    for piece in octets.chunks(PIECE) {
        let start = Instant::now();
        parser.push(piece, &mut |event: Event<'_>| {
            if let Event::Head(found) = event {
                head = Some(found);
            }
        })?;
        longest = longest.max(start.elapsed().as_secs_f64());
    }
    println!("    its longest piece          {:>9.3} ms", longest * 1e3);
    head.ok_or_else(|| "no envelope".into())
}
