//! IP packets: plain, with options, extension headers and fragments, and of ICMP.

use super::{Seed, hex, named};

const UDP: &str = "1388 1770 000c 0000 01020304";
const ONE: &str = "fd000000000000000000000000000001";
const TWO: &str = "fd000000000000000000000000000002";

fn v4(head: &str, sum: &str, options: &str, behind: &str) -> Vec<u8> {
    hex(&format!("{head} {sum} 0a000001 0a000002 {options} {behind}"))
}

fn v6(length: &str, next: &str, behind: &str) -> Vec<u8> {
    hex(&format!("6b9abcde {length} {next} 40 {ONE} {TWO} {behind}"))
}

/// For all targets of packets.
pub fn packets() -> Vec<Seed> {
    named(&[
        ("v4-udp", v4("45b9 0020 1234 0000 4011", "53de", "", UDP)),
        ("v4-options", v4("46b8 0024 1234 4000 4011", "10da", "01010100", UDP)),
        ("v4-first-fragment", v4("4500 0020 1234 2000 4011", "3497", "", UDP)),
        ("v4-later-fragment", v4("4500 0020 1234 2003 4011", "3494", "", UDP)),
        ("v4-echo", v4("4500 001f 0000 4000 4001", "26dc", "", "0800 1260 1234 0007 6f6464")),
        (
            "v4-expired",
            v4(
                "45c0 0038 0000 0000 4001",
                "6603",
                "",
                "0b00 c9fb 00000000 4500 0020 1234 0000 0111 9397 0a000001 0a000002 1388 1770 000c 0000",
            ),
        ),
        ("v6-udp", v6("000c", "11", UDP)),
        ("v6-hop-by-hop", v6("0014", "00", &format!("1100010400000000 {UDP}"))),
        ("v6-authentication", v6("0024", "33", &format!("1104 0000 {} {UDP}", "00".repeat(20)))),
        ("v6-first-fragment", v6("0014", "2c", &format!("1100000100000007 {UDP}"))),
        ("v6-later-fragment", v6("0014", "2c", &format!("1100000900000007 {UDP}"))),
        (
            "v6-many",
            v6("0024", "3c", &format!("{} 1100010400000000 {UDP}", "3c00010400000000".repeat(2))),
        ),
        ("v6-echo", v6("0008", "3a", "8000 737d 1234 0007")),
        ("v6-no-next", v6("0000", "3b", "")),
    ])
}
