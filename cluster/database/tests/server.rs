//! Servers that start, crash, freeze and fill their disks.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

use database::{Options, Relay, Server, Trio, programs_or_skip, server_or_skip};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::clock::pause;

#[test]
fn a_server_keeps_what_it_committed_when_it_is_killed() {
    let Some(mut server) = server_or_skip("a_server", Options::new()) else { return };
    server.psql("create table kept (number integer); insert into kept values (7)").unwrap();
    server.kill().unwrap();
    assert!(!server.is_running());
    assert!(server.psql("select 1").is_err());
    server.launch().unwrap();
    assert_eq!(server.psql("select number from kept").unwrap(), "7");
    server.freeze();
    server.thaw();
    server.restart().unwrap();
    server.reload(&[("work_mem", "5MB")]).unwrap();
    server.restart().unwrap();
    assert_eq!(server.psql("show work_mem").unwrap(), "5MB");
    let (home, data) = (server.socket().to_owned(), server.data().to_owned());
    assert!(data.starts_with(&home));
    drop(server);
    assert!(!home.exists());
}

/// Where it is set, the next test is the helper of the one after it, which starts and kills it.
const OWNER: &str = "DATABASE_OWNER";

#[test]
fn an_owner_that_is_killed() {
    if std::env::var_os(OWNER).is_none() {
        return;
    }
    let server = server_or_skip("an_owner", Options::new()).unwrap();
    let (home, port) = (server.socket().display(), server.address().port());
    println!("home={home}={port}=");
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

#[test]
fn nothing_is_left_of_a_server_whose_owner_is_killed() {
    if programs_or_skip("nothing_is_left").is_none() {
        return;
    }
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--exact", "an_owner_that_is_killed", "--nocapture"]).env(OWNER, "1");
    let mut owner = owner.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let mut homes = lines.filter_map(|line| {
        let line = line.unwrap();
        let (home, port) = line.split_once("home=")?.1.split_once('=')?;
        Some((home.to_owned(), port.trim_end_matches('=').parse::<u16>().unwrap()))
    });
    let (home, port) = homes.next().unwrap();
    assert!(Path::new(&home).join("data").exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let soon = testbed::clock::Deadline::after(Duration::from_secs(30));
    let gone = || Ok((!Path::new(&home).exists()).then_some(()));
    soon.wait_for("the watcher's work", gone).unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// A client of PostgreSQL's own.
fn connect(server: &Server, url: &str) -> bool {
    let mut psql = Command::new(server.programs().path("psql"));
    psql.args(["-X", "-A", "-t", "-c", "select 1", "-d", url]).env_remove("PGPASSWORD");
    if let Some(root) = server.root_certificate() {
        psql.env("PGSSLROOTCERT", root).env("PGSSLMODE", "verify-full");
    }
    psql.output().unwrap().stdout == b"1\n"
}

#[test]
fn a_password_and_a_certificate_are_checked() {
    let options = Options::new().password("it's secret").tls();
    let Some(server) = server_or_skip("a_password", options) else { return };
    server.role("mta_run").unwrap();
    server.role("mta_run").unwrap();
    let url = server.url_with_password("mta_run");
    assert!(connect(&server, &url), "{url}");
    assert!(!connect(&server, &format!("{} password=wrong", server.url("mta_run"))));
    assert!(!connect(&server, &url.replace("sslmode=require", "sslmode=disable")));
}

#[test]
fn a_full_disk_stops_no_more_than_what_writes() {
    let test = "a_full_disk";
    if programs_or_skip(test).is_none() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("    SKIPPED {test}: mounting a small disk needs root");
        return;
    }
    let mut server = Server::start(Options::new().disk(160)).unwrap();
    server.psql("create table kept as select 1 as number").unwrap();
    let ballast = server.fill_disk().unwrap();
    let much = "create table more as select repeat('x', 100) from generate_series(1, 400000)";
    assert!(server.psql(much).is_err());
    std::fs::remove_file(ballast).unwrap();
    if !server.is_running() {
        server.launch().unwrap();
    }
    let again = || Ok(server.psql("select number from kept").ok());
    let soon = testbed::clock::Deadline::after(Duration::from_secs(30));
    assert_eq!(soon.wait_for("an answer", again).unwrap(), "1");
}

#[test]
fn a_trio_survives_the_loss_of_its_primary_with_all_that_was_committed() {
    let Some(programs) = programs_or_skip("a_trio") else { return };
    let mut trio = Trio::start(Options::new().programs(programs)).unwrap();
    trio.psql("create table kept (number integer)").unwrap();
    // Enough for the checkpoint of a promotion to take its time.
    let much = "create table much as select repeat('x', 900) from generate_series(1, 30000)";
    trio.psql(much).unwrap();
    let refused = trio.promote().unwrap_err().to_string();
    assert!(refused.contains("still answers as a primary"), "{refused}");
    // One standby only has what was committed last: the other one must not be promoted.
    trio.server(1).unwrap().kill().unwrap();
    trio.psql("insert into kept select generate_series(1, 1000)").unwrap();
    trio.server(0).unwrap().kill().unwrap();
    let refused = trio.promote().unwrap_err().to_string();
    assert!(refused.contains("s1 does not answer"), "{refused}");
    trio.server(1).unwrap().launch().unwrap();
    assert_eq!(trio.promote().unwrap(), 2, "the one that has it");
    // pg_rewind reads the time line there: with the old one it does nothing, and ends with 0.
    let line = trio.psql("select timeline_id from pg_control_checkpoint()").unwrap();
    assert_eq!(line, "2", "no checkpoint was made");
    assert_eq!(trio.psql("select count(*) from kept").unwrap(), "1000");
    trio.wait_until_they_follow(1).unwrap();
    trio.psql("insert into kept values (1001)").unwrap();

    // The old primary comes back as a standby, even where somebody only starts it.
    trio.server(0).unwrap().launch().unwrap();
    assert_eq!(trio.servers()[0].psql("select pg_is_in_recovery()").unwrap(), "t");
    trio.server(0).unwrap().stop().unwrap();
    trio.rejoin(0).unwrap();
    trio.psql("insert into kept values (1002)").unwrap();

    // And the next loss is survived too.
    trio.server(2).unwrap().kill().unwrap();
    let next = trio.promote().unwrap();
    assert!(next < 2);
    assert_eq!(trio.psql("select count(*) from kept").unwrap(), "1002");
    trio.rejoin(2).unwrap();
    trio.psql("insert into kept values (1003)").unwrap();
    let url = trio.url("postgres");
    assert!(url.contains("target_session_attrs=read-write"), "{url}");
    assert!(connect(&trio.servers()[0], &url), "{url}");
}

/// A slip in `--old-url` reaches another server, or none: the standbys know better.
#[test]
fn a_primary_that_lives_is_not_doubled_whatever_is_asked_for_it() {
    let Some(programs) = programs_or_skip("a_primary_that_lives") else { return };
    let mut trio = Trio::start(Options::new().programs(programs)).unwrap();
    trio.psql("create table kept (number integer)").unwrap();
    let psql = trio.primary().programs().path("psql");
    let primary = trio.url("postgres");
    let standby = trio.server(1).unwrap().url_with_password("postgres");
    for wrong in [standby, "host=127.0.0.1 port=1 dbname=postgres user=postgres".to_owned()] {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // As the nodes of a site, which renew their leases.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let insert = ["-c", "insert into kept values (1)", "-d", &primary];
                    Command::new(&psql).args(insert).output().unwrap();
                    pause(Duration::from_millis(500));
                }
            });
            let refused = trio.promote_asking(wrong).unwrap_err().to_string();
            is_over.store(true, Ordering::Relaxed);
            assert!(refused.contains("receives the log of a primary"), "{refused}");
        });
        assert!(!trio.primary().data().join("standby.signal").exists());
        assert_eq!(trio.servers()[1].psql("select pg_is_in_recovery()").unwrap(), "t");
    }
}

/// Whoever runs the script learns that no commit will be confirmed.
#[test]
fn a_promotion_that_no_standby_follows_is_no_success() {
    let Some(programs) = programs_or_skip("a_promotion") else { return };
    let mut trio = Trio::start(Options::new().programs(programs)).unwrap();
    for number in [1, 2] {
        let server = trio.server(number).unwrap();
        let path = server.data().join("pg_hba.conf");
        let rules = std::fs::read_to_string(&path).unwrap();
        let refuse = "local replication all reject\nhost replication all all reject\n";
        std::fs::write(&path, format!("{refuse}{rules}")).unwrap();
        server.reload(&[]).unwrap();
    }
    trio.server(0).unwrap().kill().unwrap();
    let error = trio.promote().unwrap_err().to_string();
    assert!(error.contains("does not follow") && error.contains("pg_hba.conf"), "{error}");
}

#[test]
fn a_relay_cuts_keeps_silent_and_resumes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Relay::start(listener.local_addr().unwrap()).unwrap();
    let open = || {
        let client = TcpStream::connect(relay.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        client
    };
    let mut octet = [0];
    let mut client = open();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"a").unwrap();
    server.read_exact(&mut octet).unwrap();
    assert_eq!(octet, *b"a");

    relay.silence();
    server.write_all(b"b").unwrap();
    let error = client.read(&mut octet).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    relay.resume();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.read_exact(&mut octet).unwrap();
    assert_eq!(octet, *b"b");

    relay.cut();
    let error = client.read(&mut octet).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(server.read(&mut octet).is_err());
    let mut refused = open();
    refused.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(refused.read(&mut octet).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    relay.resume();
    let mut client = open();
    let (mut server, _) = listener.accept().unwrap();
    drop(client.write_all(b"c"));
    server.read_exact(&mut octet).unwrap();
    assert_eq!(octet, *b"c");
}
