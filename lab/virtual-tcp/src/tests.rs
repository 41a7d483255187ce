//! Two hosts and a line between them that takes a millisecond.

use super::*;
use dscp::Dscp;
use router::Time;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const PORT: u16 = 5_000;
const MTU: usize = 1_500;
const DELAY: Duration = Duration::from_millis(1);

/// A client that writes twice and reads, and a server that answers once it has both.
struct Pair {
    hosts: [TcpHost; 2],
    /// Packets on the line: when each arrives, and at which host.
    line: Vec<(Time, usize, Vec<u8>)>,
    now: Time,
}

impl Pair {
    fn new(tcp: &TcpSettings) -> Pair {
        let host = |name, number, seed| TcpHost::new(name, &[address(number)], MTU, tcp, seed);
        let mut hosts = [host("client", 1, 1), host("server", 2, 2)];
        hosts[1].listen(PORT, Dscp::CS0);
        Pair { hosts, line: Vec::new(), now: Time::ZERO }
    }

    /// What the hosts do now.
    fn events(&mut self) -> Vec<(usize, HostEvent)> {
        let mut events = Vec::new();
        for place in 0..2 {
            let host = &mut self.hosts[place];
            host.poll(self.now);
            events.extend(std::iter::from_fn(|| host.event()).map(|event| (place, event)));
        }
        events
    }

    /// The next moment at which anything is due.
    fn advance(&mut self) {
        for place in 0..2 {
            let host = &mut self.hosts[place];
            let packets = std::iter::from_fn(|| host.packet());
            self.line.extend(packets.map(|packet| (self.now + DELAY, 1 - place, packet)));
        }
        let due = self.hosts.iter().filter_map(TcpHost::deadline);
        let arrival = self.line.iter().map(|(at, _, _)| *at);
        if let Some(next) = due.chain(arrival).min() {
            self.now = self.now.max(next);
        }
        let now = self.now;
        let (arrived, line): (Vec<_>, Vec<_>) =
            self.line.drain(..).partition(|(at, _, _)| *at <= now);
        self.line = line;
        for (_, place, packet) in arrived {
            self.hosts[place].receive(now, packet, |_| MTU);
        }
    }

    /// How long a request of two small writes takes until its answer is there.
    fn request(mut self) -> Duration {
        let client = self.hosts[0].connect(
            self.now,
            address(1),
            SocketAddr::new(address(2), PORT),
            Dscp::CS0,
        );
        let (mut begun, mut received) = (None, 0);
        for _ in 0..1_000 {
            for (place, event) in self.events() {
                match event {
                    HostEvent::Connected { id, .. } if id == client => {
                        begun = Some(self.now);
                        for _ in 0..2 {
                            self.hosts[0].write(self.now, client, vec![1; 100].into());
                            self.hosts[0].poll(self.now);
                        }
                    }
                    HostEvent::Bytes { id, bytes } if place == 1 => {
                        received += bytes.len();
                        if received == 200 {
                            self.hosts[1].write(self.now, id, vec![2; 10].into());
                        }
                    }
                    HostEvent::Bytes { .. } => return self.now.duration_since(begun.unwrap()),
                    _ => {}
                }
            }
            self.advance();
        }
        panic!("no answer at {:?}", self.now);
    }
}

fn address(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

#[test]
fn with_nagle_and_delayed_acknowledgement_two_small_writes_wait_for_the_timer() {
    let delayed_ack = Some(Duration::from_millis(200));
    let tcp = TcpSettings { delayed_ack, ..TcpSettings::default() };
    let at_once = Pair::new(&tcp).request();
    assert!(at_once < Duration::from_millis(10), "{at_once:?}");
    let stalled = Pair::new(&TcpSettings { nagle: true, ..tcp }).request();
    let timer = Duration::from_millis(200)..Duration::from_millis(215);
    assert!(timer.contains(&stalled), "{stalled:?}");
    // Either alone does not.
    let prompt = TcpSettings { nagle: true, delayed_ack: None, ..tcp };
    let waited = Pair::new(&prompt).request();
    assert!(waited < Duration::from_millis(10), "{waited:?}");
}
