use super::*;

const TWO: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[routers.r.ports]
left.addresses = ["10.0.1.1/24", "fd00:1::1/64"]
right.addresses = ["10.0.2.1/24", "fd00:2::1/64"]
[[links]]
ends = ["a.eth0", "r.left"]
[[links]]
ends = ["r.right", "b.eth0"]
"#;

/// Two sites behind crypto gateways.
const CRYPTO: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24"]
[gateways.ga]
red.addresses = ["10.0.1.1/24"]
black.addresses = ["192.168.1.2/30"]
[gateways.gb]
red.addresses = ["10.0.2.1/24"]
black.addresses = ["192.168.2.2/30"]
[routers.w.ports]
a.addresses = ["192.168.1.1/30"]
b.addresses = ["192.168.2.1/30"]
[[links]]
ends = ["a.eth0", "ga.red"]
[[links]]
ends = ["ga.black", "w.a"]
mtu = 1400
[[links]]
ends = ["w.b", "gb.black"]
mtu = 1300
[[links]]
ends = ["gb.red", "b.eth0"]
"#;

fn network_of(text: &str) -> Result<NetworkPlan, KeyFault> {
    NetworkPlan::new(&Topology::read(text).unwrap())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn hosts_and_routers_know_their_ways() {
    let plan = network_of(TWO).unwrap();
    let [a, r] = ["a", "r"].map(|name| &plan.nodes[plan.node(name).unwrap()]);
    assert_eq!(r.route(ip("10.0.2.77")), Some(RouteNextHop::Port(1)));
    assert_eq!(r.route(ip("fd00:1::77")), Some(RouteNextHop::Port(0)));
    assert_eq!(r.route(ip("10.0.3.1")), None);
    assert_eq!(a.routes.len(), 2, "one default for each family");
    assert_eq!(plan.port_name(plan.far_end(plan.port("a.eth0").unwrap()).unwrap()), "r.left");
    assert_eq!(plan.port("a.eth1"), None);
    let static_route = TWO.replace(
        "[routers.r.ports]",
        "[routers.r]\nroutes = [{ to = \"10.0.2.64/26\", via = \"left\" }]\n[routers.r.ports]",
    );
    let detour = network_of(&static_route).unwrap();
    let r = &detour.nodes[detour.node("r").unwrap()];
    assert_eq!(r.route(ip("10.0.2.77")), Some(RouteNextHop::Port(0)), "the longer prefix");
    assert_eq!(r.route(ip("10.0.2.7")), Some(RouteNextHop::Port(1)));
}

#[test]
fn sites_behind_gateways_are_reached_through_tunnels() {
    let plan = network_of(CRYPTO).unwrap();
    let ga = &plan.nodes[plan.node("ga").unwrap()];
    let w = &plan.nodes[plan.node("w").unwrap()];
    let Some(RouteNextHop::Tunnel(number)) = ga.route(ip("10.0.2.2")) else {
        panic!("{:?}", ga.routes)
    };
    let tunnel = &plan.tunnels[number];
    assert_eq!((tunnel.source, tunnel.destination), (ip("192.168.1.2"), ip("192.168.2.2")));
    assert_eq!((tunnel.outer_mtu, tunnel.inner_mtu), (1_300, 1_300 - 20 - 38));
    assert_eq!(w.route(ip("10.0.2.2")), None, "black routers know nothing of red networks");
    assert_eq!(plan.tunnels.len(), 2);
}

#[test]
fn a_fault_is_reported_with_its_key() {
    let two = [
        ("\"b.eth0\"]", "\"b.eth1\"]", "links[1].ends[1]", "no port \"eth1\", but eth0"),
        ("\"b.eth0\"]", "\"c.eth0\"]", "links[1].ends[1]", "no host, router or gateway \"c\""),
        ("\"b.eth0\"]", "\"b\"]", "links[1].ends[1]", "is not a port"),
        ("\"b.eth0\"]", "\"a.eth0\"]", "links[1].ends[1]", "links[0] ends at \"a.eth0\""),
        ("[hosts.b.", "[hosts.r.", "routers.r", "in hosts, too"),
        ("10.0.2.2/24", "10.0.1.2/24", "hosts.b.ports.eth0.addresses", "hosts.a.ports.eth0"),
        ("10.0.2.2/24", "10.0.2.2/25", "routers.r.ports.right.addresses", "shares its prefix"),
        ("[hosts.b.", "[hosts.'b b'.", "hosts.b b", "a name has"),
        (
            "[\"r.right\", \"b.eth0\"]",
            "[\"r.right\", \"b.eth0\"]\nloss = 1.5",
            "links[1].loss",
            "1 % is 0.01",
        ),
        (
            "[\"r.right\", \"b.eth0\"]",
            "[\"r.right\", \"b.eth0\"]\nmtu = 1279",
            "links[1].mtu",
            "1,280",
        ),
        (
            "[\"r.right\", \"b.eth0\"]",
            "[\"r.right\", \"b.eth0\"]\nmtu = 9",
            "links[1].mtu",
            "68 to ",
        ),
        (
            "[\"r.right\", \"b.eth0\"]",
            "[\"r.right\", \"b.eth0\"]\nduplex = \"half\"",
            "links[1].rate",
            "needs a rate",
        ),
        (
            "[\"r.right\", \"b.eth0\"]",
            "[\"r.right\", \"b.eth0\"]\noverhead = 300",
            "links[1].overhead",
            "0 to 256",
        ),
        (
            "[hosts.b.ports.eth0]",
            "[hosts.b.ports.eth0]\nqueue = 0",
            "hosts.b.ports.eth0.queue",
            "1 to 100000",
        ),
        (
            "[routers.r.ports]",
            "[routers.r]\nroutes = [{ to = \"::/0\", via = \"up\" }]\n[routers.r.ports]",
            "routers.r.routes[0].via",
            "no port \"up\"",
        ),
        ("[routers.r.ports]", "[routers.r.ports]\nup = {}", "routers.r.up", "no link ends"),
        (
            "[hosts.b.ports.eth0]",
            "[hosts.b]\nsysctls = { \"kernel.x\" = 1 }\n[hosts.b.ports.eth0]",
            "hosts.b.sysctls.\"kernel.x\"",
            "net.ipv4",
        ),
    ];
    for (from, to, path, what) in two {
        let wrong = network_of(&TWO.replacen(from, to, 1)).expect_err(to);
        assert!(wrong.path == path && wrong.what.contains(what), "{to}: {wrong}");
    }
    let crypto = [
        (
            "[gateways.ga]",
            "[gateways.ga]\npeers = [\"x\"]",
            "gateways.ga.peers[0]",
            "no other gateway \"x\"",
        ),
        ("[gateways.ga]", "[gateways.ga]\noverhead = 7", "gateways.ga.overhead", "8 to 256"),
        (
            "[gateways.ga]",
            "[gateways.ga]\nouter = \"v6\"",
            "gateways.ga.black.addresses",
            "needs one of IPv6",
        ),
        ("mtu = 1300", "mtu = 100", "gateways.ga", "leaves 42"),
        (
            "[gateways.ga]",
            "[gateways.ga]\nroutes = [{ to = \"10.9.0.0/16\", via = \"w\" }]",
            "gateways.ga.routes[0].via",
            "no peer \"w\"",
        ),
        (
            "[routers.w.ports]",
            "[routers.w]\nroutes = [{ to = \"192.168.2.2/32\", via = \"a\" }]\n[routers.w.ports]",
            "gateways.ga",
            "no route to the gateway gb",
        ),
    ];
    for (from, to, path, what) in crypto {
        let text = CRYPTO.replacen(from, to, 1);
        let wrong = network_of(&text).expect_err(to);
        assert!(wrong.path == path && wrong.what.contains(what), "{to}: {wrong}");
    }
    let lone = CRYPTO.replacen("[gateways.gb]", "[gateways.gb]\npeers = []", 1);
    assert!(network_of(&lone).unwrap().tunnels.is_empty());
    let one_sided = lone.replacen("[gateways.ga]", "[gateways.ga]\npeers = [\"gb\"]", 1);
    let wrong = network_of(&one_sided).unwrap_err();
    assert_eq!(wrong.to_string(), "gateways.ga.peers[0]: gateways.gb.peers does not name \"ga\"");
}
