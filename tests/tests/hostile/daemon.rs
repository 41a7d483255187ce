//! Some of the cases against the daemon, over TCP: those that need no bind.

use super::answer::Answers;
use crate::scripted::daemon::Here;
use crate::scripted::peer::Peer;
use crate::scripted::tcp::Tcp;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for the daemon to close.
const SOON: Duration = Duration::from_secs(60);

const PLAYED: [&str; 14] = [
    "tpkt: version 4",
    "tpkt: length 0",
    "tpkt: a TLS client hello",
    "tpkt: an HTTP request",
    "cotp: DT before CR",
    "cotp: class 4 without alternative",
    "cotp: length indicator 255",
    "cn: version 8 alone",
    "cn: 20,000 octets of user data",
    "cn: length beyond the TSDU",
    "cp: a length of 2^63",
    "cp: 2,000 levels of SET",
    "contexts: PER for everything",
    "aarq: application context nobody knows",
];

/// Sends, and gives what is answered until the daemon closes; once all that is expected came, this
/// end closes too, as a peer with a reason does.
fn exchange(address: SocketAddr, octets: &[u8], expected: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    // The daemon may close before it has read all.
    let _ = stream.write_all(octets);
    let mut answers = Answers::default();
    let mut buffer = [0; 4_096];
    loop {
        let answer = [&answers.words[..], &["closed".to_owned()]].concat().join(", ");
        if !answers.words.is_empty() && answer == expected {
            let _ = stream.shutdown(Shutdown::Write);
        }
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(n) => answers.take(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return answer,
            Err(e) => panic!("after {answer:?}: {e}"),
        }
    }
}

#[test]
fn the_daemon_answers_alike_and_serves_who_was_there() {
    let here = Here::start();
    let mut good = Peer::new(Tcp::connect(here.listens));
    good.play(&["bind-ia5"]);
    let cases = super::cases();
    for name in PLAYED {
        let case = cases.iter().find(|case| case.name == name);
        let exchanged = case.and_then(super::case::Case::exchange);
        let (octets, expected) = exchanged.unwrap_or_else(|| panic!("no case {name}"));
        assert_eq!(exchange(here.listens, &octets, expected), expected, "{name}");
    }
    good.play(&["transfer-primitive", "release"]).expect_end();
}
