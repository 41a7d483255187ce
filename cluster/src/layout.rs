//! The configurations, users and relays of a trial.

use crate::client::Clients;
use crate::mailbox::BOX;
use crate::message::{PROBE, Place, USERS, User, WATCH};
use crate::world::{Node, World};
use anyhow::{Context as _, Result, bail};
use database::{Options, Relay, Trio};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::{
    ChannelAddresses, PeerConfig, PeerSettings, Programs, Site, SiteBuilder, SiteLocation, password,
};
use toml::{Table, Value};

/// The account with which the nodes use the database.
const ROLE: &str = "mta_run";
/// The foreign sites.
const FOREIGN: [Place; 2] = [Place::East, Place::West];
/// Channels: few, so that a lower precedence meets a higher one on them.
const CHANNELS: [(&str, &[&str]); 2] = [
    ("urgent", &["immediate", "flash", "override"]),
    ("other", &["deferred", "routine", "priority"]),
];

/// What a world is to be like.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The directory for everything but the database.
    pub(crate) directory: PathBuf,
    /// The daemon and the client.
    pub(crate) programs: Programs,
    /// Nodes of the site.
    pub(crate) nodes: usize,
    /// One node on the embedded store, and no database.
    pub(crate) embedded: bool,
    /// Each server of the database has a disk of its own of so many MB.
    pub(crate) disk: Option<u32>,
    /// Seconds without a sign of life after which a node's part is taken over.
    pub(crate) lease: u32,
    /// The longest life of the database.
    pub(crate) lifetime: Duration,
}

/// Addresses by foreign site and channel.
type Addresses = Vec<Vec<SocketAddr>>;

/// Ports for each foreign site and channel at one place.
fn ports(place: &SiteLocation) -> Result<Addresses> {
    let of_channels = |_| CHANNELS.iter().map(|_| place.free_port()).collect();
    FOREIGN.iter().map(of_channels).collect()
}

/// Relays before all these addresses, in order.
fn relays(to: &[Vec<SocketAddr>]) -> Result<Vec<Vec<Relay>>> {
    let of_channels = |of: &Vec<SocketAddr>| of.iter().map(|to| Relay::start(*to)).collect();
    to.iter().map(of_channels).collect()
}

fn addresses(relays: &[Vec<Relay>]) -> Addresses {
    relays.iter().map(|of| of.iter().map(Relay::address).collect()).collect()
}

fn link() -> PeerSettings {
    PeerSettings {
        channels: CHANNELS.to_vec(),
        // A cut of some seconds must be noticed within the trial.
        transfer_timeout: Some("20s".to_owned()),
        timeouts: vec![("connect", "5s"), ("setup", "10s"), ("dead_after", "20s")],
        ..PeerSettings::default()
    }
}

fn peer(place: Place, remotes: &[SocketAddr], listen: &[SocketAddr]) -> PeerConfig {
    let ends = remotes.iter().zip(listen);
    let ends = ends.map(|(&remote, &listen)| ChannelAddresses { remote, listen: vec![listen] });
    PeerConfig { name: place.name().to_owned(), link: link(), ends: ends.collect() }
}

/// Two passwords: what `hq` presents to a foreign site, and what that presents.
type Secrets = Vec<(String, String)>;

/// Makes everything; nothing is started but the database and the relays.
///
/// # Errors
/// PostgreSQL is [`Missing`](database::Missing), a port is not free, a program fails.
pub(crate) fn build(wanted: &Wanted) -> Result<World> {
    let trio = match wanted.embedded {
        true => None,
        false => Some(Trio::start(database_options(wanted)).context("the database")?),
    };
    let secrets: Result<Secrets> =
        FOREIGN.iter().map(|_| Ok((password("hq")?, password("foreign")?))).collect();
    let secrets = secrets?;
    let places: Vec<SiteLocation> = FOREIGN.iter().map(|_| SiteLocation::new()).collect();
    // What the foreign sites listen at for hq: by site and channel.
    let abroad: Result<Addresses> =
        (places.iter()).map(|place| CHANNELS.iter().map(|_| place.free_port()).collect()).collect();
    let abroad = abroad?;
    let mut nodes = Vec::new();
    for number in 0..wanted.nodes {
        nodes.push(node(wanted, number, &abroad, &secrets, trio.as_ref())?);
    }
    let (mut foreign, mut fronts) = (Vec::new(), Vec::new());
    for (index, place) in places.into_iter().enumerate() {
        let listen = abroad.get(index).context("a foreign site")?;
        let inward: Addresses = (0..CHANNELS.len())
            .map(|channel| nodes.iter().filter_map(|node| node.inward_at(index, channel)).collect())
            .collect();
        let front: Result<Vec<Relay>> = inward.iter().map(|to| Relay::over(to)).collect();
        let front = front?;
        let remotes: Vec<SocketAddr> = front.iter().map(Relay::address).collect();
        let builder = builder(wanted, *FOREIGN.get(index).context("a foreign site")?, place);
        let (ours, theirs) = secrets.get(index).context("passwords")?;
        let site = builder.peer(peer(Place::Hq, &remotes, listen), theirs, ours).build()?;
        if !connects_to_all(&site, &inward)? {
            fronts.extend(front);
        }
        foreign.push(site);
    }
    let clients = Clients::new(&wanted.programs.xuxa, &wanted.directory, wanted.nodes);
    let mut world = World { nodes, foreign, trio, clients, fronts };
    prepare(wanted, &world)?;
    users(&mut world)?;
    Ok(world)
}

fn database_options(wanted: &Wanted) -> Options {
    let lifetime = wanted.lifetime;
    match wanted.disk {
        // Little room for the log, so that what fills the disk is the data.
        Some(megabytes) => Options::new()
            .lifetime(lifetime)
            .disk(megabytes)
            .set("max_wal_size", "96MB")
            .set("wal_keep_size", "64MB"),
        None => Options::new().lifetime(lifetime),
    }
}

fn builder(wanted: &Wanted, place: Place, location: SiteLocation) -> SiteBuilder {
    let mut builder = Site::builder(place.name())
        .programs(wanted.programs.clone())
        .below(&wanted.directory)
        .place_at(location)
        .users(&[])
        .run_with(&["--log-format", "json"]);
    for precedence in ["override", "flash", "immediate", "priority", "routine", "deferred"] {
        let retry = format!("precedence.retry.{precedence}");
        builder =
            builder.set(&format!("{retry}.first"), "1s").set(&format!("{retry}.longest"), "3s");
    }
    builder
}

/// One node with its relays.
fn node(
    wanted: &Wanted,
    number: usize,
    abroad: &[Vec<SocketAddr>],
    secrets: &Secrets,
    trio: Option<&Trio>,
) -> Result<Node> {
    let place = SiteLocation::new();
    let (listen, p7) = (ports(&place)?, place.free_port()?);
    let (inward, outward) = (relays(&listen)?, relays(abroad)?);
    let mut builder = builder(wanted, Place::Hq, place).set("p7.listen", p7.to_string());
    let remotes = addresses(&outward);
    let ends = FOREIGN.iter().zip(&remotes).zip(&listen).zip(secrets);
    for (((foreign, remotes), listen), (ours, theirs)) in ends {
        builder = builder.peer(peer(*foreign, remotes, listen), ours, theirs);
    }
    let mut database = Vec::new();
    if let Some(trio) = trio {
        for server in trio.servers() {
            database.push(Relay::start(server.address())?);
        }
        let [a, b, c] = database.as_slice() else { bail!("three servers") };
        let url = trio.url_through(&[a.address(), b.address(), c.address()], ROLE);
        builder = builder
            .set("store.engine", "postgres")
            .set("store.url", url)
            .set("cluster.node", format!("n{}", number + 1))
            .set("cluster.lease", format!("{}s", wanted.lease));
    }
    Ok(Node { site: builder.build()?, p7, inward, outward, database })
}

/// Has a foreign site connect to each node by its own list of addresses; whether its daemon knows such
/// lists. If not, it connects to a relay that leads to the first node which takes the connection.
fn connects_to_all(site: &Site, inward: &[Vec<SocketAddr>]) -> Result<bool> {
    let before = fs::read_to_string(site.config())?;
    let mut table: Table = toml::from_str(&before).context("our own configuration")?;
    let channels = table.get_mut("peer").and_then(|peers| peers.get_mut(0));
    let channels = channels.and_then(|peer| peer.get_mut("channel")).and_then(Value::as_array_mut);
    for (channel, to) in channels.context("a peer with channels")?.iter_mut().zip(inward) {
        let list = to.iter().map(|address| Value::from(address.to_string())).collect();
        channel
            .as_table_mut()
            .context("a channel")?
            .insert("remote".to_owned(), Value::Array(list));
    }
    fs::write(site.config(), toml::to_string(&table)?)?;
    if site.mta(&["check"])?.code == 0 {
        return Ok(true);
    }
    fs::write(site.config(), before)?;
    Ok(false)
}

/// Makes the tables.
fn prepare(wanted: &Wanted, world: &World) -> Result<()> {
    let (Some(trio), Some(node)) = (&world.trio, world.nodes.first()) else { return Ok(()) };
    trio.primary().role(ROLE)?;
    let mut prepare = std::process::Command::new(&wanted.programs.mta);
    prepare.args(["store", "prepare", "--owner-url", &trio.url("postgres"), "--config"]);
    let output = prepare.arg(node.site.config()).output().context("mta store prepare")?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("mta store prepare ended with {}: {}", output.status, printed.trim());
    }
    Ok(())
}

/// Adds all users, each with one password at all nodes, and writes the profiles of their clients.
fn users(world: &mut World) -> Result<()> {
    for place in Place::ALL {
        let home = world.clients.home(place);
        fs::create_dir(&home)?;
        let names: &[&'static str] = match place {
            Place::Hq => &[USERS[0], USERS[1], PROBE.name, BOX.name],
            Place::East | Place::West => &[USERS[0], USERS[1], WATCH],
        };
        let mut profiles = Table::new();
        for &name in names {
            let user = User::new(place, name);
            let is_box = user == BOX;
            let secret = password(name)?;
            write_secret(&home.join(name), &secret)?;
            for (number, site) in world.sites_of(place).into_iter().enumerate() {
                let address = user.address();
                let add = ["user", "add", &address, "--delivery", "store"];
                let add = if is_box { &add[..] } else { &add[..3] };
                let run = site.mta_with_input(add, &format!("{secret}\n"))?;
                // The nodes of one site share their users.
                if run.code != 0 && number == 0 {
                    bail!("mta user add {address} ended with {}: {}", run.code, run.stderr.trim());
                }
                let mut profile = Table::new();
                profile.insert("mta".to_owned(), Value::from(site.p3().to_string()));
                profile.insert("user".to_owned(), Value::from(address));
                let file = Table::from_iter([("file".to_owned(), Value::from(name))]);
                profile.insert("password".to_owned(), Value::Table(file));
                profile.insert("inbox".to_owned(), Value::from(format!("inbox-{name}")));
                if let Some(p7) = world.nodes.get(number).filter(|_| is_box).map(|node| node.p7) {
                    profile.insert("store".to_owned(), Value::from(p7.to_string()));
                }
                profiles.insert(Clients::profile(user, number), Value::Table(profile));
            }
        }
        let file = Table::from_iter([("profile".to_owned(), Value::Table(profiles))]);
        fs::write(home.join("xuxa.toml"), toml::to_string(&file)?)?;
    }
    Ok(())
}

fn write_secret(path: &Path, secret: &str) -> Result<()> {
    fs::write(path, format!("{secret}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(())
}
