//! The configuration file: TOML, read as a whole, with every error reported at its position.
//!
//! Unknown keys are refused. The file never contains secrets. Relative paths are relative to the
//! file's directory.

mod address;
pub mod problem;
mod profile;
pub mod resolved;
pub mod section;
pub mod tree;
pub mod value;

pub use address::{NoAddress, canonical_address, whole_address};
pub use problem::Findings;
pub use section::listen::clash;
pub use section::route::Routes;
pub use section::site::{ChannelSocket, EventLog, ListenSocket, Numbering, Paths, Site, Tcp};
pub use section::store::engine::StoreEngine;

use self::problem::Problems;
use self::section::peer::ReadPeer;
use self::section::{
    clearance, clock, events, limits, listen, metrics, peer, precedence, route, secret, store,
    tracking,
};
use self::tree::{Section, TOP};
use base::PeerId;
use node::config::{Clearances, NodeConfig, Numbers};
use node::{ChannelId, Secret};
use p1::Clearance;
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::text::{StringType, Text};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::DeTable;

/// Longest configuration file.
const MAX_FILE: u64 = 4 << 20;

/// Default of the longest wait for the node to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a directory cannot be the daemon's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The reason.
    pub why: String,
    /// The operator's remedy, as a sentence.
    pub remedy: String,
}

/// The file could not be read at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the configuration {path:?}: {error}")]
pub struct Unreadable {
    path: PathBuf,
    error: std::io::Error,
}

/// Reads and checks a configuration file with the process's environment. The site is `Some` only
/// if the findings have no error; they may have warnings. `unfit` returns why a directory cannot
/// hold the daemon's files.
pub fn load(
    path: &Path,
    unfit: &dyn Fn(&Path) -> Option<Unfit>,
) -> Result<(Option<Site>, Findings), Unreadable> {
    load_text(path, &Numbering::default(), unfit)
}

/// The same while a site runs: its channels and listeners keep their numbers, and its data
/// directory is not checked.
pub fn load_after(
    path: &Path,
    running: &Numbering,
) -> Result<(Option<Site>, Findings), Unreadable> {
    load_text(path, running, &|_| None)
}

fn load_text(
    path: &Path,
    running: &Numbering,
    unfit: &dyn Fn(&Path) -> Option<Unfit>,
) -> Result<(Option<Site>, Findings), Unreadable> {
    let text = read_text(path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let environment = |name: &str| std::env::var(name).ok();
    let source = secret::Source { base: directory, environment: &environment, directory: unfit };
    Ok(parse(&path.display().to_string(), &text, &source, running))
}

/// The same from text: `file` is its name in the findings, `base` the directory that paths are
/// relative to, `environment` reads a variable.
pub fn read(
    file: &str,
    text: &str,
    base: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> (Option<Site>, Findings) {
    let source = secret::Source { base, environment, directory: &|_| None };
    parse(file, text, &source, &Numbering::default())
}

/// Reads only the paths of a configuration file, for commands that need only these. Secrets may be
/// missing.
pub fn load_paths(path: &Path) -> Result<(Option<Paths>, Findings), Unreadable> {
    load_part(path, |top, problems| read_own_paths(top, problems, path))
}

/// Reads only the paths of a configuration file, and where its queue and users are.
pub fn load_places(path: &Path) -> Result<(Option<(Paths, StoreEngine)>, Findings), Unreadable> {
    load_part(path, |top, problems| {
        let paths = read_own_paths(top, problems, path)?;
        let base = path.parent().unwrap_or(Path::new("."));
        let environment = |name: &str| std::env::var(name).ok();
        let source = secret::Source { base, environment: &environment, directory: &|_| None };
        let engine = store::engine::read(top, problems, &source);
        (!problems.any_fatal()).then_some((paths, engine))
    })
}

/// The same for commands that only ask a running daemon: of a file that is not TOML, what can be
/// read without its wrong lines. The paths may be `Some` though the findings have an error.
pub fn recover_paths(path: &Path) -> Result<(Option<Paths>, Findings), Unreadable> {
    let octets = read_octets(path)?;
    let text = String::from_utf8_lossy(&octets);
    let (right, error) = without_wrong_lines(&text);
    let (mut problems, mut of_paths) = (Problems::default(), Problems::default());
    if let Err(error) = std::str::from_utf8(&octets) {
        let at = error.valid_up_to();
        let message = format!("line {}: not UTF-8", line_of_invalid_utf8(&octets, &error));
        of_paths.error(at..at, message, "here", "write the file in UTF-8");
    }
    let (root, _) = DeTable::parse_recoverable(&right);
    let mut top = Section::new(TOP, 0..0, root.get_ref());
    let paths = read_own_paths(&mut top, &mut of_paths, path);
    match error {
        // What else is wrong is usually its consequence.
        Some(error) => syntax(&mut problems, &error),
        None => problems = of_paths,
    }
    Ok((paths, problems.into_findings(&path.display().to_string(), &text)))
}

/// Most lines of a file that are not TOML and are left out.
const MAX_WRONG_LINES: usize = 64;

/// A text with spaces for each line that is not TOML, and its first error.
fn without_wrong_lines(text: &str) -> (String, Option<toml::de::Error>) {
    let (mut right, mut first) = (text.to_owned(), None);
    for _ in 0..MAX_WRONG_LINES {
        let Err(error) = DeTable::parse(&right) else { break };
        let at = error.span().map_or(0, |span| span.start);
        let before = right.get(..at).unwrap_or_default();
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        let length = right.get(begin..).unwrap_or_default().lines().next().map_or(0, str::len);
        first.get_or_insert(error);
        right.replace_range(begin..begin + length, &" ".repeat(length));
    }
    (right, first)
}

fn read_own_paths(top: &mut Section<'_>, problems: &mut Problems, file: &Path) -> Option<Paths> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut section = own_section(top, problems)?;
    read_paths(&mut section, problems, directory, &|_| None)
}

/// Reads only the name of the MTA of a configuration file.
pub fn load_name(path: &Path) -> Result<(Option<String>, Findings), Unreadable> {
    load_part(path, |top, problems| {
        let mut section = own_section(top, problems)?;
        let remedy = "write name = \"MTA-NAPLES\"";
        section.required(problems, "name", remedy, &value::name).map(Spanned::into_inner)
    })
}

/// Reads only where the queue is, with the password of its database; `None` if it is wrong or missing.
pub fn load_engine(path: &Path) -> Result<(Option<StoreEngine>, Findings), Unreadable> {
    let base = path.parent().unwrap_or(Path::new("."));
    let environment = |name: &str| std::env::var(name).ok();
    let source = secret::Source { base, environment: &environment, directory: &|_| None };
    load_part(path, |top, problems| {
        let engine = store::engine::read(top, problems, &source);
        (!problems.any_fatal()).then_some(engine)
    })
}

/// Reads only the routes of a configuration file; `None` if any of them is wrong.
pub fn load_routes(path: &Path) -> Result<(Option<Routes>, Findings), Unreadable> {
    load_part(path, |top, problems| {
        let peers = top.tables(problems, "peer");
        let names: Vec<_> = peers.into_iter().map(|peer| peer::read_name(peer, problems)).collect();
        let routes = route::read(top, problems, &names);
        (!problems.any_fatal()).then(|| Routes(routes))
    })
}

fn load_part<T>(
    path: &Path,
    read: impl FnOnce(&mut Section<'_>, &mut Problems) -> Option<T>,
) -> Result<(Option<T>, Findings), Unreadable> {
    let text = read_text(path)?;
    let mut problems = Problems::default();
    let part = match DeTable::parse(&text) {
        Ok(root) => read(&mut Section::new(TOP, 0..0, root.get_ref()), &mut problems),
        Err(error) => {
            syntax(&mut problems, &error);
            None
        }
    };
    Ok((part, problems.into_findings(&path.display().to_string(), &text)))
}

fn read_octets(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let read = || {
        if std::fs::metadata(path)?.len() > MAX_FILE {
            return Err(std::io::Error::other(format!("larger than {MAX_FILE} octets")));
        }
        std::fs::read(path)
    };
    read().map_err(|error| Unreadable { path: path.to_owned(), error })
}

fn read_text(path: &Path) -> Result<String, Unreadable> {
    String::from_utf8(read_octets(path)?).map_err(|error| {
        let line = line_of_invalid_utf8(error.as_bytes(), &error.utf8_error());
        let error = std::io::Error::other(format!("line {line}: not UTF-8"));
        Unreadable { path: path.to_owned(), error }
    })
}

/// The line, counted from 1, of the first octet that is not UTF-8.
fn line_of_invalid_utf8(octets: &[u8], error: &std::str::Utf8Error) -> usize {
    let before = octets.get(..error.valid_up_to()).unwrap_or_default();
    before.iter().filter(|octet| **octet == b'\n').count() + 1
}

fn syntax(problems: &mut Problems, error: &toml::de::Error) {
    let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
    let span = error.span().unwrap_or(0..0);
    problems.error(span, format!("not TOML: {message}"), "here", "see https://toml.io/en/v1.0.0");
}

/// Checks the text of a configuration file.
fn parse(
    file: &str,
    text: &str,
    source: &secret::Source<'_>,
    running: &Numbering,
) -> (Option<Site>, Findings) {
    let mut problems = Problems::default();
    let profiles = profile::Texts::load(text, source.base);
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut root = root.into_inner();
    // Errors after the first one are usually its consequences.
    for error in errors.iter().take(1) {
        syntax(&mut problems, error);
    }
    // If the syntax is wrong, the meaning is unclear: only the syntax error is reported.
    let site = match errors.is_empty() {
        true => {
            profiles.apply(&mut root, &mut problems);
            read_site(&root, &mut problems, source, running)
        }
        false => None,
    };
    let site = site.filter(|_| !problems.any_fatal());
    (site, problems.into_findings(file, text))
}

fn read_site(
    root: &DeTable<'_>,
    problems: &mut Problems,
    source: &secret::Source<'_>,
    running: &Numbering,
) -> Option<Site> {
    let mut top = Section::new(TOP, 0..0, root);
    let own = read_own(&mut top, problems, source);
    let events = events::read(&mut top, problems, own.as_ref().map(|own| &own.paths));
    let tracking = tracking::read(&mut top, problems);
    let limits = limits::read(&mut top, problems);
    let mut precedence = precedence::read(&mut top, problems);
    precedence.times.clock = clock::read(&mut top, problems);
    let mut listeners = listen::Listeners::after(running);
    let p3 = listen::read_p3(&mut top, problems, &mut listeners);
    let engine = store::engine::read(&mut top, problems, source);
    let store = store::p7::read(&mut top, problems, &mut listeners);
    let own_name = own.as_ref().map_or("", |own| own.mta.0.as_str());
    let mut names = Vec::new();
    let mut peers = Vec::new();
    for section in top.tables(problems, "peer") {
        let (name, peer) = peer::read(section, problems, own_name, precedence.plan, source);
        names.push(name);
        peers.push(peer);
    }
    check_names(problems, &names);
    let before = problems.count();
    let routes = route::read(&mut top, problems, &names);
    if let Some(own) = &own {
        route::check_alternate(problems, &routes, own.alternate.as_ref());
    }
    if problems.count() == before {
        route::unreached(problems, &routes, p3, &names);
    }

    // Peers keep their numbers only if all are usable: otherwise the site is refused anyway.
    let peers: Vec<ReadPeer> = peers.into_iter().flatten().collect();
    let mut parts = assemble(peers, problems, &mut listeners, &running.channels);
    for channel in parts.peers.iter_mut().flat_map(|peer| &mut peer.channels) {
        channel.rts.longest_pause = precedence.longest_pause;
    }
    let clearances = Clearances {
        peers: parts.cleared,
        users: clearance::read(&mut top, problems, &routes),
        open_contents: clearance::open_contents(&mut top, problems),
    };
    let metrics = metrics::read(&mut top, problems, &listeners);
    top.finish(problems);
    let own = own?;
    Some(Site {
        paths: own.paths,
        stop_timeout: own.stop_timeout,
        disk_reserve: own.disk_reserve,
        events,
        tracking,
        metrics,
        engine,
        node: NodeConfig {
            mta: own.mta,
            domain: own.domain,
            peers: parts.peers,
            listeners: listeners.node,
            routes,
            mailboxes: Vec::new(),
            alternate_recipient: own
                .alternate
                .map(|to| ORName { address: to.into_inner(), directory_name: None }),
            store,
            classify: precedence.policy,
            clearances,
            hold: precedence.hold,
            times: precedence.times,
            minimize: precedence.minimize,
            limits,
            seed: 0,
            epoch: 0,
            salt: 0,
        },
        listeners: listeners.sockets,
        channels: parts.channels,
        expected: parts.expected,
        numbering: Numbering { channels: parts.numbers, listeners: listeners.numbers },
    })
}

/// `[mta]`.
struct Own {
    mta: MtaName,
    domain: GlobalDomainId,
    paths: Paths,
    stop_timeout: Duration,
    disk_reserve: Option<u64>,
    alternate: Option<Spanned<ORAddress>>,
}

fn own_section<'a>(top: &mut Section<'a>, problems: &mut Problems) -> Option<Section<'a>> {
    if !top.has("mta") {
        let remedy = "add [mta] with name, country, admd and data_dir";
        problems.error(0..0, "the file lacks the section [mta]", "no [mta] in this file", remedy);
    }
    top.table(problems, "mta")
}

fn read_own(
    top: &mut Section<'_>,
    problems: &mut Problems,
    source: &secret::Source<'_>,
) -> Option<Own> {
    let mut section = own_section(top, problems)?;
    let remedy = "write name = \"MTA-NAPLES\": 1 to 32 characters";
    let mta = section.required(problems, "name", remedy, &value::mta_name);
    let remedy = "write country = \"IT\": ISO 3166 letters or an X.121 number";
    let country = section.required(problems, "country", remedy, &|v| address::country(v));
    let remedy = "write admd = \"…\", or \" \" for none";
    let admd = section.required(problems, "admd", remedy, &|v| address::domain_name(v));
    let prmd = section.optional(problems, "prmd", &|v| address::domain_name(v));
    let paths = read_paths(&mut section, problems, source.base, source.directory);
    let stop_timeout = section.optional(problems, "stop_timeout", &value::duration);
    let disk_reserve = section.optional(problems, "disk_reserve", &value::size);
    let alternate = section.optional(problems, "alternate_recipient", &address::or_address);
    section.finish(problems);
    Some(Own {
        mta: MtaName(mta?.into_inner()),
        domain: GlobalDomainId {
            country: country?.into_inner(),
            admd: admd?.into_inner(),
            prmd: prmd.map(Spanned::into_inner),
        },
        paths: paths?,
        stop_timeout: stop_timeout.map_or(STOP_TIMEOUT, Spanned::into_inner),
        disk_reserve: disk_reserve.map(Spanned::into_inner),
        alternate,
    })
}

/// Octets in the path of a Unix socket (unix(7): 108 with the NUL at the end).
const MAX_SOCKET: usize = 107;

fn read_paths(
    section: &mut Section<'_>,
    problems: &mut Problems,
    directory: &Path,
    unfit: &dyn Fn(&Path) -> Option<Unfit>,
) -> Option<Paths> {
    let remedy = "write data_dir = \"/var/lib/mta\"";
    let data_dir = section.required(problems, "data_dir", remedy, &value::name);
    let admin = section.optional(problems, "admin_socket", &value::name);
    let written = data_dir?;
    let place = written.span();
    let data_dir = directory.join(written.into_inner());
    if let Some(Unfit { why, remedy }) = unfit(&data_dir) {
        let message = format!("data_dir of [mta]: {why}");
        problems.error(place, message, "here", remedy);
    }
    if let Some(path) = &admin
        && directory.join(path.get_ref()).as_os_str().len() > MAX_SOCKET
    {
        let message = "the path of admin_socket is too long for a socket";
        let remedy = format!("write a path of at most {MAX_SOCKET} octets, as \"/run/mta.sock\"");
        problems.error(path.span(), message, "here", remedy);
    }
    let admin_socket = match admin {
        Some(path) => directory.join(path.into_inner()),
        None => data_dir.join("admin.sock"),
    };
    Some(Paths { data_dir, admin_socket })
}

fn check_names(problems: &mut Problems, names: &[Option<Spanned<String>>]) {
    let mut first: BTreeMap<&str, Range<usize>> = BTreeMap::new();
    for name in names.iter().flatten() {
        let text = name.get_ref().as_str();
        if text == route::LOCAL {
            let message = format!("a peer is named {text:?}");
            problems.error(name.span(), message, "here", "routes use this word for this MTA");
        }
        match first.get(text) {
            Some(span) => {
                let message = format!("two peers are named {text:?}");
                problems.error(name.span(), message, "again", "rename one of them");
                problems.see_also(span.clone(), "first here");
            }
            None => {
                first.insert(text, name.span());
            }
        }
    }
    let mut identifiers: BTreeMap<PeerId, &str> = BTreeMap::new();
    for name in names.iter().flatten() {
        let text = name.get_ref().as_str();
        let other = identifiers.insert(PeerId::of_name(text), text);
        if let Some(other) = other.filter(|other| *other != text) {
            let message = format!("the peers {other:?} and {text:?} get the same identifier");
            problems.error(name.span(), message, "here", "rename one of them: names are hashed");
        }
    }
}

/// The peers, divided into three tables by peer or channel.
struct Parts {
    peers: Vec<node::config::Peer>,
    channels: BTreeMap<ChannelId, ChannelSocket>,
    expected: BTreeMap<PeerId, Secret>,
    numbers: Numbers<(PeerId, String)>,
    cleared: BTreeMap<PeerId, Clearance>,
}

fn assemble(
    read: Vec<ReadPeer>,
    problems: &mut Problems,
    listeners: &mut listen::Listeners<'_>,
    running: &Numbers<(PeerId, String)>,
) -> Parts {
    let mut parts = Parts {
        peers: Vec::new(),
        channels: BTreeMap::new(),
        expected: BTreeMap::new(),
        numbers: Numbers::after(running),
        cleared: BTreeMap::new(),
    };
    for peer in read {
        let mut node = peer.node;
        let peer_id = node.id();
        for mut channel in peer.channels {
            let name = channel.node.name.clone();
            channel.node.index = parts.numbers.give(running, (peer_id, name));
            let id = ChannelId { peer: peer_id, index: channel.node.index };
            listeners.add_channel(problems, id, &channel);
            let hosts = channel.socket.remotes().map(|remote| remote.host.parse());
            node.addresses.extend(hosts.flatten().collect::<Vec<std::net::IpAddr>>());
            node.channels.push(channel.node);
            parts.channels.insert(id, channel.socket);
        }
        parts.peers.push(node);
        parts.expected.insert(peer_id, peer.expected);
        parts.cleared.extend(peer.clearance.map(|clearance| (peer_id, clearance)));
    }
    parts
}

/// The name of a domain: digits are a NumericString, everything else a PrintableString.
fn domain_text(value: String) -> Text {
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    Text { kind: if digits { StringType::Numeric } else { StringType::Printable }, value }
}

#[cfg(test)]
mod tests;
