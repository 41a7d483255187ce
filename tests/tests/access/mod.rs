//! Who may bind and who may not, and what a flood of strangers does to the others: real daemons on
//! loopback, clients at addresses of their own.

mod client;

use client::{Answer, Client, is_open, mta, tcp, user};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;
use testbed::clock::Deadline;
use testbed::{Pair, PeerSettings, Site, SiteLocation};

/// Longest wait for what takes no time worth mentioning, on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// Where the peers are.
const PEER: Ipv4Addr = Ipv4Addr::new(127, 7, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(127, 7, 1, 1);
/// Where nobody is.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 8, 0, 1);

/// The site `here` with the peers `peer` (from anywhere) and `far` (from 127.7.1.0/24).
struct Here {
    site: Site,
    peer: SocketAddr,
    far: SocketAddr,
}

impl Here {
    fn start(settings: &[(&str, toml::Value)]) -> Here {
        let place = SiteLocation::new();
        let (peer, far) = (place.free_port().unwrap(), place.free_port().unwrap());
        // Nobody is called: the channels are opened by traffic, and there is none.
        let remote = TcpListener::bind((place.ip(), 0)).unwrap().local_addr().unwrap();
        let one = |name: &str, listen: SocketAddr, from: &str| {
            format!(
                r#"
                [[peer]]
                name = "{name}"
                mta_name = "MTA-{}"
                password = {{ file = "secrets/ours" }}
                expect = {{ file = "secrets/theirs" }}
                {from}
                [[peer.channel]]
                name = "all"
                precedences = ["deferred", "routine", "priority", "immediate", "flash", "override"]
                remote = "{remote}"
                listen = "{listen}"
                connection = "on-demand"
                "#,
                name.to_uppercase()
            )
        };
        let text = one("peer", peer, "") + &one("far", far, "from = [\"127.7.1.0/24\", \"::1\"]");
        let mut table: toml::Table = toml::from_str(&text).unwrap();
        let mut builder = Site::builder("here").users(&["Rossi", "Bianchi"]);
        builder = builder.set("peer", table.remove("peer").unwrap());
        for (key, value) in settings {
            builder = builder.set(key, value.clone());
        }
        let mut site = builder.run_with(&["--log-format", "json"]).build().unwrap();
        for (file, password) in [("ours", "harbour"), ("theirs", "lantern")] {
            let path = site.path().join("secrets").join(file);
            let mut options = std::fs::OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(path);
            file.unwrap().write_all(password.as_bytes()).unwrap();
        }
        site.start().unwrap();
        Here { site, peer, far }
    }

    fn user(&self, from: Ipv4Addr, name: &str, password: &str) -> Client {
        user(self.site.p3(), from, &self.site.address(name), password)
    }

    fn password_of(&self, name: &str) -> String {
        let path = self.site.path().join(format!("secrets/user-{name}"));
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// Waits for a refusal whose detail has all of these.
    fn refused(&self, parts: &[&str]) {
        self.site
            .wait_for_events(&format!("a refusal with {parts:?}"), SOON, |events| {
                let mut refusals = events.iter().filter(|e| e.event == "association_refused");
                let all = |e: &&testbed::DaemonEvent| {
                    let detail = e.detail.as_deref().unwrap_or_default();
                    parts.iter().all(|part| detail.contains(part))
                };
                refusals.any(|e| all(&e)).then_some(())
            })
            .unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.site.log()).unwrap()
    }
}

#[test]
fn strangers_get_one_answer_and_the_log_has_name_and_reason() {
    let here = Here::start(&[]);
    let open = mta(here.peer, PEER, "MTA-PEER", "lantern");
    assert_eq!(open.answer, Answer::Open);
    let mut answers = Vec::new();
    for (n, (to, name, password, why)) in [
        (here.peer, "MTA-PEER", "lanterne", "initiator-credentials: wrong password"),
        (here.peer, "MTA-NONE", "lantern", "mta-name: \"MTA-NONE\" is not peer peer's"),
        (here.peer, "MTA-FAR", "lantern", "it is peer far's"),
        (here.far, "MTA-FAR", "lantern", "is not where peer far connects from"),
    ]
    .into_iter()
    .enumerate()
    {
        let from = Ipv4Addr::new(127, 8, 0, 10 + n as u8);
        let client = mta(to, from, name, password);
        assert_eq!(client.answer, Answer::authentication_error(), "{name} from {from}");
        here.refused(&[&from.to_string(), "authentication-error (X.411 12.1.1)", why]);
        answers.push(client.came);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "the octets do not show the reason");
    assert_eq!(mta(here.far, FAR, "MTA-FAR", "lantern").answer, Answer::Open);
    assert!(open.is_there());
    assert!(!here.log().contains("lantern"));
}

#[test]
fn nobody_reads_another_s_mail() {
    let here = Here::start(&[]);
    let [rossi, bianchi] = ["Rossi", "Bianchi"].map(|name| here.password_of(name));
    let to = here.site.address("Bianchi");
    here.site.send("Rossi", &["--to", &to, "--size", "1kB"]).unwrap();
    // Own name and password: one's own mailbox, and what waits for another stays.
    assert_eq!(here.site.receive_waiting("Rossi").unwrap().deliveries.len(), 0);
    // Another's name with one's own password, and a name nobody has.
    let wrong = here.user(STRANGER, "Bianchi", &rossi);
    let unknown = here.user(STRANGER, "Verdi", &rossi);
    for client in [&wrong, &unknown] {
        assert_eq!(client.answer, Answer::authentication_error());
    }
    assert_eq!(wrong.came, unknown.came, "the octets do not show whether the user exists");
    here.refused(&[
        "127.8.0.1",
        "authentication-error (X.411 8.1.1)",
        "wrong password, or no such",
    ]);
    // An MTA has no business there.
    let mta = mta(here.site.p3(), STRANGER, "MTA-PEER", "lantern");
    assert!(matches!(mta.answer, Answer::Below(_)), "{:?}", mta.answer);
    let received = here.site.receive("Bianchi", 1).unwrap();
    assert_eq!(received.messages().count(), 1);
    assert!(!here.log().contains(&rossi) && !here.log().contains(&bianchi));
}

#[test]
fn who_fails_too_often_waits_and_nobody_else_does() {
    let refill = Duration::from_secs(4);
    let here =
        Here::start(&[("limits.failures", 3.into()), ("limits.failure_refill", "4s".into())]);
    let rossi = here.password_of("Rossi");
    // Each from its own address: the log repeats an event once a minute for each.
    for (to_users, last, busy) in [(false, 1, "X.411 12.1.1"), (true, 2, "X.411 8.1.1")] {
        let from = Ipv4Addr::new(127, 8, 0, last);
        let guess = |password: &str| match to_users {
            true => here.user(from, "Rossi", password).answer,
            false => mta(here.peer, from, "MTA-PEER", password).answer,
        };
        let right = if to_users { rossi.as_str() } else { "lantern" };
        let begun = Deadline::after(refill);
        let mut wrong = 0;
        // Each another one: of a peer the same again is no other guess. A slow machine may earn one
        // more meanwhile.
        while guess(&format!("guess {wrong}")) == Answer::authentication_error() {
            wrong += 1;
            assert!(wrong <= 3 || begun.left().is_zero(), "{wrong} guesses");
        }
        assert!(wrong >= 3, "{wrong}");
        here.refused(&[&format!("bind from {from}: busy"), busy, "limits.failures"]);
        // The true one, from where it is.
        let true_one = match to_users {
            true => here.user(PEER, "Rossi", right),
            false => mta(here.peer, PEER, "MTA-PEER", right),
        };
        assert_eq!(true_one.answer, Answer::Open);
        // Recovery.
        let bound = Deadline::after(SOON).wait_for("the allowance to fill", || {
            let answer = guess(right);
            assert!(answer == Answer::busy() || answer == Answer::Open, "{answer:?}");
            Ok((answer == Answer::Open).then_some(()))
        });
        bound.unwrap();
    }
}

/// CR of class 0, source reference 7.
const CR: [u8; 11] = [3, 0, 0, 11, 6, 0xE0, 0, 0, 0, 7, 0];

#[test]
fn one_too_many_receives_congestion_or_busy() {
    let here = Here::start(&[
        ("limits.associations_per_address", 3.into()),
        ("limits.associations_per_channel", 2.into()),
    ]);
    let open: Vec<Client> = (0..2).map(|_| mta(here.peer, PEER, "MTA-PEER", "lantern")).collect();
    assert_eq!(mta(here.peer, FAR, "MTA-PEER", "lantern").answer, Answer::busy());
    here.refused(&["busy (X.411 12.1.1)", "limits.associations_per_channel = 2"]);
    let third = here.user(PEER, "Rossi", &here.password_of("Rossi"));
    assert_eq!(third.answer, Answer::Open);
    let mut fourth = tcp(here.site.p3(), PEER);
    fourth.write_all(&CR).unwrap();
    let mut came = Vec::new();
    fourth.read_to_end(&mut came).unwrap();
    // DR to reference 7, reason 1, and nothing after it.
    assert_eq!((came[5..11].to_vec(), came.len()), (vec![0x80, 0, 7, 0, 0, 1], 34), "{came:x?}");
    here.refused(&["127.7.0.1: congestion (X.224 6.6)", "limits.associations_per_address = 3"]);
    assert!(open.iter().chain([&third]).all(Client::is_there));
    // A place is free again.
    drop(third);
    let bound = Deadline::after(SOON).wait_for("a place", || {
        let answer = here.user(PEER, "Rossi", &here.password_of("Rossi")).answer;
        Ok((answer == Answer::Open).then_some(()))
    });
    bound.unwrap();
}

/// Connections that send nothing.
const FLOOD: u16 = 1_000;

#[test]
fn a_thousand_half_open_connections_are_in_nobody_s_way() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let builder = Pair::builder(PeerSettings::default()).unwrap();
    let act_p1 = builder.act_listens()[0];
    let mut pair = builder.each(|s| s.run_with(&["--log-format", "json"])).start().unwrap();
    let up = |site: &Site| {
        site.wait_until("an association", SOON, |s| s.associations().count() >= 2).unwrap();
    };
    up(&pair.act);
    // From twenty addresses, to both ports in turn, from before the message to after it.
    let flood: Vec<_> = (0..FLOOD)
        .map(|n| {
            let to = if n % 2 == 0 { act_p1 } else { pair.act.p3() };
            tcp(to, Ipv4Addr::new(127, 9, 0, (n % 20) as u8 + 1))
        })
        .collect();
    let send = |pair: &Pair| {
        let to = pair.act.address("OPS");
        pair.naples.send("OPS", &["--to", &to, "--size", "1kB,100kB"]).unwrap();
        let received = pair.act.receive("OPS", 2).unwrap();
        assert_eq!(received.messages().count(), 2);
    };
    // Over associations that were there, with users that bind now.
    send(&pair);
    let lost = |site: &Site| {
        let events = site.events().unwrap();
        events.into_iter().filter(|e| e.event == "association_lost").collect::<Vec<_>>()
    };
    assert!(lost(&pair.naples).is_empty(), "{:?}", lost(&pair.naples));
    // Over associations that have to be made now.
    pair.naples.stop().unwrap();
    pair.naples.start().unwrap();
    up(&pair.act);
    send(&pair);
    let held = flood.iter().filter(|stream| is_open(stream)).count();
    assert!((64..=256).contains(&held), "{held} of {FLOOD} are held");
    // A line or two for each address, not for each connection.
    let refusals: Vec<_> = pair.act.events().unwrap();
    let refusals = refusals.iter().filter(|e| e.event == "association_refused").count();
    assert!((1..=60).contains(&refusals), "{refusals} lines");
    let key = |e: &&testbed::DaemonEvent| {
        e.detail.as_deref().is_some_and(|d| d.contains("limits.half_open"))
    };
    assert!(pair.act.events().unwrap().iter().any(|e| key(&e)));
}

#[test]
fn the_admin_socket_is_the_daemon_s_user_s_alone() {
    let mut site = Site::builder("naples").build().unwrap();
    site.start().unwrap();
    let data = site.path().join("data");
    let socket = data.join("admin.sock");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&data)), (0o600, 0o700));
    if !nix::unistd::geteuid().is_root() {
        print_line("another user was not tried: that needs root");
        return;
    }
    let mta = testbed::Programs::find().unwrap().mta;
    let as_nobody = || {
        let mut command = Command::new(&mta);
        command.args(["status", "--config"]).arg(site.config()).uid(65_534).gid(65_534);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(site.path(), 0o755);
    open(&site.config(), 0o644);
    open(&data, 0o755);
    let denied = as_nobody();
    assert!(denied.contains("only by the daemon's user"), "{denied}");
    // Somebody opened it: the daemon looks for itself.
    open(&socket, 0o666);
    let denied = as_nobody();
    assert!(denied.contains("not permitted: only to the daemon's user and root"), "{denied}");
    let log = std::fs::read_to_string(site.log()).unwrap();
    assert!(log.contains("a user without permission on the admin socket"), "{log}");
    assert!(log.contains("65534"), "{log}");
    site.status().unwrap();
}

/// Prints a line that is shown if a test passes, too.
fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
