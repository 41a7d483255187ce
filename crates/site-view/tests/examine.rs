//! What `mta check` finds at the database of a site.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use database::{Server, server_or_skip};
use postgres_store::{Options, PostgresStore, Site, Surveyor, prepare};
use site_view::{DatabaseFault, Examined, HeldPlace, IDENTITY, Identity, examine};
use std::path::Path;
use std::time::Duration;
use store::cluster::Cluster as _;

fn look(server: &Server, mta: &str, data_dir: &Path) -> Examined {
    let domain = "/ADMD=NET/C=IT/".to_owned();
    let own = Identity { mta: mta.to_owned(), domain };
    let surveyor = Surveyor::new(&server.url("runs"), &Options::default()).unwrap();
    examine(&surveyor, &own, Some(("n1", data_dir)))
}

#[test]
fn what_would_keep_a_node_from_starting_is_found_before_it_starts() {
    let Some(server) = server_or_skip("examine", database::Options::new()) else { return };
    server.role("runs").unwrap();
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let found = look(&server, "MTA-HQ", own.path());
    assert_eq!(found.fault, Some(DatabaseFault::NotPrepared), "{found:?}");
    prepare(&server.url("postgres"), "runs", &Options::default()).unwrap();
    assert_eq!(look(&server, "MTA-HQ", own.path()).error, None);

    let place = HeldPlace::take(own.path()).unwrap();
    let site = Site { node: "n1".to_owned(), place: place.place().cloned(), ..Site::default() };
    let options = Options { site: Some(site), ..Options::default() };
    let node = PostgresStore::open(&server.url("runs"), options).unwrap();
    node.value_or_put(IDENTITY, b"MTA-HQ in /ADMD=NET/C=IT/").unwrap();
    node.join("n1", Duration::from_secs(600)).unwrap();
    let error = |mta, data_dir: &Path| look(&server, mta, data_dir).error.unwrap_or_default();
    assert_eq!(error("MTA-HQ", own.path()), "", "the daemon of this data directory runs");
    assert!(error("MTA-HQ", other.path()).contains("node n1 runs already (host "));
    assert!(error("MTA-WEST", own.path()).contains("has the queue of MTA-HQ in /ADMD=NET/C=IT/"));
}
