//! What a user registers holds over restarts of the daemon.

use super::SOON;
use crate::e2e::captures::port_of;
use crate::e2e::tshark::Decoded;
use nix::sys::signal::Signal;
use testbed::{Pair, PeerSettings, Site};

/// What a client sends and is answered, as tshark reads it.
fn recorded(site: &Site, user: &str, arguments: &[&str]) -> Decoded {
    let capture = site.path().join("p3.pcapng");
    let pcap = capture.display().to_string();
    let run = site.xuxa(user, &[&["--pcap", &pcap], arguments].concat()).unwrap();
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    Decoded::from_capture(&capture, site.p3().port())
}

#[test]
fn a_redirection_and_a_limit_hold_after_a_kill() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let (ops, log) = (site.address("OPS"), site.address("LOG"));
    let register = |site: &Site, user: &str, arguments: &[&str]| {
        let run = site.xuxa(user, &[&["register"][..], arguments].concat()).unwrap();
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    };
    register(&site, "OPS", &["--redirect-to", &log]);
    site.kill().unwrap();
    site.start().unwrap();
    site.send("LOG", &["--to", &ops, "--size", "1kB"]).unwrap();
    assert_eq!(site.receive("LOG", 1).unwrap().messages().count(), 1, "redirected");
    assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0);

    register(&site, "OPS", &["--clear"]);
    register(&site, "OPS", &["--max-length", "5kB"]);
    site.kill().unwrap();
    site.start().unwrap();
    site.send("LOG", &["--to", &ops, "--size", "20kB"]).unwrap();
    assert_eq!(site.receive("LOG", 1).unwrap().reports().count(), 1, "content-too-long");
    site.send("LOG", &["--to", &ops, "--size", "1kB"]).unwrap();
    assert_eq!(site.receive("OPS", 1).unwrap().messages().count(), 1);
}

/// It reads neither a register, of which it knows the form of 1994 alone, nor a cancellation.
#[test]
fn tshark_reads_delivery_control() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let read = recorded(&site, "LOG", &["receive", "--at-least", "urgent"]);
    // tshark takes operation 2 of either port for submission-control, whose values have the same form.
    assert_eq!(read.count("p1.SubmissionControlArgument_element"), 1);
    assert_eq!(read.count("p1.SubmissionControlResult_element"), 1);
}

#[test]
fn what_is_below_a_priority_waits_and_the_reception_ends_in_order() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let log = site.address("LOG");
    let send = |precedence: &str| {
        site.send("OPS", &["--to", &log, "--size", "1kB", "--precedence", precedence]).unwrap();
    };
    send("routine");
    for (more, urgent) in [(&[][..], 1), (&["--count", "1"], 1), (&["--count", "1"], 2), (&[], 0)] {
        (0..urgent).for_each(|_| send("flash"));
        let arguments = [&["--json", "receive", "--at-least", "urgent"][..], more].concat();
        let run = site.xuxa("LOG", &arguments).unwrap();
        assert_eq!(run.code, 0, "{more:?}, {urgent} urgent: {}", run.stderr);
        let got: serde_json::Value = run.json().unwrap();
        let got = got["deliveries"].as_array().unwrap();
        assert_eq!(got.len(), urgent.min(1), "{more:?}: {got:?}");
        assert!(got.iter().all(|one| one["priority"] == "urgent"), "{more:?}: {got:?}");
        // A second one is taken now.
        let rest = ["receive", "--at-least", "urgent"];
        assert_eq!(site.xuxa("LOG", &rest).unwrap().code, 0);
    }
    assert_eq!(site.receive("LOG", 1).unwrap().messages().count(), 1);
}

#[test]
fn an_operator_sees_what_a_user_registered_and_holds_back() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let (ops, log) = (site.address("OPS"), site.address("LOG"));
    let nobody = site.address("NOBODY");
    let show = |address: &str| -> serde_json::Value {
        site.mta(&["mailbox", "show", address, "--json"]).unwrap().json().unwrap()
    };
    for refused in [&log, &nobody, "/C=BE/ADMD=NET/S=X"] {
        let run = site.xuxa("LOG", &["register", "--redirect-to", refused]).unwrap();
        let named =
            "recipient-assigned-redirections, parameter-unacceptable: the alternate must be";
        assert!(run.code == 1 && run.stderr.contains(named), "{refused}: {}", run.stderr);
    }
    assert_eq!(show(&log)["registered"], serde_json::json!({}));
    let register = ["register", "--lowest-priority", "normal", "--max-length", "1MB"];
    assert_eq!(site.xuxa("LOG", &register).unwrap().code, 0);
    site.send("OPS", &["--to", &log, "--size", "1kB"]).unwrap();
    let view = show(&log);
    assert_eq!(view["registered"]["max_content_length"], 1_000_000);
    assert_eq!(view["registered"]["holds_back"][0], "what is below normal");
    assert_eq!((&view["bound"], &view["queued"]["routine"]), (&0.into(), &1.into()));
    let shown = site.mta(&["queue", "show", "e1"]).unwrap().stdout;
    assert!(shown.contains("its user holds back what is below normal (registered)"), "{shown}");

    let mut bound =
        site.xuxa_beside("LOG", &["receive", "--at-least", "urgent", "--wait"]).unwrap();
    let mut view = serde_json::Value::Null;
    site.wait_until("the control", SOON, |_| {
        view = show(&log);
        view["controls"]["registered"] == false
    })
    .unwrap();
    assert_eq!(view["controls"]["holds_back"][0], "what is below urgent");
    let shown = site.mta(&["queue", "show", "e1"]).unwrap().stdout;
    assert!(shown.contains("is below urgent (delivery-control)"), "{shown}");
    bound.signal(Signal::SIGINT).unwrap();
    bound.wait(SOON).unwrap();
    assert_eq!(site.xuxa("LOG", &["register", "--redirect-to", &ops]).unwrap().code, 0);
    assert!(show(&log)["registered"]["redirected_to"].as_str().unwrap().contains("S=OPS"));
    let unknown = site.mta(&["mailbox", "show", &nobody]).unwrap();
    assert_eq!((unknown.code, unknown.stderr.lines().count()), (1, 1), "{}", unknown.stderr);
}

/// Nobody learns which identifiers there are.
#[test]
fn anothers_message_is_cancelled_as_one_that_is_not_here() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let log = site.address("LOG");
    let sent = site.send("OPS", &["--to", &log, "--size", "1kB", "--defer-until", "+1h"]).unwrap();
    let id = sent.messages[0].mts_identifier.clone();
    let unknown = id.replace(".1]", ".77]");
    assert_ne!(id, unknown);
    let refused = |id: &str| {
        let run = site.xuxa("LOG", &["cancel", id]).unwrap();
        assert_eq!(run.code, 1, "{}", run.stderr);
        run.stderr.replace(id, "ID")
    };
    assert_eq!(refused(&id), refused(&unknown));
    assert_eq!(site.xuxa("OPS", &["cancel", &id]).unwrap().code, 0);
}

#[test]
fn a_redirected_message_bears_its_history_to_the_next_site() {
    let mut pair =
        Pair::start(PeerSettings { monologue: true, ..PeerSettings::default() }).unwrap();
    let (here, there) = (pair.naples.address("OPS"), pair.act.address("OPS"));
    let run = pair.naples.xuxa("OPS", &["register", "--redirect-to", &there]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    pair.naples.stop().unwrap();
    let capture = pair.naples.path().join("p1.pcapng");
    pair.naples.run_with(&["--pcap", &capture.display().to_string()]);
    pair.naples.start().unwrap();
    pair.naples.send("OPS", &["--to", &here, "--size", "1kB"]).unwrap();
    assert_eq!(pair.act.receive("OPS", 1).unwrap().messages().count(), 1);
    pair.naples.wait_until("nothing is queued", SOON, |s| s.waiting() == 0).unwrap();
    pair.naples.stop().unwrap();
    let read = Decoded::from_capture(&capture, port_of(&pair.act).parse().unwrap());
    assert_eq!(read.count("p1.Redirection_element"), 1);
    assert_eq!(read.count("p1.intended_recipient_name_element"), 1);
    assert_eq!(
        read.values("p1.redirection_reason"),
        ["0"],
        "recipient-assigned-alternate-recipient"
    );
}
