//! What listens at an address that should be a P3 listener and is not.

use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for a connection, and for an answer.
const WAIT: Duration = Duration::from_secs(3);
/// How long a server that speaks first gets.
const BANNER: Duration = Duration::from_millis(300);
/// A connection request of transport class 0 in a TPKT (RFC 1006), without selectors.
const REQUEST: [u8; 11] = [3, 0, 0, 11, 6, 0xe0, 0, 0, 0, 1, 0];

/// Why nothing can be bound at `address` (`host:port`), in words; `None` where something there answers
/// as a transport entity does.
pub async fn diagnose(address: &str) -> Option<String> {
    let Some((host, port)) = address.rsplit_once(':') else {
        return Some(format!("{address:?} has no port: write HOST:PORT"));
    };
    if port.parse::<u16>().is_err() {
        return Some(format!("{port:?} is not a port: write HOST:PORT, as mta.example:5010"));
    }
    let resolved = match tokio::net::lookup_host(address).await {
        Ok(resolved) => resolved.collect::<Vec<_>>(),
        Err(error) => return Some(format!("the name {host} does not resolve: {error}")),
    };
    let mut last = format!("the name {host} has no address");
    for one in resolved {
        match timeout(WAIT, TcpStream::connect(one)).await {
            Ok(Ok(stream)) => return answer(stream).await.map(|what| format!("at {one} {what}")),
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
                last = format!("{one} refuses the connection: nothing listens at this port");
            }
            Ok(Err(error)) => last = format!("no connection to {one}: {error}"),
            Err(_) => {
                last =
                    format!("{one} does not answer: the host is down, or a firewall drops packets");
            }
        }
    }
    Some(last)
}

async fn answer(mut stream: TcpStream) -> Option<String> {
    let mut octets = [0; 64];
    let first = timeout(BANNER, stream.read(&mut octets)).await;
    let read = match first {
        Ok(read) => read,
        Err(_) => {
            stream.write_all(&REQUEST).await.ok()?;
            match timeout(WAIT, stream.read(&mut octets)).await {
                Ok(read) => read,
                Err(_) => {
                    return Some("something accepts connections and answers nothing".to_owned());
                }
            }
        }
    };
    let read = read.ok()?;
    what(octets.get(..read).unwrap_or_default())
}

/// The protocol that the first octets of an answer show; `None` where they are a TPKT, or nothing.
fn what(octets: &[u8]) -> Option<String> {
    let name = match octets {
        [] | [3, 0, ..] => return None,
        [0x14..=0x17, 3, ..] => "TLS: use the port for plain X.400, or a tunnel",
        _ if octets.starts_with(b"HTTP/") || octets.starts_with(b"<") => {
            "HTTP: this is a web server"
        }
        _ if octets.starts_with(b"220") => "SMTP or FTP: this is another kind of server",
        _ if octets.starts_with(b"SSH-") => "SSH: this is a login server",
        _ if octets.starts_with(b"* OK") || octets.starts_with(b"+OK") => {
            "IMAP or POP: a mail store"
        }
        _ => "another protocol than X.400 over TCP (RFC 1006)",
    };
    Some(format!("answers {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn at(answer: &'static [u8], first: bool) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            if !first {
                let mut request = [0; 11];
                stream.read_exact(&mut request).await.unwrap();
                assert_eq!(request, REQUEST);
            }
            stream.write_all(answer).await.unwrap();
        };
        tokio::join!(diagnose(&address), serve).0
    }

    #[tokio::test]
    async fn what_answers_is_named() {
        for (octets, first, wanted) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], false, "HTTP"),
            (&[0x15, 3, 3, 0, 2, 2, 70], false, "TLS"),
            (b"220 mail ESMTP\r\n", true, "SMTP"),
            (b"SSH-2.0-x\r\n", true, "SSH"),
            (b"huh", false, "another protocol"),
        ] {
            let found = at(octets, first).await.unwrap();
            assert!(found.contains(wanted), "{found}");
        }
        assert_eq!(at(&[3, 0, 0, 11, 6, 0xd0, 0, 1, 0, 2, 0], false).await, None);
    }

    #[tokio::test]
    async fn an_address_that_leads_nowhere_is_explained() {
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().port()
        };
        let refused = diagnose(&format!("127.0.0.1:{port}")).await.unwrap();
        assert!(refused.contains("refuses the connection"), "{refused}");
        assert!(diagnose("localhost").await.unwrap().contains("has no port"));
        assert!(diagnose("localhost:x").await.unwrap().contains("is not a port"));
        assert!(diagnose("no.such.host.invalid:1").await.unwrap().contains("does not resolve"));
    }
}
