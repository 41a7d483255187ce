//! `[[peer]]`: a peer MTA, its secrets, selectors and channels.

use crate::problem::Problems;
use crate::section::channel::{self, ReadChannel};
use crate::section::{clearance, secret};
use crate::tree::Section;
use crate::value;
use base::Precedence;
use dscp::Plan;
use node::Secret;
use node::config::{MESSAGE_ABORTS, Peer, Release, Resume, X410};
use osi::api::{Mode, Selectors};
use p1::Clearance;
use p1::extension::{CommonName, Dialect, Form, Qualifier};
use p1::names::MtaName;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

const NAME_REMEDY: &str = "write name = \"act\"";

/// A peer as read; its channels are still separate.
pub(crate) struct ReadPeer {
    /// For the node, without channels.
    pub(crate) node: Peer,
    /// The password it must present.
    pub(crate) expected: Secret,
    /// Its channels that could be read.
    pub(crate) channels: Vec<ReadChannel>,
    /// What it is cleared for.
    pub(crate) clearance: Option<Clearance>,
}

/// Reads only a peer's name, but marks the text that would be a secret.
pub(crate) fn read_name(
    mut section: Section<'_>,
    problems: &mut Problems,
) -> Option<Spanned<String>> {
    for key in ["password", "expect"] {
        if let Some(span) = section.literal(key) {
            problems.secret(span);
        }
    }
    section.required(problems, "name", NAME_REMEDY, &value::name)
}

/// Reads one peer. `own` is the name of this MTA. The name is returned even if the peer is not
/// usable, so that routes to it are not reported, too.
pub(crate) fn read(
    mut section: Section<'_>,
    problems: &mut Problems,
    own: &str,
    plan: Plan,
    source: &secret::Source<'_>,
) -> (Option<Spanned<String>>, Option<ReadPeer>) {
    let name = section.required(problems, "name", NAME_REMEDY, &value::name);
    if let Some(name) = &name {
        section.rename(format!("peer {:?}", name.get_ref()));
    }
    let mta_remedy = "write mta_name: the name the peer binds with";
    let mta = section.required(problems, "mta_name", mta_remedy, &value::mta_name);
    let own_name = section.optional(problems, "own_name", &value::mta_name);
    let ours = own_name.as_ref().map_or(own, |name| name.get_ref().as_str());
    if let Some(mta) = mta.as_ref().filter(|mta| mta.get_ref().eq_ignore_ascii_case(ours)) {
        let message = format!("the peer binds as {:?}, which is our own name", mta.get_ref());
        let remedy = "write the name of the peer's MTA; if both really have one name, they must be \
                      in different domains: otherwise each takes the other's messages for looped";
        problems.warning(mta.span(), message, "here", remedy);
    }
    // What it brings is in the section already.
    let profile = section.optional(problems, "profile", &value::name);
    let own_password = secret::read(&mut section, problems, "password", source);
    let expected = secret::read(&mut section, problems, "expect", source);
    let words = [("ia5", false), ("octet", true)];
    let octet = section.optional(problems, "credentials", &|v| value::word(v, &words));
    let profile = profile.map(|profile| profile.span());
    let form = form(&mut section, problems, profile.as_ref());
    let x410 = x410(&mut section, problems);
    check_protocol(problems, section.span(), x410, form.dialect);
    let words = [("initiator", Resume::Initiator), ("either", Resume::Either)];
    let resume = section.optional(problems, "resume", &|v| value::word(v, &words));
    let words = [("release", Release::Release), ("close", Release::Close)];
    let release = section.optional(problems, "release", &|v| value::word(v, &words));
    let from = section.list(problems, "from", &value::prefix);
    if let Some(span) = section.place("psel").filter(|_| x410.is_some()) {
        let message =
            "psel has no effect in X.410 mode, in which we call: there is no presentation layer";
        problems.warning(span, message, "here", "remove it, or write mode = \"normal\"");
    }
    let remote = selectors(&mut section, problems, ["tsel", "ssel", "psel"]);
    let local = selectors(&mut section, problems, ["own_tsel", "own_ssel", "own_psel"]);
    let tpdu_size = section.optional(problems, "tpdu_size", &|v| {
        let size = value::integer(v, 128, 8_192)?;
        if size.is_power_of_two() {
            Ok(u32::try_from(size).unwrap_or(8_192))
        } else {
            let message = format!("a TPDU size of {size} octets");
            Err(crate::tree::Bad::new(message, "class 0 knows powers of two, 128 to 8192"))
        }
    });
    let content_max = section.optional(problems, "content_max", &|v| match value::size(v)? {
        size if (1 << 10..=1 << 40).contains(&size) => Ok(size),
        size => {
            let message = format!("a content_max of {size} octets");
            Err(crate::tree::Bad::new(message, "write a size from 1 KiB to 1 TiB"))
        }
    });
    let aborts = section.optional(problems, "message_aborts", &|v| value::integer(v, 0, 1_000));
    let clearance = clearance::entries(&mut section, problems, "clearance");
    let label = name.as_ref().map_or("?", |name| name.get_ref().as_str()).to_owned();
    let (channels, span) = read_channels(&mut section, problems, &label, plan);
    section.finish(problems);
    check_channels(problems, &label, span, &channels);

    let read = (|| {
        let name = name.as_ref()?;
        Some(ReadPeer {
            node: Peer {
                name: name.get_ref().clone(),
                mta: MtaName(mta?.into_inner()),
                own_name: MtaName(own_name.map_or_else(|| own.to_owned(), Spanned::into_inner)),
                own_password: own_password?,
                octet_credentials: octet.is_some_and(Spanned::into_inner),
                from: from
                    .map(Spanned::into_inner)
                    .unwrap_or_default()
                    .into_iter()
                    .map(Spanned::into_inner)
                    .collect(),
                addresses: Vec::new(),
                form,
                x410,
                resume: resume.map(Spanned::into_inner).unwrap_or_default(),
                release: release.map(Spanned::into_inner).unwrap_or_default(),
                local,
                remote,
                tpdu_size: tpdu_size.map(Spanned::into_inner),
                content_max: content_max.map(Spanned::into_inner),
                message_aborts: aborts.map_or(MESSAGE_ABORTS, |aborts| {
                    u32::try_from(aborts.into_inner()).unwrap_or(MESSAGE_ABORTS)
                }),
                channels: Vec::new(),
            },
            expected: expected?,
            channels: channels.into_iter().flatten().collect(),
            clearance,
        })
    })();
    (name, read)
}

/// Reads the form of what the peer is sent; `profile` is where the peer names its profile, and where what it has from
/// there is.
fn form(
    section: &mut Section<'_>,
    problems: &mut Problems,
    profile: Option<&Range<usize>>,
) -> Form {
    let of_1984 = Dialect::RedBook1984(CommonName::NoForm);
    let words = [("modern", Dialect::Modern), ("1988", Dialect::BlueBook1988), ("1984", of_1984)];
    let extensions = section.optional(problems, "extensions", &|v| value::word(v, &words));
    let words = [("private", Qualifier::Private), ("omit", Qualifier::Omit)];
    let qualifier = section.optional(problems, "qualifier", &|v| value::word(v, &words));
    let explicit = section.optional(problems, "explicit_defaults", &value::boolean);
    let edition = extensions.as_ref().map(|found| *found.get_ref()).unwrap_or_default();
    let has_private = edition == Dialect::Modern;
    let is_private = |found: &&Spanned<Qualifier>| *found.get_ref() == Qualifier::Private;
    if let Some(asked) = qualifier.as_ref().filter(is_private).filter(|_| !has_private) {
        // The peer's own extensions replace those for which its profile has a qualifier.
        let of_profile = |span| profile == Some(&span);
        let is_replaced = of_profile(asked.span())
            && extensions.as_ref().is_some_and(|found| !of_profile(found.span()));
        let year = if edition == Dialect::BlueBook1988 { 1988 } else { 1984 };
        if !is_replaced {
            let message = format!(
                "qualifier = \"private\" and extensions = \"{year}\": that edition has no private \
                 extensions"
            );
            let remedy =
                "write qualifier = \"omit\" (three precedences), or extensions = \"modern\"";
            problems.error(asked.span(), message, "here", remedy);
        }
    }
    let asked = qualifier.map(Spanned::into_inner).unwrap_or_default();
    Form {
        dialect: dialect(section, problems, edition),
        qualifier: if has_private { asked } else { Qualifier::Omit },
        explicit_defaults: explicit.is_none_or(Spanned::into_inner),
    }
}

/// The edition of P1 that the peer has, for that of 1984 with the form of a common name.
fn dialect(section: &mut Section<'_>, problems: &mut Problems, dialect: Dialect) -> Dialect {
    let words = [("none", CommonName::NoForm), ("dda", CommonName::DomainDefined)];
    let common_name = section.optional(problems, "common_name", &|v| value::word(v, &words));
    match (dialect, common_name) {
        (Dialect::RedBook1984(_), Some(common_name)) => {
            Dialect::RedBook1984(common_name.into_inner())
        }
        (_, Some(common_name)) => {
            let remedy =
                "write extensions = \"1984\" too, or remove it: later editions have common names";
            let message = "common_name without extensions = \"1984\" has no effect";
            problems.warning(common_name.span(), message, "here", remedy);
            dialect
        }
        (_, None) => dialect,
    }
}

/// X.410 (1984) mode, where the peer is in it.
fn x410(section: &mut Section<'_>, problems: &mut Problems) -> Option<X410> {
    let words = [("normal", false), ("x410-1984", true)];
    let mode = section.optional(problems, "mode", &|v| value::word(v, &words));
    let has_protocol = section.has("application_protocol");
    let protocol = section.optional(problems, "application_protocol", &|v| match value::integer(
        v,
        1,
        u64::from(u16::MAX),
    )? {
        protocol @ (1 | 12 | 256 | 3072) => Ok(protocol),
        other => {
            let message = format!("an application_protocol of {other}");
            let remedy = "write 12 (P1 of 1988) or 1 (P1 of 1984); 3072 and 256 are the same \
                              with their octets swapped";
            Err(crate::tree::Bad::new(message, remedy))
        }
    });
    let swapped = section.optional(problems, "byte_swapped", &value::boolean);
    if !mode.as_ref().is_some_and(|mode| *mode.get_ref()) {
        let unused = [
            ("application_protocol", protocol.as_ref().map(Spanned::span)),
            ("byte_swapped", swapped.as_ref().map(Spanned::span)),
        ];
        for (key, span) in unused {
            let Some(span) = span else { continue };
            let message = format!("{key} has no effect in normal mode");
            let remedy = "write mode = \"x410-1984\", or remove it";
            problems.warning(span, message, "here", remedy);
        }
        return None;
    }
    // One that is wrong is an error already.
    let protocol = if has_protocol { protocol?.into_inner() } else { 12 };
    Some(X410 {
        protocol: i64::try_from(protocol).unwrap_or(Mode::P1_1988),
        swapped: swapped.is_some_and(Spanned::into_inner),
    })
}

/// applicationProtocol 1 is P1 of 1984, and 12 is not.
fn check_protocol(problems: &mut Problems, span: Range<usize>, x410: Option<X410>, of: Dialect) {
    let Some(x410) = x410 else { return };
    let is_1984 = matches!(of, Dialect::RedBook1984(_));
    let (message, remedy) = match matches!(x410.protocol, 1 | 256) {
        true if !is_1984 => (
            "application_protocol 1 is P1 of 1984, and extensions is not \"1984\"",
            "write extensions = \"1984\", or application_protocol = 12",
        ),
        false if is_1984 => (
            "application_protocol 12 is P1 of 1988, and extensions is \"1984\"",
            "write application_protocol = 1, or extensions = \"1988\" or \"modern\"",
        ),
        _ => return,
    };
    problems.error(span, message, "this peer", remedy);
}

/// Reads three selectors under these keys: transport, session and presentation.
pub(crate) fn selectors(
    section: &mut Section<'_>,
    problems: &mut Problems,
    [tsel, ssel, psel]: [&'static str; 3],
) -> Selectors {
    let mut one = |key, most| {
        let octets = section.optional(problems, key, &|v| value::selector(v, most));
        octets.map(Spanned::into_inner)
    };
    Selectors { transport: one(tsel, 32), session: one(ssel, 16), presentation: one(psel, 64) }
}

/// The channels (an unusable one is `None`) and the position for errors about all of them.
fn read_channels(
    section: &mut Section<'_>,
    problems: &mut Problems,
    peer: &str,
    plan: Plan,
) -> (Vec<Option<ReadChannel>>, Range<usize>) {
    let span = section.span();
    let sections = section.tables(problems, "channel");
    (sections.into_iter().map(|s| channel::read(s, problems, peer, plan)).collect(), span)
}

/// Whether a peer evidently has one port, in both directions: all channels connect to one address, and one listens.
fn has_one_port(channels: &[&ReadChannel]) -> bool {
    let mut remotes = channels.iter().map(|channel| &channel.socket.remote);
    let first = remotes.next();
    let listening = channels.iter().filter(|channel| !channel.listen.is_empty()).count();
    remotes.all(|remote| Some(remote) == first) && listening <= 1
}

/// Checks across the channels of one peer.
fn check_channels(
    problems: &mut Problems,
    peer: &str,
    span: Range<usize>,
    channels: &[Option<ReadChannel>],
) {
    if channels.is_empty() {
        let remedy = "add a [[peer.channel]] section below the peer";
        problems.error(span, format!("peer {peer:?} has no channel"), "this peer", remedy);
        return;
    }
    let usable: Vec<&ReadChannel> = channels.iter().flatten().collect();
    let mut names = BTreeMap::new();
    let mut remotes: BTreeMap<_, Vec<&ReadChannel>> = BTreeMap::new();
    for channel in &usable {
        let name = &channel.node.name;
        if let Some(first) = names.insert(name, channel.name_span.clone()) {
            let message = format!("peer {peer:?} has two channels named {name:?}");
            problems.error(channel.name_span.clone(), message, "again", "rename one of them");
            problems.see_also(first, "first here");
        }
        for remote in channel.socket.remotes() {
            remotes.entry(remote).or_default().push(channel);
        }
    }
    let shared = remotes.iter().filter(|_| !has_one_port(&usable));
    for (remote, its) in shared {
        let [first, again, more @ ..] = its.as_slice() else { continue };
        let message = match more.len() {
            0 => format!("two channels of peer {peer:?} connect to {remote}"),
            more => {
                let names: Vec<String> =
                    its.iter().map(|channel| format!("{:?}", channel.node.name)).collect();
                let (count, names) = (more + 2, names.join(", "));
                format!("{count} channels of peer {peer:?} connect to {remote}: {names}")
            }
        };
        let remedy = "the peer distinguishes channels by port: give each its own, \
                      unless this peer has only one";
        problems.warning(again.remote_span.clone(), message, "again", remedy);
        problems.see_also(first.remote_span.clone(), "first here");
    }
    if usable.len() < channels.len() {
        return; // what an unusable channel was to carry is not known
    }
    let carried = |p: &Precedence| usable.iter().any(|c| c.node.precedences.contains(p));
    let missing: Vec<&str> =
        Precedence::ALL.iter().filter(|p| !carried(p)).map(|p| p.name()).collect();
    if !missing.is_empty() {
        let message = format!("no channel of peer {peer:?} carries {}", missing.join(", "));
        let remedy = "add them to the precedences of a channel: such messages would never leave";
        problems.error(span, message, "this peer", remedy);
    }
}
