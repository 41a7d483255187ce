//! `mta try` against the daemon, against itself, and against peers of literal octets.

#![allow(
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test ends where it fails, and waits for another process"
)]

use super::{free_port, mta, result_of, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// The passwords of the sites; no output has them.
const PASSWORDS: [&str; 2] = ["vesuvio", "etna"];
const X410: &str = "mode = \"x410-1984\"";

/// Two sites, each the other's peer, with this line for each peer.
struct Sites {
    directory: tempfile::TempDir,
}

impl Sites {
    fn new(line: &str) -> Sites {
        let directory = tempfile::tempdir().unwrap();
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/sites");
        let mut texts = ["naples", "act"].map(|name| {
            let text = std::fs::read_to_string(format!("{shipped}/{name}.toml")).unwrap();
            (name, text.replace("[[peer]]\n", &format!("[[peer]]\n{line}\n")))
        });
        for port in (5000..5012).chain(5100..5112) {
            let free = free_port();
            let (old, new) = (format!("127.0.0.1:{port}\""), format!("127.0.0.1:{free}\""));
            texts.iter_mut().for_each(|(_, text)| *text = text.replace(&old, &new));
        }
        for (name, text) in texts {
            std::fs::write(directory.path().join(format!("{name}.toml")), text).unwrap();
        }
        Sites { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.toml"))
    }

    /// Where the first channel of naples connects to.
    fn remote(&self) -> SocketAddr {
        let text = std::fs::read_to_string(self.file("naples")).unwrap();
        let line = text.lines().find(|line| line.starts_with("remote = ")).unwrap();
        line.split('"').nth(1).unwrap().parse().unwrap()
    }

    /// `mta try` at naples.
    fn call(&self, arguments: &[&str]) -> Output {
        let file = self.file("naples");
        let all = [&["try", "act", "--config", file.to_str().unwrap()], arguments].concat();
        mta(&all).output().unwrap()
    }

    /// `mta try --listen` at act, once it listens.
    fn listen(&self, arguments: &[&str]) -> Child {
        let file = self.file("act");
        let fixed = ["try", "--listen", "naples/routine", "--config", file.to_str().unwrap()];
        let mut command = mta(&[&fixed, arguments].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        self.wait_for_listener();
        child
    }

    /// Until somebody listens, without a connection that would be taken for the peer's.
    fn wait_for_listener(&self) {
        let hex = format!(":{:04X} ", self.remote().port());
        let begun = Instant::now();
        let listens = || {
            let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
            table.lines().any(|line| line.contains(&hex) && line.contains(" 0A "))
        };
        while !listens() {
            assert!(begun.elapsed() < Duration::from_secs(30), "nobody listens");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Exit code and output, which has no password and no line that is too long.
fn shown(output: &Output) -> (Option<i32>, String) {
    let (code, out, err) = result_of(output);
    for password in PASSWORDS {
        let hex: Vec<String> = password.bytes().map(|octet| format!("{octet:02X}")).collect();
        assert!(!out.contains(password) && !err.contains(password), "{out}{err}");
        assert!(!out.contains(&hex.join(" ")), "{out}");
    }
    let is_json = out.starts_with('{');
    assert!(is_json || out.lines().all(|line| line.chars().count() <= 80), "{out}");
    (code, out)
}

fn failure(output: &Output) -> serde_json::Value {
    let (code, out) = shown(output);
    assert_eq!(code, Some(1), "{out}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["ok"], false);
    json["failure"].clone()
}

/// A vector's octets. What stands for a value of the caller's is replaced by its reference.
fn vector(name: &str, theirs: [u8; 2]) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    let text = std::fs::read_to_string(format!("{folder}/{name}.hex")).unwrap();
    let utc: String = b"260101000000Z".iter().map(|octet| format!("{octet:02X} ")).collect();
    let theirs = format!("{:02X} {:02X}", theirs[0], theirs[1]);
    hex(&text.replace("{theirs}", &theirs).replace("{utc}", &utc))
}

fn hex(text: &str) -> Vec<u8> {
    let words = text.lines().flat_map(|line| line.split('#').next().unwrap().split_whitespace());
    words.map(|word| u8::from_str_radix(word, 16).unwrap()).collect()
}

fn read_tpkt(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).unwrap();
    let mut rest = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 4];
    stream.read_exact(&mut rest).unwrap();
    rest
}

/// What a scripted peer does after each packet of ours.
#[derive(Clone, Copy)]
enum Reply {
    /// Sends a vector's file.
    Vector(&'static str),
    /// Sends these octets.
    Hex(&'static str),
    Close,
    /// Keeps the connection and sends nothing.
    Silence,
}

/// Tries a peer that answers so.
fn scripted(replies: &'static [Reply], arguments: &[&str]) -> serde_json::Value {
    let sites = Sites::new("");
    let listener = TcpListener::bind(sites.remote()).unwrap();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut theirs = [0; 2];
        for (number, reply) in replies.iter().enumerate() {
            let packet = read_tpkt(&mut stream);
            if number == 0 {
                theirs = [packet[4], packet[5]];
            }
            match reply {
                Reply::Vector(name) => stream.write_all(&vector(name, theirs)).unwrap(),
                Reply::Hex(text) => stream.write_all(&hex(text)).unwrap(),
                Reply::Close => return,
                Reply::Silence => {}
            }
        }
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let output = sites.call(&[&["--json"], arguments].concat());
    peer.join().unwrap();
    failure(&output)
}

#[test]
fn the_daemon_is_tried_and_a_probe_is_confirmed() {
    let sites = Sites::new("");
    let file = sites.file("act");
    let mut daemon = mta(&["run", "--config", file.to_str().unwrap()]);
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    sites.wait_for_listener();

    let (code, out) = shown(&sites.call(&[]));
    assert_eq!(code, Some(0), "{out}");
    for line in [
        "acse         <- AARE: accepted (0)",
        "                  their name \"MTA-ACT\", as in mta_name",
        "                  their password is the one of expect",
        "session      <- DISCONNECT: agrees to the release",
        "act/routine: opened and released",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }

    let to = "/C=IT/ADMD=NET/PRMD=ACT/S=OPS";
    for message in ["--message", "--message=text"] {
        let (code, out) = shown(&sites.call(&[message, "--to", to]));
        assert_eq!(code, Some(0), "{out}");
        assert!(out.contains("confirmed: they are responsible for it"), "{out}");
    }

    // The daemon has the address that the other verb wants.
    let own = ["try", "--listen", "naples/routine", "--config", file.to_str().unwrap(), "--json"];
    let in_use = failure(&mta(&own).output().unwrap());
    assert!(in_use["change"][0].as_str().unwrap().contains("daemon"), "{in_use}");

    let wrong = ["try", "act", "--json", "--config"];
    let mut wrong = mta(&wrong);
    wrong.arg(sites.file("naples")).env("MTA_PASSWORD_NAPLES", "stromboli");
    let output = wrong.output().unwrap();
    let refused = failure(&output);
    assert_eq!(refused["layer"], "bind", "{refused}");
    assert_eq!(refused["clause"], "X.411 12.1.1");
    assert!(refused["change"][0].as_str().unwrap().contains("password"), "{refused}");
    assert!(!result_of(&output).1.contains("stromboli"));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn the_daemon_is_tried_in_x410_mode_too() {
    let sites = Sites::new(&format!("{X410}\napplication_protocol = 1\nextensions = \"1984\""));
    let file = sites.file("act");
    let mut daemon = mta(&["run", "--config", file.to_str().unwrap()]);
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    sites.wait_for_listener();
    let to = "/C=IT/ADMD=NET/PRMD=ACT/S=OPS";
    let (code, out) = shown(&sites.call(&["--message", "--to", to]));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(code, Some(0), "{out}");
    for line in ["applicationProtocol 1, P1 of 1984", "confirmed: they are responsible for it"] {
        assert!(out.contains(line), "{out}");
    }
}

#[test]
fn both_verbs_understand_each_other_in_both_modes() {
    for (line, mode) in [("", "CP: normal mode"), (X410, "CP: X.410 (1984) mode")] {
        let sites = Sites::new(line);
        let pcap = sites.directory.path().join("try.pcapng");
        let listening = sites.listen(&["--pcap", pcap.to_str().unwrap()]);
        let to = "/C=IT/ADMD=NET/PRMD=ACT/S=OPS";
        let (code, called) = shown(&sites.call(&[]));
        assert_eq!(code, Some(0), "{called}");
        let answered = listening.wait_with_output().unwrap();
        let (_, _, warning) = result_of(&answered);
        let (code, answered) = shown(&answered);
        assert_eq!(code, Some(0), "{answered}");
        assert!(called.contains(mode) && answered.contains(mode), "{called}{answered}");
        assert!(answered.contains("mark of their SYN CS0, the channel's"), "{answered}");
        assert!(warning.contains("will hold passwords"), "{warning}");
        let mode = std::fs::metadata(&pcap).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        // A transfer is not taken, and stays with its sender.
        let listening = sites.listen(&[]);
        let refused = failure(&sites.call(&["--json", "--message", "--to", to]));
        assert_eq!(refused["layer"], "transfer", "{refused}");
        let (code, answered) = shown(&listening.wait_with_output().unwrap());
        assert_eq!(code, Some(0), "{answered}");
        assert!(answered.contains("they begin a transfer: refused for now"), "{answered}");
    }
}

#[test]
fn a_wrong_password_is_explained_at_both_ends_in_both_modes() {
    for line in ["", X410] {
        let sites = Sites::new(line);
        let listening = sites.listen(&["--json"]);
        let mut call = mta(&["try", "act", "--json", "--config"]);
        call.arg(sites.file("naples")).env("MTA_PASSWORD_NAPLES", "stromboli");
        let called = failure(&call.output().unwrap());
        let advice = called["change"][0].as_str().unwrap();
        assert!(advice.contains("they refuse our name or password"), "{called}");
        let answered = failure(&listening.wait_with_output().unwrap());
        assert_eq!(answered["layer"], "bind", "{answered}");
        let reason = answered["reason"].as_str().unwrap();
        assert!(reason.contains("their password is not the one of expect"), "{answered}");

        // Their result has another password than we expect.
        let listening = sites.listen(&["--json"]);
        let mut call = mta(&["try", "act", "--json", "--config"]);
        call.arg(sites.file("naples")).env("MTA_PASSWORD_ACT", "stromboli");
        let called = failure(&call.output().unwrap());
        assert!(called["reason"].as_str().unwrap().contains("their bind result"), "{called}");
        let answered = failure(&listening.wait_with_output().unwrap());
        assert_eq!(answered["layer"], "rtse", "{answered}");
    }
}

#[test]
fn modes_that_differ_are_named_at_both_ends() {
    let (normal, x410) = (Sites::new(""), Sites::new(X410));
    // naples calls in X.410 mode, act has normal mode.
    std::fs::write(x410.file("act"), {
        let text = std::fs::read_to_string(x410.file("act")).unwrap();
        text.replace(X410, "")
    })
    .unwrap();
    let listening = x410.listen(&["--json"]);
    let called = failure(&x410.call(&["--json"]));
    assert!(called["reason"].as_str().unwrap().contains("validationFailure"), "{called}");
    let answered = failure(&listening.wait_with_output().unwrap());
    assert!(answered["change"][0].as_str().unwrap().contains("x410-1984"), "{answered}");
    // Nobody listens there.
    let nobody = failure(&normal.call(&["--json"]));
    assert_eq!(nobody["layer"], "tcp");
    assert!(nobody["change"][0].as_str().unwrap().contains("nothing listens there"), "{nobody}");
}

#[test]
fn refusals_of_each_layer_name_it_and_what_to_change() {
    use Reply::{Hex, Vector};
    const CC: Reply = Vector("refuse-session/02-send");
    let cases: [(&'static [Reply], &str, &str); 10] = [
        (&[Hex("03 00 00 0B 06 80 00 01 00 00 03")], "transport", "ask for their TSEL"),
        (&[Vector("refuse-transport/02-send")], "transport", "own_tsel"),
        (&[CC, Vector("refuse-session/04-send")], "session", "ask for their SSEL"),
        (
            &[CC, Hex("03 00 00 18 02 F0 80 0C 0F 11 01 01 14 02 02 49 32 06 02 30 03 8A 01 03")],
            "presentation",
            "ask for their PSEL",
        ),
        (&[CC, Vector("refuse-context/04-send")], "presentation", "another service"),
        (&[CC, Vector("refuse-acse/04-send")], "acse", "application context"),
        (
            &[CC, Hex("03 00 00 15 02 F0 80 0C 0C 11 01 01 32 07 02 31 04 80 02 00 02")],
            "rtse",
            "they refuse our name or password",
        ),
        // An ABRT whose text has our password.
        (
            &[
                CC,
                Hex(
                    "03 00 00 38 02 F0 80 19 2F 11 01 02 C1 2A A0 28 61 26 30 24 02 01 01 A0 1F 64 1D \
                     80 01 00 BE 18 28 16 06 02 51 01 02 01 03 A0 0D 1A 0B 70 77 20 76 65 73 75 76 \
                     69 6F 21",
                ),
            ],
            "acse",
            "their application refuses",
        ),
        (&[CC, Vector("answer/04-send")], "bind", "mta_name in [[peer]]"),
        (&[Hex("48 54 54 50 2F 31 2E 31 20 34 30 30")], "transport", "RFC 1006 port"),
    ];
    for (replies, layer, change) in cases {
        let refused = scripted(replies, &[]);
        assert_eq!(refused["layer"], layer, "{refused}");
        let all = refused["change"].to_string();
        assert!(all.contains(change), "{refused}");
        let octets = refused["octets"].as_str().map_or(0, str::len);
        let by_us = refused["reason"].as_str().unwrap().starts_with("we refuse");
        assert!(octets > 8 || by_us, "{refused}");
    }
}

#[test]
fn a_peer_that_closes_or_is_silent_is_named() {
    use Reply::{Close, Silence, Vector};
    const CC: Reply = Vector("refuse-session/02-send");
    let closed = scripted(&[Close], &[]);
    assert_eq!(closed["layer"], "tcp", "{closed}");
    assert!(closed["reason"].as_str().unwrap().contains("connect request"), "{closed}");
    let closed = scripted(&[CC, Close], &[]);
    assert!(closed["change"][0].as_str().unwrap().contains("own_name and password"), "{closed}");
    let silent = scripted(&[Silence], &["--timeout", "1s"]);
    assert_eq!(silent["layer"], "transport", "{silent}");
    assert!(silent["reason"].as_str().unwrap().contains("nothing came after"), "{silent}");
    let half = scripted(&[Reply::Hex("03 00 00 0B 06")], &["--timeout", "1s"]);
    assert_eq!(half["layer"], "transport", "{half}");
    let silent = scripted(&[CC, Silence], &["--timeout", "1s"]);
    assert_eq!(silent["layer"], "session", "{silent}");
}

/// Passes packets on between `mta try` and a daemon up to the FINISH; then closes, or passes nothing more.
fn without_finish(listener: &TcpListener, to: SocketAddr, closes: bool) {
    let (mut ours, mut theirs) = (listener.accept().unwrap().0, TcpStream::connect(to).unwrap());
    let (mut back, mut answers) = (ours.try_clone().unwrap(), theirs.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
    loop {
        let packet = read_tpkt(&mut ours);
        if packet.starts_with(&[2, 0xF0, 0x80, 9]) {
            break;
        }
        let length = u16::try_from(packet.len() + 4).unwrap().to_be_bytes();
        theirs.write_all(&[&[3, 0], &length[..], &packet].concat()).unwrap();
    }
    if closes {
        ours.shutdown(std::net::Shutdown::Both).unwrap();
    } else {
        let _ = ours.read_to_end(&mut Vec::new());
    }
}

#[test]
fn a_release_that_is_not_answered_is_stated_in_words() {
    let sites = Sites::new("");
    let daemon_at = sites.remote();
    let mut daemon = mta(&["run", "--config", sites.file("act").to_str().unwrap()]);
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    sites.wait_for_listener();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = std::fs::read_to_string(sites.file("naples")).unwrap();
    let between = listener.local_addr().unwrap().to_string();
    std::fs::write(sites.file("naples"), text.replace(&daemon_at.to_string(), &between)).unwrap();
    for (closes, how) in [(true, "they closed the connection"), (false, "nothing came")] {
        let passing = listener.try_clone().unwrap();
        let passing = std::thread::spawn(move || without_finish(&passing, daemon_at, closes));
        let output = sites.call(&["--json", "--timeout", "3s"]);
        passing.join().unwrap();
        let (_, out, _) = result_of(&output);
        assert!(out.contains("\"result\": \"opened, not released\""), "{out}");
        let failed = failure(&output);
        let reason = format!("FINISH was not answered with DISCONNECT: {how}");
        assert_eq!((&failed["layer"], &failed["reason"]), (&"session".into(), &reason.into()));
        assert!(failed["change"][0].as_str().unwrap().contains("release = \"close\""));
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn the_keys_of_a_peer_are_shown_with_their_source() {
    let sites = Sites::new("profile = \"x410-1984\"\nextensions = \"modern\"");
    let file = sites.file("naples");
    let show = ["check", "--config", file.to_str().unwrap(), "--show", "act"];
    let (code, out, _) = run(&show);
    assert_eq!(code, Some(0), "{out}");
    let row = |words: &[&str]| {
        out.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == words)
    };
    assert!(row(&["peer", "mode", "\"x410-1984\"", "profile", "x410-1984"]), "{out}");
    assert!(row(&["peer", "extensions", "\"modern\"", "peer"]), "{out}");
    assert!(row(&["routine", "reopen.longest", "60s", "default"]), "{out}");
    let (code, out, _) = run(&[&show[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["peer"]), (Some(0), &"act".into()));
    assert_eq!(json["keys"][4]["from"], "profile x410-1984", "{out}");
    let (code, _, why) = run(&[&show[..4], &["oslo"]].concat());
    assert_eq!(code, Some(2));
    assert!(why.contains("there is no peer \"oslo\": act"), "{why}");
}

/// What `mta try --listen` makes of a caller that sends these octets, and then perhaps closes.
fn called_with(sites: &Sites, octets: &[u8], closes: bool) -> serde_json::Value {
    let listening = sites.listen(&["--json", "--timeout", "2s"]);
    let mut stream = TcpStream::connect(sites.remote()).unwrap();
    stream.write_all(octets).unwrap();
    if closes {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let output = listening.wait_with_output().unwrap();
    drop(stream);
    failure(&output)
}

#[test]
fn a_strange_caller_is_explained() {
    let sites = Sites::new("own_tsel = \"HERE\"");
    let other = called_with(&sites, b"GET / HTTP/1.1\r\n\r\n", false);
    assert_eq!(other["layer"], "transport", "{other}");
    let closed = called_with(&sites, b"", true);
    assert_eq!(closed["layer"], "tcp", "{closed}");
    let silent = called_with(&sites, b"", false);
    assert!(silent["reason"].as_str().unwrap().contains("nothing came"), "{silent}");
    let tsel = hex("03 00 00 15 10 E0 00 00 00 01 00 C2 08 4C 41 4E 54 45 52 4E 53");
    let tsel = [&tsel[..2], &[0, 21], &tsel[4..]].concat();
    let tsel = called_with(&sites, &tsel, false);
    assert!(tsel["change"][0].as_str().unwrap().contains("own_tsel = \"HERE\""), "{tsel}");
    let recovers = [vector("recover/01-send", [0; 2]), vector("recover/03-send", [0; 2])].concat();
    let recovers = called_with(&Sites::new(""), &recovers, false);
    assert_eq!(recovers["clause"], "X.228 7.8", "{recovers}");
    let nobody = sites.listen(&["--json", "--timeout", "200ms"]).wait_with_output().unwrap();
    assert_eq!(failure(&nobody)["layer"], "tcp");
}

#[test]
fn what_cannot_be_tried_exits_with_2() {
    let sites = Sites::new("");
    let file = sites.file("naples");
    let file: &Path = &file;
    let file = file.to_str().unwrap();
    for (arguments, expected) in [
        (&["try", "acct", "--config", file][..], "there is no peer \"acct\": act"),
        (&["try", "act/fast", "--config", file], "has no channel \"fast\": routine"),
        (&["try", "--listen", "127.0.0.1:9", "--config", file], "add --as-responder PEER"),
        (&["try", "--config", file], "required"),
        (&["try", "act", "--message", "--config", file], "--to"),
    ] {
        let (code, out, err) = run(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains(expected), "{err}");
    }
}
