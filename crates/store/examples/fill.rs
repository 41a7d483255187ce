//! Fills a new store with messages for one peer, as the engine makes them from submissions: the
//! state of a daemon stopped or killed with a long queue.
//!
//! `cargo run --release -p store --example fill -- DIRECTORY MESSAGES PEER DOMAIN PEER-DOMAIN
//! [OCTETS]`

use base::rng::Rng;
use base::{PeerId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{BodySource, Digest, Op};
use engine::{Config, Content, Engine, Route, RouteTarget, canonical};
use p1::content_type::ContentType;
use p1::extension::{Dialect, Extensions};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use std::error::Error;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use store::queue::commit_one;
use store::{BatchId, Committed, Options};

/// Default length of a content, in octets.
const OCTETS: usize = 1_000;
/// Messages per commit.
const GROUP: u64 = 2_000;
/// Database cache while filling, in octets.
const CACHE: usize = 512 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| args.next().ok_or(format!("give {what}"));
    let directory = PathBuf::from(next("a directory")?);
    let messages: u64 = next("a number of messages")?.parse()?;
    let peer = PeerId::of_name(&next("the name of a peer")?);
    let own: ORAddress = next("an address prefix of the site")?.parse()?;
    let beyond = next("an address prefix of the peer")?;
    let octets = args.next().map_or(Ok(OCTETS), |octets| octets.parse())?;
    let store = store::open(&directory, Options { cache: CACHE, ..Options::default() })?;
    let mut filler = Filler::new(&own, peer, &beyond, octets)?;
    let mut made = 0;
    while made < messages {
        let count = GROUP.min(messages - made);
        let group: Vec<_> =
            (0..count).map(|n| filler.submission(made + n)).collect::<Result<_, _>>()?;
        let numbered = (made..).map(BatchId).zip(group).collect();
        store.commit(numbered).into_iter().try_for_each(Committed::into_result)?;
        made += count;
        // As a daemon does while its queue grows.
        while store.tidy()? > 0 {}
    }
    let name = "epoch".to_owned();
    let epoch = Op::PutMeta { name, value: Bytes::copy_from_slice(&1u32.to_be_bytes()) };
    commit_one(&*store, BatchId(messages), vec![epoch])?;
    Ok(())
}

/// Makes submissions.
struct Filler {
    engine: Engine,
    mailbox: String,
    envelope: MessageSubmissionEnvelope,
    content: Bytes,
    rng: Rng,
    from: Utc,
}

impl Filler {
    fn new(
        own: &ORAddress,
        peer: PeerId,
        beyond: &str,
        octets: usize,
    ) -> Result<Filler, Box<dyn Error>> {
        let user: ORAddress = format!("{own}/S=OPS").parse()?;
        let recipient: ORAddress = format!("{beyond}/S=OPS").parse()?;
        let named = |address: ORAddress| ORName { address, directory_name: None };
        let to_peer = Route { prefix: beyond.parse()?, to: RouteTarget::Peer(peer) };
        let mailbox = canonical(&user);
        Ok(Filler {
            engine: Engine::new(Config {
                mta: MtaName("MTA-FILL".to_owned()),
                domain: GlobalDomainId::new("IT", "NET", None),
                routes: vec![to_peer],
                mailboxes: [mailbox.clone()].into(),
                alternate_recipient: None,
                content_max: Default::default(),
                accepted_max: u64::MAX,
                returned_max: 10 << 20,
                forms: Default::default(),
                expire: Default::default(),
                classify: engine::classify::Policy::default(),
                clearances: Default::default(),
                salt: 0,
                epoch: 1,
            }),
            mailbox,
            envelope: MessageSubmissionEnvelope {
                originator: named(user),
                original_eits: None,
                content_type: ContentType::p772(),
                content_identifier: None,
                priority: p1::grade::split(Precedence::Routine).0,
                indicators: Default::default(),
                deferred_delivery_time: None,
                recipients: vec![PerRecipientSubmissionFields {
                    recipient: named(recipient),
                    ..PerRecipientSubmissionFields::default()
                }],
                extensions: Extensions::default(),
                unknown: Vec::new(),
            },
            content: vec![b'X'; octets].into(),
            rng: Rng::new(1),
            from: now()?,
        })
    }

    /// The change that accepts the next submission. The precedences take turns.
    fn submission(&mut self, number: u64) -> Result<Vec<Op>, Box<dyn Error>> {
        let level =
            Precedence::from_number((number % 6).try_into()?).unwrap_or(Precedence::Routine);
        let (priority, qualifier) = p1::grade::split(level);
        self.envelope.priority = priority;
        self.envelope.content_identifier = Some(format!("FILL{number:010}"));
        let extension = qualifier.extension(Dialect::Modern);
        self.envelope.extensions = Extensions(extension.into_iter().collect());
        let mut key = [0; 32];
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&self.rng.next_u64().to_be_bytes());
        }
        let content = Content { length: self.content.len() as u64, ..Content::default() };
        let at = Utc(self.from.0 + number);
        let done =
            self.engine.submit(at, &self.mailbox, &self.envelope, &content, &[Digest(key)])?;
        Ok(engine::batch(&done.accepted, BodySource::Octets(self.content.clone())))
    }
}

#[expect(clippy::disallowed_methods, reason = "messages are as old as their making")]
fn now() -> Result<Utc, Box<dyn Error>> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(Utc(u64::try_from(since.as_micros())?))
}
