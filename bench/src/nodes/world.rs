//! One site of some nodes, and the site that gets its messages.

use crate::Programs;
use anyhow::{Context as _, Result, bail};
use database::{Options, Trio};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use testbed::{
    ChannelAddresses, PeerConfig, PeerSettings, Site, SiteBuilder, SiteLocation, password,
};

/// The account with which the nodes use the database.
const ROLE: &str = "mta_run";
/// The two sites.
const SITES: [&str; 2] = ["hq", "act"];
/// Longest opening of the first association, with a takeover before it.
const OPEN: Duration = Duration::from_secs(60);
/// Longest life of a database that is not ended in order.
const LIFETIME: Duration = Duration::from_secs(1_800);

/// What the nodes keep their queue in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// The daemon's own files.
    Embedded,
    /// PostgreSQL, whose commits wait for no standby. Two follow.
    Database,
    /// PostgreSQL, whose commits wait for one of two standbys.
    Quorum,
}

/// Processor time so far, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) nodes: f64,
    pub(super) primary: f64,
    /// Of the two standbys together.
    pub(super) standbys: f64,
}

/// What runs.
pub(super) struct World {
    pub(super) nodes: Vec<Site>,
    pub(super) act: Site,
    pub(super) trio: Option<Trio>,
    /// Of the users of the nodes.
    pub(super) secrets: PathBuf,
    _home: TempDir,
}

fn peer(name: &str, associations: u32, ends: ChannelAddresses) -> PeerConfig {
    let link = PeerSettings { associations: Some((associations, 1)), ..PeerSettings::default() };
    PeerConfig { name: name.to_owned(), link, ends: vec![ends] }
}

impl World {
    /// Starts so many nodes and the other site, with so many users each, and waits for an association.
    pub(super) fn start(
        programs: &Programs,
        store: Store,
        nodes: usize,
        users: &[String],
        associations: u32,
    ) -> Result<World> {
        let home = tempfile::Builder::new().prefix("bench-nodes-").tempdir()?;
        let trio = match store {
            Store::Embedded => None,
            Store::Database | Store::Quorum => Some(start_trio(store)?),
        };
        let [ours, theirs] = [password("hq")?, password("act")?];
        let [here, there] = [SiteLocation::new(), SiteLocation::new()];
        let (abroad, first) = (there.free_port()?, here.free_port()?);
        let [hq, act] = SITES;
        let builder = |name: &str| Site::builder(name).programs(programs.site.clone());
        let mut places = vec![(here, first)];
        while places.len() < nodes {
            let place = SiteLocation::new();
            let listen = place.free_port()?;
            places.push((place, listen));
        }
        let mut sites = Vec::new();
        for (number, (place, listen)) in places.into_iter().enumerate() {
            let ends = ChannelAddresses { remote: abroad, listen: vec![listen] };
            let site = builder(hq).place_at(place).users(&[]);
            let site = site.peer(peer(act, associations, ends), &ours, &theirs);
            sites.push(with_store(site, trio.as_ref(), number).below(home.path()).build()?);
        }
        let names: Vec<&str> = users.iter().map(String::as_str).collect();
        let ends = ChannelAddresses { remote: first, listen: vec![abroad] };
        let other = builder(act).place_at(there).users(&names).below(home.path());
        let other = other.peer(peer(hq, associations, ends), &theirs, &ours).build()?;
        let secrets = home.path().join("users");
        let mut world = World { nodes: sites, act: other, trio, secrets, _home: home };
        world.prepare(programs)?;
        world.add_users(&names)?;
        world.start_daemons()?;
        Ok(world)
    }

    fn prepare(&self, programs: &Programs) -> Result<()> {
        let (Some(trio), Some(node)) = (&self.trio, self.nodes.first()) else { return Ok(()) };
        trio.primary().role(ROLE)?;
        let mut prepare = std::process::Command::new(&programs.site.mta);
        prepare.args(["store", "prepare", "--owner-url", &trio.url("postgres"), "--config"]);
        let output = prepare.arg(node.config()).output().context("mta store prepare")?;
        if !output.status.success() {
            bail!("mta store prepare: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    fn add_users(&self, names: &[&str]) -> Result<()> {
        std::fs::create_dir(&self.secrets)?;
        let node = self.nodes.first().context("a node")?;
        for name in names {
            let secret = password(name)?;
            let run =
                node.mta_with_input(&["user", "add", &node.address(name)], &format!("{secret}\n"))?;
            if run.code != 0 {
                bail!("mta user add ended with {}: {}", run.code, run.stderr.trim());
            }
            let file = self.secrets.join(name);
            std::fs::write(&file, format!("{secret}\n"))?;
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&file, private)?;
        }
        Ok(())
    }

    fn start_daemons(&mut self) -> Result<()> {
        for site in self.nodes.iter_mut().chain([&mut self.act]) {
            site.start()?;
        }
        self.act.wait_until("an association", OPEN, |status| {
            status.associations().any(|a| a.state == "idle")
        })?;
        Ok(())
    }

    /// Where this user binds at this node, and as whom.
    pub(super) fn login(&self, node: usize, user: &str) -> Result<load::Login> {
        let site = self.nodes.get(node % self.nodes.len().max(1)).context("a node")?;
        Ok(load::Login {
            mta: site.p3(),
            address: site.address(user),
            password_file: self.secrets.join(user),
        })
    }

    pub(super) fn spent(&self) -> Result<Spent> {
        let mut spent = Spent::default();
        for node in &self.nodes {
            spent.nodes += node.processor_time()?.as_secs_f64();
        }
        if let Some(trio) = &self.trio {
            spent.primary = trio.primary().processor_time()?.as_secs_f64();
            for number in trio.others() {
                let server = trio.servers().get(number).context("a standby")?;
                spent.standbys += server.processor_time()?.as_secs_f64();
            }
        }
        Ok(spent)
    }

    /// Octets of the log of the database so far, and transactions. None without one.
    pub(super) fn written(&self) -> Result<Option<(f64, f64)>> {
        let Some(trio) = &self.trio else { return Ok(None) };
        let sql = "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), xact_commit \
                   from pg_stat_database where datname = current_database()";
        let text = trio.psql(sql)?;
        let mut cells = text.split('|').map(|cell| cell.trim().parse::<f64>());
        let mut next = || cells.next().context("two figures")?.context("a figure");
        Ok(Some((next()?, next()?)))
    }

    /// Stops all daemons.
    pub(super) fn stop(&mut self) -> Result<()> {
        for site in self.nodes.iter_mut().chain([&mut self.act]) {
            let status = site.stop().context("at the end of a measurement")?;
            if !status.success() {
                bail!("the daemon of {} ended with {status}", site.name());
            }
        }
        Ok(())
    }
}

/// As a site would run it: what is durable is on the disk.
fn start_trio(store: Store) -> Result<Trio> {
    let options = Options::new().lifetime(LIFETIME);
    let mut trio = Trio::start(options).context("the database")?;
    if store == Store::Database {
        let primary = trio.primary_number();
        trio.server(primary)?.reload(&[("synchronous_standby_names", "")])?;
    }
    Ok(trio)
}

fn with_store(site: SiteBuilder, trio: Option<&Trio>, number: usize) -> SiteBuilder {
    let Some(trio) = trio else { return site };
    site.set("store.engine", "postgres")
        .set("store.url", trio.url(ROLE))
        .set("cluster.node", format!("n{}", number + 1))
}
