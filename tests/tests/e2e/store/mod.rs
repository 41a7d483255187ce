//! The message store over P7, with real programs: another implementation reads what both ends send, quotas hold, and
//! kills lose nothing.

mod bindings;
mod purge;
mod tui;

use super::SOON;
use super::tshark::{Decoded, Excused};
use serde_json::Value;
use std::collections::BTreeSet;
use testbed::Site;
use testbed::answer::{DeliveredItem, SendOutput};

/// Where this tshark is wrong (docs/conformance.md): it has no dissector for the values of an attribute of P772 and the
/// parameters of auto-actions, and takes such a parameter for absent.
const EXCUSED: &[Excused] = &[
    Excused {
        message: "BER: Dissector for OID not implemented. Contact Wireshark developers if you want this supported",
        fields: &["ber.error.oid_not_implemented"],
        operation: None,
    },
    Excused {
        message: "BER Error: This field lies beyond the end of the known sequence definition.",
        fields: &["ber.error.unknown_field.sequence", "_ws.malformed"],
        operation: Some("24"),
    },
];

/// A site whose user OPS has a mailbox in its message store, and the port of its P7 listener.
pub(super) struct Mailbox {
    pub(super) site: Site,
    port: u16,
}

impl Mailbox {
    pub(super) fn new(keys: &[(&str, &str)]) -> Mailbox {
        let mut builder = Site::builder("naples").users(&["LOG"]).mailboxes(&["OPS"]);
        for (key, value) in keys {
            builder = match value.parse::<i64>() {
                Ok(number) => builder.set(key, number),
                Err(_) => builder.set(key, *value),
            };
        }
        let mut site = builder.build().unwrap();
        site.start().unwrap();
        Mailbox { port: site.p7().unwrap().port(), site }
    }

    fn send(&self, arguments: &[&str]) -> Vec<String> {
        let to = self.site.address("OPS");
        let run = self.site.xuxa("OPS", &[&["--json", "send", "--to", &to], arguments].concat());
        let sent = run.unwrap().json::<SendOutput>().unwrap().messages;
        sent.into_iter().map(|message| message.mts_identifier).collect()
    }

    pub(super) fn xuxa(&self, arguments: &[&str]) -> Value {
        let all = [&["--json"], arguments].concat();
        self.site.xuxa("OPS", &all).unwrap().json().unwrap()
    }

    fn entries(&self) -> Vec<Value> {
        let listed = self.xuxa(&["list", "--limit", "1000", "--by", "arrival"]);
        listed["entries"].as_array().unwrap().clone()
    }

    /// Waits until the mailbox has so many entries.
    fn waits_for(&self, count: usize) -> Vec<Value> {
        let mut entries = Vec::new();
        // Each look starts a program: some 10 s in all.
        for _ in 0..300 {
            entries = self.entries();
            if entries.len() >= count {
                return entries;
            }
        }
        panic!("{} of {count} entries", entries.len());
    }

    fn capture(&self, name: &str, arguments: &[&str]) -> Decoded {
        let path = self.site.path().join(name);
        let pcap = path.display().to_string();
        self.xuxa(&[&["--pcap", &pcap], arguments].concat());
        Decoded::but_for(&path, self.port, EXCUSED)
    }
}

#[test]
fn tshark_reads_what_both_ends_send() {
    let mailbox = Mailbox::new(&[]);
    mailbox.send(&["--size", "100kB", "--subject", "Convoy", "--precedence", "flash"]);
    mailbox.waits_for(1);
    let opcode = |decoded: &Decoded, code: &str| {
        assert!(decoded.count_of("ros.opcode", code) >= 2, "{:?}", decoded.values("ros.opcode"));
        assert_eq!(decoded.count("ros.returnError_element"), 0);
        assert_eq!(decoded.values("acse.aSO_context_name"), ["2.6.0.1.4", "2.6.0.1.4"]);
    };
    opcode(&mailbox.capture("list.pcap", &["list"]), "21");
    opcode(&mailbox.capture("read.pcap", &["read", "1"]), "22");
    let out = mailbox.site.path().join("content").display().to_string();
    opcode(&mailbox.capture("fetch.pcap", &["fetch", "1", "--out", &out]), "22");
    opcode(&mailbox.capture("reply.pcap", &["reply", "1", "--text", "OK"]), "3");
    opcode(&mailbox.capture("delete.pcap", &["delete", "1"]), "23");

    // A sequence-number-error, and an invocation that has no other answer.
    let path = mailbox.site.path().join("error.pcap");
    let pcap = path.display().to_string();
    let run = mailbox.site.xuxa("OPS", &["--pcap", &pcap, "delete", "1"]).unwrap();
    assert_eq!(run.code, 1, "{}", run.stderr);
    let decoded = Decoded::but_for(&path, mailbox.port, EXCUSED);
    assert_eq!(decoded.values("ros.errcode"), ["28"]);
}

#[test]
fn tshark_reads_the_registration_of_an_alert_and_the_alert() {
    let mailbox = Mailbox::new(&[]);
    mailbox.send(&["--text", "a", "--precedence", "flash"]);
    mailbox.waits_for(1);
    let path = mailbox.site.path().join("watch.pcap");
    let pcap = path.display().to_string();
    let arguments = ["--pcap", &pcap, "--json", "watch", "--only-later", "--count", "1"];
    let watch = mailbox.site.xuxa_beside("OPS", &arguments).unwrap();
    let bound = mailbox.site.wait_until("the watch", SOON, |status| {
        status.mailboxes.iter().any(|mailbox| mailbox.bound > 0)
    });
    bound.unwrap();
    // Those that come before it has registered are none of its later ones.
    let mut watch = watch;
    let mut tries = 0;
    while !watch.ended().unwrap() {
        mailbox.send(&["--text", "b", "--precedence", "flash"]);
        tries += 1;
        assert!(tries < 100, "no alert");
    }
    assert_eq!(watch.wait(SOON).unwrap().code, 0);
    let decoded = Decoded::but_for(&path, mailbox.port, EXCUSED);
    // Registered and deregistered; alerted and answered; what is there already.
    assert!(decoded.count_of("ros.opcode", "24") >= 2, "{:?}", decoded.values("ros.opcode"));
    assert!(decoded.count_of("ros.opcode", "25") >= 2, "{:?}", decoded.values("ros.opcode"));
    assert!(decoded.count_of("ros.opcode", "21") >= 2, "{:?}", decoded.values("ros.opcode"));
    assert_eq!(decoded.count("ros.returnError_element"), 0);
}

/// Numbers that were given since the backup was made are not given again.
#[test]
fn a_restored_mailbox_gives_no_number_twice() {
    let mut mailbox = Mailbox::new(&[]);
    // The first backup has the mailbox, with nothing in it yet.
    assert_eq!(mailbox.entries().len(), 0);
    let backups = tempfile::tempdir().unwrap();
    for (name, before, lost, after) in
        [("empty", 0, 1, 1_000_001), ("one", 1, 1_000_002, 2_000_002u64)]
    {
        let directory = backups.path().join(name);
        let backup = mailbox.site.mta(&["backup", directory.to_str().unwrap()]).unwrap();
        assert_eq!(backup.code, 0, "{}", backup.stderr);
        mailbox.send(&["--text", "lost"]);
        assert_eq!(mailbox.waits_for(before + 1)[before]["number"], lost);
        assert_eq!(mailbox.site.stop().unwrap().code(), Some(0));
        let verb = ["restore", "--replace", directory.to_str().unwrap()];
        let restored = mailbox.site.mta(&verb).unwrap();
        assert_eq!(restored.code, 0, "{}", restored.stderr);
        mailbox.site.start().unwrap();
        assert_eq!(mailbox.entries().len(), before);
        mailbox.send(&["--text", "later"]);
        assert_eq!(mailbox.waits_for(before + 1)[before]["number"], after);
    }
}

#[test]
fn a_full_mailbox_holds_what_is_lower() {
    let mailbox = Mailbox::new(&[("p7.items", "4"), ("p7.reserve", "50")]);
    // Deferred may use 2 of 4, Flash 3.6 of them.
    mailbox.send(&["--text", "a", "--precedence", "deferred"]);
    mailbox.send(&["--text", "b", "--precedence", "deferred"]);
    mailbox.waits_for(2);
    mailbox.send(&["--text", "held", "--subject", "HELD", "--precedence", "deferred"]);
    mailbox.send(&["--text", "c", "--subject", "FIRST", "--precedence", "override"]);
    let entries = mailbox.waits_for(3);
    assert_eq!(entries.len(), 3);
    assert!(entries.iter().all(|entry| entry["subject"] != "HELD"), "{entries:?}");
    let numbers: Vec<String> = entries.iter().map(|entry| entry["number"].to_string()).collect();
    let arguments: Vec<&str> =
        ["delete"].into_iter().chain(numbers.iter().map(String::as_str)).collect();
    mailbox.xuxa(&arguments);
    let entries = mailbox.waits_for(1);
    assert_eq!((entries.len(), &entries[0]["subject"]), (1, &"HELD".into()), "{entries:?}");
    assert_eq!(entries[0]["number"], 4, "no number is given twice");
}

#[test]
fn kills_in_the_middle_of_deliveries_lose_and_double_nothing() {
    let mut mailbox = Mailbox::new(&[]);
    let mut accepted = BTreeSet::new();
    for _ in 0..3 {
        for _ in 0..20 {
            let sent = mailbox.send(&["--size", "1kB,10kB"]);
            accepted.extend(sent);
        }
        mailbox.site.kill().unwrap();
        mailbox.site.start().unwrap();
    }
    let entries = mailbox.waits_for(accepted.len());
    let got: Vec<String> = (entries.iter())
        .map(|entry| entry["mts_identifier"].as_str().unwrap().to_owned())
        .collect();
    let numbers: BTreeSet<String> =
        entries.iter().map(|entry| entry["number"].to_string()).collect();
    assert_eq!(numbers.len(), entries.len(), "a number is given once");
    assert_eq!(got.len(), accepted.len());
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), accepted);
}

#[test]
fn what_comes_is_forwarded_whole_and_deleted() {
    let mailbox = Mailbox::new(&[]);
    let to = mailbox.site.address("LOG");
    let registered = mailbox.xuxa(&["auto-forward", "--to", &to, "-p", "flash", "--delete"]);
    assert_eq!(registered["delete"], true);
    // In a record, and in a file.
    for size in ["20kB", "2MB"] {
        mailbox.send(&["--size", size, "--precedence", "flash", "--subject", size]);
    }
    mailbox.send(&["--size", "1kB", "--precedence", "routine"]);
    let received = mailbox.site.receive("LOG", 2).unwrap();
    let messages = received.deliveries.iter().map(|item| match item {
        DeliveredItem::Message(message) => message,
        DeliveredItem::Report(report) => panic!("{report:?}"),
    });
    let mut found: Vec<_> = messages.map(|m| (m.content_length, m.subject.as_deref())).collect();
    found.sort_unstable();
    assert!(found[0].0 > 20_000 && found[1].0 > 2_000_000, "{found:?}");
    assert_eq!([found[0].1, found[1].1], [Some("Fwd: 20kB"), Some("Fwd: 2MB")]);
    let left = mailbox.entries();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["precedence"], "routine");
    mailbox.xuxa(&["auto-forward", "--off"]);
    mailbox.send(&["--size", "1kB", "--precedence", "flash"]);
    assert_eq!(mailbox.entries().len(), 2);

    // To nobody: a report is left of what is neither here nor there.
    let nobody = mailbox.site.address("NOBODY");
    mailbox.xuxa(&["auto-forward", "--to", &nobody, "--delete"]);
    let shown = mailbox.xuxa(&["auto-forward", "--show"]);
    assert_eq!(shown["registrations"].as_array().unwrap().len(), 1, "{shown}");
    mailbox.send(&["--size", "1kB", "--precedence", "flash"]);
    let entries = mailbox.waits_for(3);
    assert_eq!(entries[2]["kind"], "report", "{entries:?}");
}
