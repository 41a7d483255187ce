//! The binary `mta` as an operator uses it: exit codes, tables, users, start and stop.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

#[path = "command_line/operator.rs"]
mod operator;
#[path = "command_line/recording.rs"]
mod recording;
#[path = "command_line/try_peer.rs"]
mod try_peer;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

fn mta(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mta"));
    command
        .args(arguments)
        .env("MTA_PASSWORD_NAPLES", "vesuvio")
        .env("MTA_PASSWORD_ACT", "etna")
        .env_remove("XUXA_PASSWORD")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

fn result_of(output: &Output) -> (Option<i32>, String, String) {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    result_of(&mta(arguments).output().unwrap())
}

/// A free port below the ephemeral range, so that no other process gets it by chance.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 16_000).unwrap();
    let mut candidates = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    candidates.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// The shipped site `naples` on free ports, in its own directory.
fn site(directory: &Path) -> PathBuf {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/sites/naples.toml");
    let mut text = std::fs::read_to_string(shipped).unwrap();
    for port in [5000, 5001, 5002, 5003, 5004, 5010, 5011, 5100, 5101, 5102, 5103, 5104] {
        let free = free_port();
        text = text.replace(&format!("127.0.0.1:{port}\""), &format!("127.0.0.1:{free}\""));
    }
    let path = directory.join("naples.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn check_shows_what_would_run() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/sites/naples.toml");
    let (code, out, err) = run(&["check", "--config", file]);
    // The shipped site follows the published study; other advice depends on the system.
    assert_eq!(code, Some(0));
    assert!(err.contains("warning: act/priority: it is marked CS1"), "{err}");
    insta::assert_snapshot!(out.replace(file.trim_end_matches("naples.toml"), ""));

    let (code, out, _) = run(&["check", "--config", file, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["ok"]), (Some(0), &true.into()));
    assert_eq!(json["plan"]["channels"][3]["dscp"], 24);
    assert_eq!(json["plan"]["channels"][3]["dscp_name"], "CS3");
    assert_eq!(json["plan"]["channels"][0]["precedences"][0], "deferred");
    let about = |advice: &serde_json::Value| advice["about"] == "act/priority";
    let advice = json["advice"].as_array().unwrap().iter().find(|a| about(a)).unwrap();
    assert_eq!(advice["severity"], "warning");
}

#[test]
fn wrong_configurations_exit_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let bad = directory.path().join("bad.toml");
    std::fs::write(&bad, "[mta]\nname = \"A\"\ncuntry = \"IT\"\n").unwrap();
    let bad = bad.to_str().unwrap();
    let absent = directory.path().join("absent.toml");
    let absent = absent.to_str().unwrap();
    for verb in ["check", "run"] {
        let (code, out, err) = run(&[verb, "--config", bad]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{verb}");
        assert!(err.contains("bad.toml:3:1") && err.contains("did you mean country?"), "{err}");
        let (code, _, err) = run(&[verb, "--config", absent]);
        assert_eq!(code, Some(2), "{verb}");
        assert!(err.contains("absent.toml") && err.contains("No such file"), "{err}");
    }
    let (code, out, _) = run(&["check", "--config", bad, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["ok"]), (Some(2), &false.into()));
    assert_eq!(json["problems"][0]["line"], 1);
    let config = site(directory.path());
    std::fs::create_dir(directory.path().join("data")).unwrap();
    std::fs::write(directory.path().join("data/naples"), "").unwrap();
    for verb in ["check", "run"] {
        let (code, _, err) = run(&[verb, "--config", config.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{verb}");
        assert!(err.contains("data/naples is a file, not a directory"), "{err}");
    }
    assert_eq!(run(&["run"]).0, Some(2), "wrong usage");
    assert_eq!(run(&["status"]).0, Some(2), "wrong usage");
}

#[test]
fn users_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let config = config.to_str().unwrap();
    let user = |verb: &str, rest: &[&str]| {
        let mut arguments = vec!["user", verb, "--config", config];
        arguments.extend(rest);
        mta(&arguments)
    };
    let rossi = "/C=IT/ADMD=NET/PRMD=NAPLES/S=Rossi";

    let mut child =
        user("add", &[rossi]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"stromboli\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let file = directory.path().join("password");
    std::fs::write(&file, "lipari\n").unwrap();
    let verdi = "S=Verdi;PRMD=NAPLES;ADMD=NET;C=IT";
    let add = || user("add", &[verdi, "--password-file", file.to_str().unwrap()]).output().unwrap();
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let (code, _, err) = result_of(&add());
    assert_eq!((code, err.contains("others may read")), (Some(2), true), "{err}");
    mode(0o600);
    assert_eq!(result_of(&add()).0, Some(0));

    let add = user("add", &[rossi]).env("XUXA_PASSWORD", "salina").output().unwrap();
    let (code, out, _) = result_of(&add);
    assert_eq!(code, Some(0));
    assert!(out.contains("password set"), "{out}");

    let (code, out, _) = result_of(&user("list", &[]).output().unwrap());
    assert_eq!(code, Some(0));
    let both = "/c=it/admd=net/prmd=naples/s=rossi\n/c=it/admd=net/prmd=naples/s=verdi\n";
    assert_eq!(out, both);

    let users = directory.path().join("data/naples/users.toml");
    assert_eq!(std::fs::metadata(&users).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&users).unwrap();
    assert!(text.contains("$argon2id$") && !text.contains("lipari") && !text.contains("salina"));

    assert_eq!(result_of(&user("remove", &[verdi]).output().unwrap()).0, Some(0));
    assert_eq!(result_of(&user("remove", &[verdi]).output().unwrap()).0, Some(1), "gone already");
    let empty = user("add", &[verdi]).env("XUXA_PASSWORD", "").output().unwrap();
    let (code, _, err) = result_of(&empty);
    assert_eq!((code, err.as_str()), (Some(2), "mta: a password has 1 to 62 ASCII characters\n"));
    let (code, _, err) = result_of(&user("add", &["garbage"]).output().unwrap());
    assert_eq!((code, err.matches("garbage").count()), (Some(2), 1), "{err}");
    let (code, _, err) =
        result_of(&user("add", &[verdi, "--password-file", "/absent"]).output().unwrap());
    assert_eq!(code, Some(2), "{err}");
}

#[test]
fn only_addresses_below_a_local_route_get_a_mailbox() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let add = |address: &str| {
        // Neither routes nor users need the peers' passwords.
        let file = config.to_str().unwrap();
        let mut command = mta(&["user", "add", "--config", file, address]);
        command.env("XUXA_PASSWORD", "salina").env_remove("MTA_PASSWORD_ACT");
        result_of(&command.output().unwrap())
    };
    for stranger in ["/C=IT/ADMD=NET/PRMD=ACT/S=Rossi", "/C=FR/ADMD=NET/S=Rossi"] {
        let (code, out, err) = add(stranger);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(
            err.contains("no local route") && err.contains("/PRMD=NAPLES/ADMD=NET/C=IT"),
            "{err}"
        );
    }
    assert!(!directory.path().join("data/naples/users.toml").exists());
    assert_eq!(add("/C=IT/ADMD=NET/PRMD=NAPLES/S=Rossi").0, Some(0));

    // With one wrong route, none is used; a secret beside the error is not shown.
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("via = \"act\"", "via = \"ac\"")).unwrap();
    let (code, _, err) = add("/C=IT/ADMD=NET/PRMD=NAPLES/S=Rossi");
    assert_eq!(code, Some(2));
    assert!(err.contains("did you mean \"act\"?"), "{err}");
}

/// A daemon that is killed if a test fails.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    /// Starts the daemon and waits until it logs that it is ready.
    fn start(config: &str) -> (Daemon, impl Iterator<Item = String> + use<>) {
        Daemon::started(&mut mta(&["run", "--config", config, "--log-format", "json"]))
    }

    /// The same, of this command.
    fn started(command: &mut Command) -> (Daemon, impl Iterator<Item = String> + use<>) {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let daemon = Daemon(child);
        assert!(lines.by_ref().any(|line| line.contains("\"started\"")));
        (daemon, lines)
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        let id = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        nix::sys::signal::kill(id, signal).unwrap();
    }
}

#[test]
fn a_clock_behind_the_last_run_s_is_not_trusted_until_an_operator_accepts_it() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let config = config.to_str().unwrap();
    let clock = |rest: &[&str]| run(&[&["clock", "--config", config], rest].concat());
    // The state left by a run whose clock was years ahead of this machine's.
    let end = |mut daemon: Daemon| {
        daemon.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    };
    end(Daemon::start(config).0);
    let queue = directory.path().join("data/naples/queue");
    let name = node::wall::CLOCK.to_owned();
    {
        let store = store::open(&queue, store::Options::default()).unwrap();
        let noted = store.meta(&name).unwrap().expect("an orderly stop notes the time");
        let noted = node::wall::Noted::read(&noted).expect("two times");
        let years = noted.trusted.0 + (1 << 48);
        let value = bytes::Bytes::copy_from_slice(&years.to_be_bytes());
        let batch = vec![engine::journal::Op::PutMeta { name, value }];
        store::queue::commit_one(&*store, store::BatchId(1), batch).unwrap();
        store.close();
    }
    let (daemon, _) = Daemon::start(config);
    let (code, out, _) = clock(&[]);
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains(" s behind of when this MTA last ran"), "{out}");
    assert!(out.contains("if the clock is right: mta clock accept"), "{out}");
    assert!(run(&["status", "--config", config]).1.contains("CLOCK NOT TRUSTED since "));
    assert!(clock(&["--json"]).1.contains("\"trusted\": false"));
    assert_eq!(clock(&["accept"]), (Some(0), "the wall clock is trusted\n".into(), String::new()));
    assert!(!run(&["status", "--config", config]).1.contains("CLOCK"));
    end(daemon);
    let (daemon, _) = Daemon::start(config);
    assert_eq!(clock(&[]).0, Some(0), "and stays so");
    end(daemon);
}

#[test]
fn a_slip_in_the_file_does_not_hide_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let right = std::fs::read_to_string(&config).unwrap();
    let file = config.to_str().unwrap();
    let (_daemon, _) = Daemon::start(file);
    // Not TOML behind [mta], within it, and a value that is none.
    for wrong in [
        format!("{right}\n[limits\n"),
        right.replace("admd = \"NET\"", "admd = NET"),
        right.replace("country = \"IT\"", "country \"IT\""),
    ] {
        assert_ne!(wrong, right);
        std::fs::write(&config, &wrong).unwrap();
        for verb in [&["status"][..], &["queue"], &["minimize"], &["clock"]] {
            let (code, out, err) = run(&[verb, &["--config", file]].concat());
            assert_eq!(code, Some(0), "{verb:?}: {err}");
            assert!(!out.is_empty() && err.contains("not TOML"), "{verb:?}: {err}");
            assert!(err.contains("warning: ") && err.contains("keeps its configuration"), "{err}");
        }
        let (code, _, err) = run(&["reload", "--config", file]);
        assert_eq!(code, Some(2), "a command that reads the file does not: {err}");
        assert!(err.contains("refused, the running configuration is unchanged"), "{err}");
        let (code, out, _) = run(&["reload", "--config", file, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &json["applied"]), (Some(2), &serde_json::json!(false)));
        assert!(json["problems"][0]["line"].is_u64(), "{out}");
    }
    // A comment in Latin-1: the line is named, and the daemon is asked all the same.
    std::fs::write(&config, [right.as_bytes(), b"# caf\xe9\n"].concat()).unwrap();
    let (code, _, err) = run(&["queue", "--config", file]);
    let line = right.lines().count() + 1;
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains(&format!("line {line}: not UTF-8")), "{err}");
    // A mailbox in any form; an unknown one is refused.
    std::fs::write(&config, &right).unwrap();
    let mailbox = |address| run(&["queue", "--config", file, "--mailbox", address]);
    let (code, _, err) = mailbox("/C=IT/ADMD=NET/PRMD=NAPLES/S=NOBODY");
    assert!(code == Some(1) && err.contains("there is no mailbox"), "{err}");
    assert_eq!(mailbox("nonsense").0, Some(2));
    // Where the socket cannot be found, its option is named.
    std::fs::write(&config, right.replace("[mta]", "[mat]")).unwrap();
    let (code, _, err) = run(&["status", "--config", file]);
    assert!(code == Some(2) && err.contains("--socket PATH"), "{err}");
    assert_eq!(run(&["reload", "--config", file]).0, Some(2));
}

#[test]
fn a_daemon_starts_answers_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let config = config.to_str().unwrap();
    let (code, out, err) = run(&["status", "--config", config]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("no daemon answers on"), "{err}");

    let (mut daemon, lines) = Daemon::start(config);
    let socket = directory.path().join("data/naples/admin.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, out, err) = run(&["status", "--config", config]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("MTA-NAPLES at ") && out.contains("flash"), "{out}");
    let (code, out, _) = run(&["status", "--socket", socket.to_str().unwrap(), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["mta"]), (Some(0), &"MTA-NAPLES".into()));

    assert_eq!(json["peers"][0]["channels"][3]["dscp_name"], "CS3");

    // Repeated output where standard output is not a terminal: blocks, or one line each.
    let watch = ["status", "--config", config, "--watch", "0.1", "--count", "3"];
    let (code, out, err) = run(&watch);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.matches("MTA-NAPLES at ").count(), 3);
    assert_eq!(out.matches("\n\nMTA-NAPLES at ").count(), 2);
    assert!(!out.contains('\x1b'), "no control sequences: {out:?}");
    let (code, out, _) = run(&[&watch[..], &["--json"]].concat());
    let lines_are_objects = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    assert_eq!((code, out.lines().filter(|l| lines_are_objects(l)).count()), (Some(0), 3));
    assert_eq!(run(&["status", "--config", config, "--count", "3"]).0, Some(2), "wrong usage");
    assert_eq!(run(&["status", "--config", config, "--watch", "0"]).0, Some(2), "wrong usage");

    let (code, out, _) = run(&["queue", "--config", config]);
    assert_eq!((code, out.as_str()), (Some(0), "nothing waits\n"));
    let (code, _, err) = run(&["queue", "--peer", "act", "hold", "e1", "--config", config]);
    assert!(code == Some(2) && err.contains("after the verb"), "{err}");
    let (code, _, err) = run(&["queue", "delete", "--config", config]);
    assert!(code == Some(2) && err.contains("--all"), "{err}");
    let (code, _, err) = run(&["queue", "delete", "e1", "--config", config]);
    assert!(code == Some(2) && err.contains("write --yes"), "nobody can be asked: {err}");
    let (code, out, _) = run(&["queue", "expire", "--all", "--config", config]);
    assert_eq!((code, out.as_str()), (Some(0), "nothing matches\n"));
    let (code, _, err) = run(&["queue", "reroute", "e1", "--to", "atc", "--config", config]);
    assert!(code == Some(1) && err.contains("there is no peer \"atc\""), "{err}");
    let (code, out, _) = run(&["queue", "hold", "e1", "--config", config]);
    assert_eq!(
        (code, out.as_str()),
        (Some(1), "e1 is not in the queue: it may have gone; see mta trace e1\n")
    );
    let (code, _, err) = run(&["queue", "--config", config, "--peer", "atc"]);
    assert!(code == Some(1) && err.contains("there is no peer \"atc\"; there are: act"), "{err}");
    let minimize = |rest: &[&str]| run(&[&["minimize", "--config", config], rest].concat());
    assert_eq!(minimize(&[]).1, "MINIMIZE is not in force\n");
    let (code, out, _) = minimize(&["flash", "--channel", "act/routine", "--for", "2h"]);
    assert!(code == Some(0) && out.contains("\nact/routine  flash  operator  2"), "{out}");
    assert!(run(&["status", "--config", config]).1.contains(out.lines().nth(1).unwrap()));
    let (code, out, _) = minimize(&["off", "--channel", "act/routine", "--json"]);
    assert_eq!((code, out.as_str()), (Some(0), "[]\n"));
    assert_eq!(minimize(&["flash", "--channel", "routine"]).0, Some(1), "no such channel");
    assert_eq!(minimize(&["--peer", "act"]).0, Some(2), "wrong usage");
    let clock = |rest: &[&str]| run(&[&["clock", "--config", config], rest].concat());
    let trusted = (Some(0), "the wall clock is trusted\n".to_owned(), String::new());
    assert_eq!((clock(&[]), clock(&["accept"])), (trusted.clone(), trusted));
    let (code, out, _) = clock(&["--json"]);
    assert_eq!((code, out.contains("\"trusted\": true")), (Some(0), true), "{out}");
    assert_eq!(clock(&["believe"]).0, Some(2), "wrong usage");

    let (code, _, err) = run(&["run", "--config", config]);
    assert_eq!(code, Some(1), "one daemon a data directory");
    assert!(err.contains("in use by another process"), "{err}");

    // A user added now is known at once.
    let address = "/C=IT/ADMD=NET/PRMD=NAPLES/S=Rossi";
    let add = mta(&["user", "add", "--config", config, address])
        .env("XUXA_PASSWORD", "salina")
        .output()
        .unwrap();
    assert_eq!(add.status.code(), Some(0));

    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    assert!(!socket.exists());
    let log: Vec<String> = lines.collect();
    assert!(log.iter().any(|line| line.contains("read the users again")), "{log:#?}");
    for secret in ["vesuvio", "etna", "salina"] {
        assert!(!log.iter().any(|line| line.contains(secret)));
    }

    // A start after a kill: the epoch increases, and the stale socket is replaced.
    let (mut killed, _) = Daemon::start(config);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    assert!(socket.exists());
    let (mut again, _) = Daemon::start(config);
    again.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(again.0.wait().unwrap().code(), Some(0));
}
