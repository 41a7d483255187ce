//! A primary with two quorum standbys: a commit is acknowledged once one of them has it.

use crate::options::Options;
use crate::server::{DATABASE, Server};
use anyhow::{Context as _, Result, bail};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use testbed::clock::Deadline;

/// `promote.sh`, as operators use it: promotes the standby that has most, and the other follows it.
pub const PROMOTE: &str = include_str!("../promote.sh");

/// Names of the servers, by number.
const NAMES: [&str; 3] = ["s0", "s1", "s2"];
/// Longest time until a standby follows its primary, on a busy machine.
const FOLLOWS: Duration = Duration::from_secs(60);
/// Longest run of the script, in seconds.
const SCRIPT: &str = "180";

/// The number of a server of a trio: 0, 1 or 2.
pub type Member = usize;

/// Three servers, one of them the primary.
#[derive(Debug)]
pub struct Trio {
    servers: [Server; 3],
    primary: Member,
}

impl Trio {
    /// Makes the primary `s0` and the standbys `s1` and `s2`, and waits until both follow.
    ///
    /// # Errors
    /// As [`Server::start`] and [`Server::standby_of`].
    pub fn start(options: Options) -> Result<Trio> {
        let primary = Server::start(options.name(NAMES[0]))?;
        let first = Server::standby_of(&primary, NAMES[1])?;
        let second = Server::standby_of(&primary, NAMES[2])?;
        let mut trio = Trio { servers: [primary, first, second], primary: 0 };
        trio.wait_until_they_follow(2)?;
        // Before, a commit would have waited for them. Each names the others, for the time when it is
        // the primary.
        for (server, name) in trio.servers.iter_mut().zip(NAMES) {
            let others: Vec<&str> = NAMES.into_iter().filter(|other| *other != name).collect();
            let any = format!("ANY 1 ({})", others.join(", "));
            server.reload(&[("synchronous_standby_names", &any)])?;
        }
        let quorum = "select count(*) from pg_stat_replication where sync_state = 'quorum'";
        Deadline::after(FOLLOWS)
            .wait_for("two quorum standbys", || Ok((trio.psql(quorum)? == "2").then_some(())))?;
        Ok(trio)
    }

    /// Waits until so many standbys follow the primary.
    ///
    /// # Errors
    /// Fewer do after a minute.
    pub fn wait_until_they_follow(&self, standbys: usize) -> Result<()> {
        let following = "select count(*) from pg_stat_replication where state = 'streaming'";
        Deadline::after(FOLLOWS).wait_for("standbys that follow", || {
            let count: usize = self.psql(following)?.parse().context("a number of standbys")?;
            Ok((count >= standbys).then_some(()))
        })
    }

    /// Which one is the primary.
    pub fn primary_number(&self) -> Member {
        self.primary
    }

    /// The primary.
    #[expect(clippy::indexing_slicing, reason = "the primary is one of the three")]
    pub fn primary(&self) -> &Server {
        &self.servers[self.primary]
    }

    /// The numbers of the others.
    pub fn others(&self) -> [Member; 2] {
        match self.primary {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        }
    }

    /// The servers, by number.
    pub fn servers(&self) -> &[Server; 3] {
        &self.servers
    }

    /// One of them.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn server(&mut self, number: Member) -> Result<&mut Server> {
        self.servers.get_mut(number).with_context(|| format!("no server {number} of three"))
    }

    /// [`Server::psql`] on the primary.
    ///
    /// # Errors
    /// As there.
    pub fn psql(&self, sql: &str) -> Result<String> {
        self.primary().psql(sql)
    }

    /// How this role reaches whichever server is the primary; without the password.
    pub fn url(&self, role: &str) -> String {
        self.url_through(&self.servers.each_ref().map(Server::address), role)
    }

    /// As [`Trio::url`], through what listens at these addresses, one for each server.
    pub fn url_through(&self, addresses: &[SocketAddr; 3], role: &str) -> String {
        let hosts = addresses.map(|address| address.ip().to_string()).join(",");
        let ports = addresses.map(|address| address.port().to_string()).join(",");
        format!(
            "host={hosts} port={ports} dbname={DATABASE} user={role} \
             target_session_attrs=read-write"
        )
    }

    /// Runs `promote.sh` after the loss of the primary, with all that do run; the new primary. The old
    /// one can start as a standby only.
    ///
    /// # Errors
    /// The primary runs, or the script refuses or fails; with what it printed.
    pub fn promote(&mut self) -> Result<Member> {
        let old = self.primary;
        let old_url = self.server(old)?.url_with_password("postgres");
        self.promote_asking(old_url)
    }

    /// The same, where somebody gives this for the old primary.
    ///
    /// # Errors
    /// As there.
    pub fn promote_asking(&mut self, old_url: String) -> Result<Member> {
        let (name, data) = (self.primary().name().to_owned(), self.primary().data().to_owned());
        let mut arguments = vec!["--old".to_owned(), name, "--old-url".to_owned(), old_url];
        arguments.extend(["--old-data".to_owned(), data.display().to_string()]);
        for number in self.others() {
            let server = self.server(number)?;
            let url = server.url_with_password("postgres");
            arguments.push(format!("{}={url}", server.name()));
        }
        let printed = run(self.primary().programs().path("psql"), &arguments)?;
        let winner = printed.trim_end().strip_prefix("promoted ").unwrap_or_default();
        let number = NAMES.iter().position(|name| *name == winner);
        self.primary = number.with_context(|| format!("promote.sh printed {printed:?}"))?;
        Ok(self.primary)
    }

    /// Brings a server back that was lost, as a standby with a new base backup, and waits until it
    /// follows.
    ///
    /// # Errors
    /// It is the primary, or runs, or does not follow.
    pub fn rejoin(&mut self, number: Member) -> Result<()> {
        let (before, rest) = self.servers.split_at_mut(number.min(3));
        let Some((server, after)) = rest.split_first_mut() else {
            bail!("no server {number} of three")
        };
        let primary = match self.primary {
            primary if primary < number => before.get(primary),
            primary => primary.checked_sub(number + 1).and_then(|index| after.get(index)),
        };
        let primary = primary.context("the primary cannot be its own standby")?;
        server.copy(primary)?;
        let name = server.name().to_owned();
        let follows = format!(
            "select count(*) from pg_stat_replication where state = 'streaming' and \
             application_name = '{name}'"
        );
        Deadline::after(FOLLOWS).wait_for("the standby that is back", || {
            Ok((self.psql(&follows)? == "1").then_some(()))
        })
    }
}

/// Runs the script with these arguments; what it printed.
fn run(psql: PathBuf, arguments: &[String]) -> Result<String> {
    let mut script = Command::new("timeout");
    script.args([SCRIPT, "sh", "-s", "--"]).args(arguments).env("PSQL", psql);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut script = script.spawn().context("starting promote.sh")?;
    if let Some(mut stdin) = script.stdin.take() {
        stdin.write_all(PROMOTE.as_bytes()).context("promote.sh")?;
    }
    let output = script.wait_with_output().context("the end of promote.sh")?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("promote.sh ended with {}: {}", output.status, printed.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
