//! `mta cluster`: a site of several nodes, as its database knows it.

pub(super) mod drain;

use crate::admin::{Answer, Request, ask_within};
use crate::command::error::RequestError;
use crate::command::output::{Daemon, load, print, print_error, print_json};
use crate::command::{DONE, FAILED, PARTLY, WRONG};
use crate::config::Site;
use crate::config::section::store::engine::{Postgres, StoreEngine};
use crate::driver::{database_options, identity_of};
use node::status::SiteStatus;
use postgres_store::{Options, Surveyor};
use site_view::{Examined, Health, Own, SiteReport};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::StoreError;

/// Exit code of `mta cluster status` and `mta check`: the database is away.
pub(in crate::command) const AWAY: u8 = 4;
/// Exit code of these: the database answers, and cannot be used with this configuration.
pub(in crate::command) const UNUSABLE: u8 = 5;

/// The longest wait for a server of the database.
const LIMIT: Duration = Duration::from_secs(3);

/// The longest wait for the daemon of `mta cluster alive`.
const ALIVE: Duration = Duration::from_secs(2);

/// Shows a site of several nodes: nodes, shards, servers of the database.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Shows nodes, shards and servers of the database, and what would happen if a node died now. Needs no daemon.
    ///
    /// Exit codes: 0 healthy, 2 wrong usage or configuration, 3 degraded, 4 the database is away, 5 it cannot be used: it
    /// does not let the account in, or its tables are not those of this release.
    Status(Status),
    /// Ends with 0 if the daemon answers and its node has a lease and is not being drained, else with 1: for the check
    /// of a floating address.
    Alive(Alive),
    /// Forgets a dead node that does not come back: `status` shows it no longer.
    Forget(Forget),
}

#[derive(Debug, clap::Args)]
struct Status {
    /// The configuration file of a node.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Alive {
    #[command(flatten)]
    daemon: Daemon,
}

#[derive(Debug, clap::Args)]
struct Forget {
    /// The configuration file of a node.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// The name of the node that is dead.
    #[arg(value_name = "NODE")]
    node: String,
}

pub(in crate::command) fn run(arguments: &Arguments) -> u8 {
    match &arguments.action {
        Action::Status(status) => show(status),
        Action::Alive(alive) => is_alive(alive),
        Action::Forget(forget) => forget_node(forget),
    }
}

/// The site of a configuration file and its database; `None` after printing why there is none.
fn database_of(config: &Path) -> Option<(Site, Postgres)> {
    let site = load(config)?;
    let StoreEngine::Postgres(database) = &site.engine else {
        print_error(
            "this MTA is not a node of a site: its queue is in the data directory ([store] names no database)",
        );
        return None;
    };
    let database = database.clone();
    Some((site, database))
}

fn surveyor(database: &Postgres) -> Result<Surveyor, StoreError> {
    let options = Options { time_limit: LIMIT, connect_limit: LIMIT, ..database_options(database) };
    Surveyor::new(&database.url, &options)
}

fn show(status: &Status) -> u8 {
    let Some((site, database)) = database_of(&status.config) else { return WRONG };
    let report = match look(&site, &database) {
        Ok(report) => report,
        Err(error) => {
            print_error(&error.to_string());
            return WRONG;
        }
    };
    match status.json {
        true => print_json(&report),
        false => print(&report.to_text()),
    }
    match report.health {
        Health::Healthy => DONE,
        Health::Degraded => PARTLY,
        Health::Unusable => UNUSABLE,
        Health::DatabaseAway => AWAY,
    }
}

fn look(site: &Site, database: &Postgres) -> Result<SiteReport, StoreError> {
    let own = Own {
        mta: site.node.mta.0.clone(),
        node: database.node.as_ref().map(|node| node.name.clone()),
        lease: database.node.as_ref().map_or(Duration::ZERO, |node| node.lease),
    };
    let surveyor = surveyor(database)?;
    let found = surveyor.check().and_then(|()| surveyor.look(true));
    let servers = surveyor.ask_each();
    Ok(match found {
        Ok(survey) => site_view::report(&own, &survey, &servers),
        Err(error) => site_view::unseen(&own, &error, &servers),
    })
}

/// What a node of this configuration would meet at its database.
pub(in crate::command) fn examine(site: &Site, database: &Postgres) -> Examined {
    match surveyor(database) {
        Ok(surveyor) => site_view::examine(
            &surveyor,
            &identity_of(site),
            database.node.as_ref().map(|node| (&*node.name, &*site.paths.data_dir)),
        ),
        Err(error) => Examined::failed(&error),
    }
}

fn is_alive(alive: &Alive) -> u8 {
    let Some(socket) = alive.daemon.socket() else { return WRONG };
    let why = match of_site(&socket) {
        Ok((_, true)) => "the daemon is stopping".to_owned(),
        Ok((site, _)) if !site.lease_holds => format!("node {} has no lease", site.node),
        Ok((site, _)) if site.draining => format!("node {} is being drained", site.node),
        Ok((site, _)) => {
            print(&format!("node {} has a lease\n", site.node));
            return DONE;
        }
        Err(error) => error.to_string(),
    };
    print_error(&why);
    FAILED
}

/// What a daemon knows as a node, and whether it stops.
pub(in crate::command) fn of_site(socket: &Path) -> Result<(SiteStatus, bool), RequestError> {
    let refused = |why: String| RequestError::RefusedOn { socket: socket.to_owned(), why };
    match ask_within(socket, &Request::Status, ALIVE)? {
        Answer::Status(status) => {
            let no_node = || refused("this MTA is not a node of a site".to_owned());
            Ok((status.site.ok_or_else(no_node)?, status.stopping))
        }
        Answer::Error(why) => Err(refused(why)),
        other => Err(other.into()),
    }
}

fn forget_node(forget: &Forget) -> u8 {
    let Some((_, database)) = database_of(&forget.config) else { return WRONG };
    let name = &forget.node;
    match surveyor(&database).and_then(|surveyor| surveyor.forget(name)) {
        Ok(0) => {
            print_error(&format!(
                "no dead node has the name {name}: its lease lasts still, or there is no such node; `mta cluster status` \
                 shows all"
            ));
            FAILED
        }
        Ok(_) => {
            print(&format!("node {name} is forgotten\n"));
            DONE
        }
        Err(error) => {
            print_error(&error.to_string());
            FAILED
        }
    }
}
