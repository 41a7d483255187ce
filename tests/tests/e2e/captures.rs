//! Every kind of PDU we send, as tshark reads it: how many of each, and with which values.

use super::proxy::{Disposition, Proxy};
use super::tshark::{Decoded, Excused};
use super::{SOON, assert_arrived};
use std::path::PathBuf;
use testbed::answer::{SendOutput, SubmittedMessage};
use testbed::{Pair, PeerSettings, Site};

const SIZES: &str = "1kB,10kB,100kB,1MB,10MB";
/// Octets between two checkpoints.
const CHECKPOINT: u64 = 65_536;
/// Octets of data in the largest TPDU: 65,535 less TPKT's 4 and DT's 3.
const DATA: u64 = 65_528;

/// Where a site's daemon writes its capture, once it was started with [`record`].
fn capture(site: &Site) -> PathBuf {
    site.path().join("p1.pcapng")
}

/// From its next start on the daemon records its first P1 association.
fn record(site: &mut Site) {
    let path = capture(site).display().to_string();
    site.run_with(&["--pcap", &path]);
}

fn assert_counts(decoded: &Decoded, expected: &[(&str, usize)]) {
    for (field, count) in expected {
        assert_eq!(decoded.count(field), *count, "{field}: {:?}", decoded.values(field));
    }
}

fn assert_session(decoded: &Decoded, expected: &[(&'static str, usize)]) {
    let found: Vec<(&str, usize)> = decoded.session().iter().map(|(k, v)| (*k, *v)).collect();
    let mut expected: Vec<(&str, usize)> =
        expected.iter().copied().filter(|(_, count)| *count > 0).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "SPDUs");
}

/// One transport connection, with so many TSDUs and DTs.
fn assert_transport(decoded: &Decoded, tsdus: usize, dts: usize) {
    assert_eq!(decoded.count_of("cotp.type", "0x0e"), 1, "CR");
    assert_eq!(decoded.count_of("cotp.type", "0x0d"), 1, "CC");
    assert_eq!(decoded.count_of("cotp.type", "0x0f"), dts, "DT");
    assert_eq!(decoded.count("cotp.type"), 2 + dts, "no TPDU of another kind");
    assert_eq!(decoded.count_of("cotp.eot", "1"), tsdus, "ends of TSDUs");
    assert_eq!(decoded.count("tpkt.length"), 2 + dts, "one TPKT a TPDU");
}

/// What a message has at each place where tshark shows it.
fn assert_values(decoded: &Decoded, content: &str, sent: &[SubmittedMessage]) {
    let n = sent.len();
    let expected: Vec<(u64, String)> =
        sent.iter().map(|m| (m.content_length, m.content_sha256.clone())).collect();
    assert_eq!(decoded.contents(content), expected, "contents");
    assert_eq!(decoded.values("p1.extended"), vec!["1.3.26.0.4406.0.4.1"; n], "P772");
    assert_eq!(decoded.values("p1.priority"), vec!["2"; n], "urgent");
    assert_eq!(decoded.values("p772.PriorityLevelQualifier"), vec!["0"; n], "low, so Flash");
    assert_eq!(decoded.values("p772.PrimaryPrecedence"), vec!["4"; n], "Flash");
    assert_eq!(decoded.values("p22.subject"), vec!["Lage"; n]);
    assert_eq!(decoded.values("p772.Sic"), ["AAA", "NATO1"].repeat(n));
}

fn local_identifiers(sent: &[SubmittedMessage]) -> Vec<&str> {
    sent.iter()
        .map(|m| m.mts_identifier.rsplit_once(';').unwrap().1.trim_end_matches(']'))
        .collect()
}

fn content_identifiers(sent: &[SubmittedMessage]) -> Vec<&str> {
    sent.iter().map(|m| m.content_identifier.as_str()).collect()
}

const FLASH: &[&str] =
    &["--precedence", "flash", "--subject", "Lage", "--sic", "AAA", "--sic", "NATO1"];

fn send(from: &Site, to: &Site, sizes: &str) -> SendOutput {
    let to = to.address("OPS");
    from.send("OPS", &[&["--to", &to, "--size", sizes], FLASH].concat()).unwrap()
}

/// This tshark reads the calls of X.410 mode, and takes S-DATA for presentation, where there is none: what is transferred it
/// does not read. What it reports depends on the octet of the content with which an S-DATA begins.
const X410: &[Excused] = &[
    unread("Internal error:can't get spdu type from session dissector"),
    unread("BER Error: "),
    unread("Malformed Packet"),
];

const fn unread(message: &'static str) -> Excused {
    Excused { message, fields: &["_ws.malformed", "ber."], operation: None }
}

/// In X.410 mode there is no presentation and no ACSE, and the APDU is what the DTs hold.
#[test]
fn a_p1_association_in_x410_mode() {
    let peer =
        PeerSettings { x410: true, octet_credentials: true, window: 4, ..PeerSettings::default() };
    let mut pair = Pair::builder(peer.on_demand("1s")).unwrap().build().unwrap();
    record(&mut pair.naples);
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    let sent = send(&pair.naples, &pair.act, "1kB,300kB").messages;
    assert_arrived(&sent, &pair.act.receive("OPS", sent.len()).unwrap());
    let none = |status: &testbed::answer::MtaStatus| status.associations().count() == 0;
    pair.naples.wait_until("the idle association's release", SOON, none).unwrap();
    assert!(pair.naples.stop().unwrap().success() && pair.act.stop().unwrap().success());

    let port = port_of(&pair.act).parse().unwrap();
    let decoded = Decoded::but_for(&capture(&pair.naples), port, X410);
    let count = |spdu: &str| decoded.session().get(spdu).copied().unwrap_or(0);
    for (spdu, times) in
        [("CN", 1), ("AC", 1), ("AS", 2), ("AE", 2), ("AEA", 2), ("FN", 1), ("DN", 1)]
    {
        assert_eq!(count(spdu), times, "{spdu}");
    }
    assert_eq!(count("DT"), count("MIP") + 2);
    assert_counts(
        &decoded,
        &[
            ("pres.aborttype", 0),
            ("acse.aarq_element", 0),
            ("acse.aare_element", 0),
            ("acse.rlrq_element", 0),
            ("p1.MTABindArgument", 1),
            ("p1.MTABindResult", 1),
        ],
    );
    assert_eq!(decoded.values("ses.req.flags"), ["0x0249", "0x0249"]);
    assert_eq!(decoded.values("p1.authenticated.initiator-name"), ["MTA-NAPLES"]);
    assert_eq!(decoded.values("p1.authenticated.responder-name"), ["MTA-ACT"]);
}

#[test]
fn a_p1_association_with_a_transfer_of_each_size() {
    let peer = PeerSettings { window: 4, ..PeerSettings::default() }.on_demand("1s");
    let mut pair = Pair::builder(peer).unwrap().build().unwrap();
    record(&mut pair.naples);
    record(&mut pair.act);
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    let sent = send(&pair.naples, &pair.act, SIZES).messages;
    assert_arrived(&sent, &pair.act.receive("OPS", sent.len()).unwrap());
    let none = |status: &testbed::answer::MtaStatus| status.associations().count() == 0;
    pair.naples.wait_until("the idle association's release", SOON, none).unwrap();
    pair.act.wait_until("the idle association's release", SOON, none).unwrap();
    assert!(pair.naples.stop().unwrap().success() && pair.act.stop().unwrap().success());

    // Both ends have recorded the same association: each alone must read right.
    let port = port_of(&pair.act).parse().unwrap();
    for site in [&pair.naples, &pair.act] {
        let decoded = Decoded::from_capture(&capture(site), port);
        let lengths = decoded.values("rtse.reassembled.length");
        let lengths: Vec<u64> = lengths.iter().map(|l| l.parse().unwrap()).collect();
        assert_eq!(lengths.len(), sent.len(), "one APDU a message");
        for (length, message) in lengths.iter().zip(&sent) {
            let envelope = length - message.content_length;
            assert!((200..600).contains(&envelope), "{envelope} octets around the content");
        }
        let count = |f: &dyn Fn(u64) -> u64| -> usize {
            usize::try_from(lengths.iter().map(|l| f(*l)).sum::<u64>()).unwrap()
        };
        let rttr = count(&|l| l.div_ceil(CHECKPOINT));
        let mip = count(&|l| l.div_ceil(CHECKPOINT) - 1);
        let mia = decoded.session().get("MIA").copied().unwrap_or(0);
        // One MIA confirms all checkpoints before it, and AEA the last ones; window 4.
        assert!((mip / 5..=mip).contains(&mia), "{mia} MIAs for {mip} MIPs");
        assert_session(
            &decoded,
            &[
                ("CN", 1),
                ("AC", 1),
                ("AS", 5),
                ("DT", rttr),
                ("MIP", mip),
                ("MIA", mia),
                ("AE", 5),
                ("AEA", 5),
                ("FN", 1),
                ("DN", 1),
            ],
        );
        let tsdus = 1 + 1 + 5 + rttr + mip + mia + 5 + 5 + 1 + 1;
        assert_transport(&decoded, tsdus, tsdus + count(&|l| l / CHECKPOINT));
        assert_counts(
            &decoded,
            &[
                ("pres.cptype", 1),
                ("pres.cpapdu", 1),
                ("pres.cprtype", 0),
                ("pres.aborttype", 0),
                ("acse.aarq_element", 1),
                ("acse.aare_element", 1),
                ("acse.rlrq_element", 1),
                ("acse.rlre_element", 1),
                ("acse.abrt_element", 0),
                ("rtse.rtorq_apdu_element", 1),
                ("rtse.rtoac_apdu_element", 1),
                ("rtse.rtorj_apdu_element", 0),
                ("rtse.rtab_apdu_element", 0),
                ("rtse.segment", rttr),
                ("p1.MTABindArgument", 1),
                ("p1.MTABindResult", 1),
                ("p1.MTABindError", 0),
                ("p1.message_element", 5),
                ("p1.report_element", 0),
                ("p1.probe_element", 0),
            ],
        );
        assert_eq!(decoded.values("ses.req.flags"), ["0x0249", "0x0249"]);
        let syntaxes = ["2.2.1.0.1", "2.6.0.2.12", "2.6.0.2.7"];
        assert_eq!(decoded.values("pres.abstract_syntax_name"), syntaxes);
        assert_eq!(decoded.values("acse.aSO_context_name"), ["2.6.0.1.6", "2.6.0.1.6"]);
        assert_eq!(decoded.values("rtse.checkpointSize"), ["64", "64"]);
        assert_eq!(decoded.values("rtse.windowSize"), ["4", "4"]);
        assert_eq!(decoded.values("p1.authenticated.initiator-name"), ["MTA-NAPLES"]);
        assert_eq!(decoded.values("p1.authenticated.responder-name"), ["MTA-ACT"]);
        assert_values(&decoded, "p1.content", &sent);
        assert_eq!(decoded.values("p1.local_identifier"), local_identifiers(&sent));
        assert_eq!(decoded.values("p1.content_identifier"), content_identifiers(&sent));
        assert_eq!(decoded.values("p1.mta_name"), ["MTA-NAPLES"; 5], "internal trace");
        assert_eq!(decoded.values("p1.surname"), ["OPS"; 25], "five names a message");
        assert_eq!(decoded.count_of("p1.printable", "ACT"), 10, "recipient, twice a message");
    }
}

/// The port on which a site's only channel listens.
pub(super) fn port_of(site: &Site) -> String {
    let check = site.mta(&["check", "--json"]).unwrap();
    let plan: serde_json::Value = check.json().unwrap();
    let listen = plan["plan"]["channels"][0]["listen"][0].as_str().unwrap();
    listen.rsplit_once(':').unwrap().1.to_owned()
}

#[test]
fn a_report_over_p1() {
    // One way only, so that ACT must open an association of its own for its report.
    let peer = PeerSettings { monologue: true, ..PeerSettings::default() }.on_demand("1s");
    let mut pair = Pair::start(peer).unwrap();
    let to = pair.act.address("OPS");
    let arguments = ["--to", &to, "--size", "1kB", "--report", "delivery"];
    let sent = pair.naples.send("OPS", &arguments).unwrap().messages;
    pair.act.wait_until("the message", SOON, |s| s.waiting() == 1).unwrap();
    pair.act.stop().unwrap();
    record(&mut pair.act);
    pair.act.start().unwrap();
    pair.act.receive("OPS", 1).unwrap();
    let report = pair.naples.receive("OPS", 1).unwrap();
    assert_eq!(report.reports().count(), 1);
    pair.act.wait_until("the release", SOON, |s| s.associations().count() == 0).unwrap();
    pair.act.stop().unwrap();

    let port = port_of(&pair.naples).parse().unwrap();
    let decoded = Decoded::from_capture(&capture(&pair.act), port);
    assert_session(
        &decoded,
        &[("CN", 1), ("AC", 1), ("AS", 1), ("DT", 1), ("AE", 1), ("AEA", 1), ("FN", 1), ("DN", 1)],
    );
    assert_transport(&decoded, 8, 8);
    assert_counts(&decoded, &[("p1.report_element", 1), ("p1.message_element", 0)]);
    assert_eq!(decoded.values("p1.authenticated.initiator-name"), ["MTA-ACT"]);
    let identifiers = decoded.values("p1.local_identifier");
    assert_eq!(identifiers.len(), 2, "of the report and of its subject: {identifiers:?}");
    assert!(identifiers[0].starts_with("MTA-ACT."));
    assert_eq!(identifiers[1..], local_identifiers(&sent));
    assert_eq!(decoded.values("p1.content_identifier"), content_identifiers(&sent));
}

#[test]
fn a_refused_p1_association() {
    let builder = Pair::builder(PeerSettings::default().on_demand("300s")).unwrap();
    let mut pair = builder.with_wrong_password().build().unwrap();
    record(&mut pair.naples);
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    send(&pair.naples, &pair.act, "1kB");
    pair.naples
        .wait_until("the refusal", SOON, |s| s.peers[0].channels[0].last_error.is_some())
        .unwrap();
    pair.naples.stop().unwrap();
    let decoded =
        Decoded::from_capture(&capture(&pair.naples), port_of(&pair.act).parse().unwrap());
    assert_session(&decoded, &[("CN", 1), ("RF", 1)]);
    assert_transport(&decoded, 2, 2);
    assert_counts(
        &decoded,
        &[
            ("pres.cptype", 1),
            ("pres.cpapdu", 0),
            ("pres.cprtype", 1),
            ("acse.aarq_element", 1),
            ("acse.aare_element", 1),
            ("rtse.rtorq_apdu_element", 1),
            ("rtse.rtoac_apdu_element", 0),
            ("rtse.rtorj_apdu_element", 1),
            ("p1.MTABindArgument", 1),
            ("p1.MTABindResult", 0),
            ("p1.MTABindError", 1),
        ],
    );
    assert_eq!(decoded.values("acse.result"), ["1"], "rejected-permanent");
    assert_eq!(decoded.values("p1.MTABindError"), ["2"], "authentication-error");
}

#[test]
fn a_withheld_confirm_stops_the_sender_and_a_stop_then_aborts() {
    for window in [1, 3] {
        let peer = PeerSettings { window, ..PeerSettings::default() }.on_demand("300s");
        let builder = Pair::builder(peer).unwrap();
        let proxy = Proxy::start(builder.act_listens()[0], Disposition::HoldAnswers(3_000_000));
        let builder = builder.naples_connects(vec![proxy.address]);
        let mut pair = builder.each(|site| site.set("mta.stop_timeout", "2s")).build().unwrap();
        record(&mut pair.naples);
        pair.act.start().unwrap();
        pair.naples.start().unwrap();
        send(&pair.naples, &pair.act, "10MB");
        proxy.wait_until_struck(SOON);
        // A stop before the window is full would end the sending earlier than the window does.
        proxy.wait_until_quiet(SOON);
        assert!(pair.naples.stop().unwrap().success());

        let decoded = Decoded::from_capture(&capture(&pair.naples), proxy.address.port());
        let session = decoded.session();
        let count = |name| session.get(name).copied().unwrap_or(0);
        // What is confirmed and what is sent differ by the window, and there the sender stopped.
        let (sent, confirmed) = (decoded.last_serial("MIP"), decoded.last_serial("MIA"));
        let (sent, confirmed) = (sent.expect("checkpoints"), confirmed.expect("confirms"));
        assert_eq!(sent as usize, count("MIP"), "serial numbers count from 1");
        assert_eq!(sent - confirmed, window, "window {window}: {session:?}");
        let single = ["CN", "AC", "AS", "AB"].map(count);
        assert_eq!((single, count("DT")), ([1; 4], count("MIP")), "{session:?}");
        assert_eq!(session.len(), 7, "neither ended nor released: {session:?}");
        assert_counts(
            &decoded,
            &[
                ("pres.aborttype", 1),
                ("acse.abrt_element", 1),
                ("acse.rlrq_element", 0),
                ("rtse.rtab_apdu_element", 1),
                ("p1.message_element", 0),
            ],
        );
    }
}

#[test]
fn p3_submission_and_delivery() {
    let mut site = Site::builder("naples").set("limits.content", "11MB").build().unwrap();
    site.start().unwrap();
    let to = site.address("OPS");
    let (submitting, delivering) = (site.path().join("s.pcapng"), site.path().join("d.pcapng"));
    let pcap = submitting.display().to_string();
    let arguments = ["--json", "--pcap", &pcap, "send", "--to", &to, "--size", SIZES];
    let run = site.xuxa("OPS", &[&arguments[..], FLASH].concat()).unwrap();
    let sent = run.json::<SendOutput>().unwrap().messages;
    let pcap = delivering.display().to_string();
    let run = site.xuxa("OPS", &["--json", "--pcap", &pcap, "receive", "--count", "5"]).unwrap();
    assert_arrived(&sent, &run.json().unwrap());

    for (capture, operation, content) in
        [(submitting, "3", "p7.content"), (delivering, "5", "p1.content")]
    {
        let decoded = Decoded::from_capture(&capture, site.p3().port());
        let session = [("CN", 1), ("AC", 1), ("DT", 10), ("FN", 1), ("DN", 1)];
        assert_session(&decoded, &session);
        // 100 kB, 1 MB and 10 MB do not fit one TPDU; what surrounds a content is far from filling one.
        let more = |m: &SubmittedMessage| usize::try_from((m.content_length + 300) / DATA).unwrap();
        assert_transport(&decoded, 14, 14 + sent.iter().map(more).sum::<usize>());
        assert_counts(
            &decoded,
            &[
                ("pres.cptype", 1),
                ("pres.cpapdu", 1),
                ("pres.aborttype", 0),
                ("acse.aarq_element", 1),
                ("acse.aare_element", 1),
                ("acse.rlrq_element", 1),
                ("acse.rlre_element", 1),
                ("rtse.rtorq_apdu_element", 0),
                ("rtse.segment", 0),
                ("p1.MTSBindArgument_element", 1),
                ("p1.MTSBindResult_element", 1),
                ("p1.PAR_mts_bind_error", 0),
                ("ros.invoke_element", 5),
                ("ros.returnResult_element", 5),
                ("ros.returnError_element", 0),
            ],
        );
        assert_eq!(decoded.values("ros.opcode"), [operation; 10]);
        assert_eq!(decoded.values("ses.req.flags"), ["0x0002", "0x0002"], "duplex");
        assert_eq!(decoded.values("acse.aSO_context_name"), ["2.6.0.1.0", "2.6.0.1.0"]);
        assert_eq!(decoded.values("p1.mTA"), ["MTA-NAPLES"]);
        assert_values(&decoded, content, &sent);
        assert_eq!(decoded.values("p1.local_identifier"), local_identifiers(&sent));
        assert_eq!(decoded.values("p1.content_identifier"), content_identifiers(&sent));
    }
}

#[test]
fn p3_errors_and_refusals() {
    let mut site = Site::builder("naples").set("limits.content", "10kB").build().unwrap();
    site.start().unwrap();
    let to = site.address("OPS");
    let port = site.p3().port();
    let path = site.path().join("error.pcapng");
    let pcap = path.display().to_string();
    let run = site.xuxa("OPS", &["--pcap", &pcap, "send", "--to", &to, "--size", "100kB"]).unwrap();
    assert_eq!(run.code, 1, "{}", run.stderr);
    // tshark reads the operations of the abstract syntax msse with P7's tables, which share them; but
    // P7's have none of P3's errors, whose codes are other numbers there (21 and up): so it finds the
    // error and its code, and reports that it cannot read the parameter, here NULL.
    let unread = Excused {
        message: "ROS: Dissector for OID 2.6.0.2.1 not implemented",
        fields: &["ros.dissector_oid_not_implemented"],
        operation: None,
    };
    let decoded = Decoded::but_for(&path, port, &[unread]);
    assert_session(&decoded, &[("CN", 1), ("AC", 1), ("DT", 2), ("FN", 1), ("DN", 1)]);
    assert_counts(
        &decoded,
        &[
            ("ros.invoke_element", 1),
            ("ros.returnResult_element", 0),
            ("ros.returnError_element", 1),
        ],
    );
    assert_eq!(decoded.values("ros.errcode"), ["1"], "submission-control-violated");

    std::fs::write(site.path().join("secrets/user-OPS"), "wrong\n").unwrap();
    let path = site.path().join("refused.pcapng");
    let pcap = path.display().to_string();
    assert_eq!(site.xuxa("OPS", &["--pcap", &pcap, "receive"]).unwrap().code, 1);
    let decoded = Decoded::from_capture(&path, port);
    assert_session(&decoded, &[("CN", 1), ("RF", 1)]);
    assert_transport(&decoded, 2, 2);
    assert_counts(
        &decoded,
        &[
            ("pres.cptype", 1),
            ("pres.cprtype", 1),
            ("acse.aarq_element", 1),
            ("acse.aare_element", 1),
            ("p1.MTSBindArgument_element", 1),
            ("p1.MTSBindResult_element", 0),
            ("p1.PAR_mts_bind_error", 1),
        ],
    );
    assert_eq!(decoded.values("acse.result"), ["1"], "rejected-permanent");
}
