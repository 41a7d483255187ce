//! The independent reader: what tshark finds in a capture, with nothing in it that it cannot read.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// What is asked for, each by tshark's own name.
const FIELDS: &[&str] = &[
    "tpkt.length",
    "cotp.type",
    "cotp.eot",
    "cotp.class",
    "ses.type",
    "ses.serial_number",
    "ses.req.flags",
    "pres.cptype",
    "pres.cpapdu",
    "pres.cprtype",
    "pres.aborttype",
    "pres.abstract_syntax_name",
    "acse.aarq_element",
    "acse.aare_element",
    "acse.rlrq_element",
    "acse.rlre_element",
    "acse.abrt_element",
    "acse.aSO_context_name",
    "acse.result",
    "rtse.rtorq_apdu_element",
    "rtse.rtoac_apdu_element",
    "rtse.rtorj_apdu_element",
    "rtse.rtab_apdu_element",
    "rtse.segment",
    "rtse.checkpointSize",
    "rtse.windowSize",
    "rtse.reassembled.length",
    "ros.invoke_element",
    "ros.returnResult_element",
    "ros.returnError_element",
    "ros.opcode",
    "ros.errcode",
    "p1.MTABindArgument",
    "p1.MTABindResult",
    "p1.MTABindError",
    "p1.MTSBindArgument_element",
    "p1.MTSBindResult_element",
    "p1.PAR_mts_bind_error",
    "p1.authenticated.initiator-name",
    "p1.authenticated.responder-name",
    "p1.mTA",
    "p1.simple",
    "p1.ia5_string",
    "p1.message_element",
    "p1.report_element",
    "p1.probe_element",
    "p1.local_identifier",
    "p1.content_identifier",
    "p1.extended",
    "p1.priority",
    "p1.iso_3166_alpha2_code",
    "p1.printable",
    "p1.surname",
    "p1.mta_name",
    "p1.routing_action",
    "p1.security_policy_identifier",
    "p1.security_classification",
    "p1.non_delivery_reason_code",
    "p1.non_delivery_diagnostic_code",
    "p1.DLExpansion_element",
    "p1.OriginatorAndDLExpansion_element",
    "p1.Redirection_element",
    "p1.intended_recipient_name_element",
    "p1.redirection_reason",
    "p1.SubmissionControlArgument_element",
    "p1.SubmissionControlResult_element",
    "p1.content",
    "p1.returned_content",
    "p7.content",
    "p7.content_identifier",
    "p772.PriorityLevelQualifier",
    "p772.PrimaryPrecedence",
    "p772.CopyPrecedence",
    "p772.Sic",
    "p22.subject",
    "ftam.Pathname_item",
];

/// What must not be there at all: what tshark shows where it does not understand.
/// Fields by the beginnings of their names.
const BAD: &[&str] = &[
    "_ws.malformed",
    "_ws.short",
    "ber.error.",
    "ber.unknown",
    "cotp.segment.error",
    "ses.bad_",
    "ses.segment.error",
    "pres.dissector_not_available",
    "pres.wrong_spdu_type",
    "acse.dissector_not_available",
    "acse.malformed",
    "rtse.bad_abstract_syntax",
    "rtse.dissector_oid_not_implemented",
    "rtse.fragment.error",
    "rtse.unknown_rtse_pdu",
    "ros.dissector_oid_not_implemented",
    "ros.unknown_ros_pdu",
    "p1.unknown.",
    "p1.unsupported_pdu",
    "p1.zero_pdu",
];

/// Severity of an expert's warning; an error is higher.
const WARNING: u64 = 0x0060_0000;

/// What this tshark shows of octets that are right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Excused {
    /// The expert's message.
    pub(super) message: &'static str,
    /// The fields in which it shows.
    pub(super) fields: &'static [&'static str],
    /// In invocations of this operation alone.
    pub(super) operation: Option<&'static str>,
}

/// All that tshark found, in order, whatever the frame.
#[derive(Debug)]
pub(super) struct Decoded {
    values: BTreeMap<&'static str, Vec<String>>,
    session: BTreeMap<&'static str, usize>,
    serials: Vec<(&'static str, u32)>,
}

impl Decoded {
    /// Has tshark read a capture of connections to this port. Fails where it could not read anything,
    /// or complains of something.
    pub(super) fn from_capture(capture: &Path, port: u16) -> Decoded {
        Decoded::but_for(capture, port, &[])
    }

    /// As [`Decoded::from_capture`], but for what this tshark cannot read though it is right.
    pub(super) fn but_for(capture: &Path, port: u16, excused: &[Excused]) -> Decoded {
        let bad = bad_fields();
        let own = ["_ws.expert.severity", "_ws.expert.message", "ros.opcode"];
        for row in rows(capture, port, &[&own[..], bad].concat()) {
            let severities = row[0].split(AGGREGATOR).filter_map(|s| s.parse::<u64>().ok());
            let worst = severities.max().unwrap_or(0);
            let here: Vec<&Excused> = excused
                .iter()
                .filter(|one| one.operation.is_none_or(|code| row[2] == code))
                .collect();
            let is_excused =
                row[1].split(AGGREGATOR).all(|m| here.iter().any(|e| m.starts_with(e.message)));
            let at = capture.display();
            assert!(worst < WARNING || is_excused, "tshark on {at}: {}", row[1]);
            for (field, value) in bad.iter().zip(&row[own.len()..]) {
                let is_excused = is_excused
                    && here.iter().any(|one| one.fields.iter().any(|f| field.starts_with(f)));
                assert!(value.is_empty() || is_excused, "tshark on {at}: {field}");
            }
        }
        let mut values: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let mut session = BTreeMap::new();
        let mut serials = Vec::new();
        for row in rows(capture, port, FIELDS) {
            let cell = |field: &str| -> Vec<String> {
                let at = FIELDS.iter().position(|f| *f == field).expect("a field asked for");
                row[at].split(AGGREGATOR).filter(|v| !v.is_empty()).map(str::to_owned).collect()
            };
            let spdus = spdus(&cell("ses.type"));
            for name in &spdus {
                *session.entry(*name).or_default() += 1;
            }
            let numbered = spdus.into_iter().filter(|n| matches!(*n, "MIP" | "MIA" | "AE" | "AEA"));
            let numbers = cell("ses.serial_number");
            serials.extend(numbered.zip(numbers.iter().map(|n| n.parse().expect("digits"))));
            for field in FIELDS.iter().copied() {
                values.entry(field).or_default().extend(cell(field));
            }
        }
        assert_eq!(serials.len(), values["ses.serial_number"].len(), "each has its PDU");
        let decoded = Decoded { values, session, serials };
        assert!(decoded.count("tpkt.length") > 0, "tshark found no TPKT in {}", capture.display());
        decoded
    }

    /// How often a field occurs.
    pub(super) fn count(&self, field: &str) -> usize {
        self.values(field).len()
    }

    /// Its values, in order.
    pub(super) fn values(&self, field: &str) -> &[String] {
        assert!(FIELDS.contains(&field), "{field} is not asked for");
        self.values.get(field).map_or(&[], Vec::as_slice)
    }

    /// How many values of a field are this one.
    pub(super) fn count_of(&self, field: &str, value: &str) -> usize {
        self.values(field).iter().filter(|v| *v == value).count()
    }

    /// The session's PDUs by name, without the token SPDUs that every data-phase PDU follows.
    pub(super) fn session(&self) -> &BTreeMap<&'static str, usize> {
        &self.session
    }

    /// The highest serial number of SPDUs of this name.
    pub(super) fn last_serial(&self, name: &str) -> Option<u32> {
        self.serials.iter().filter(|(n, _)| *n == name).map(|(_, serial)| *serial).max()
    }

    /// SHA-256 of each content, as a field of octets has it.
    pub(super) fn contents(&self, field: &str) -> Vec<(u64, String)> {
        let octets = |hex: &String| -> Vec<u8> {
            let digit =
                |c: u8| u8::try_from((c as char).to_digit(16).expect("hexadecimal")).unwrap();
            hex.as_bytes().chunks_exact(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect()
        };
        let hash = |octets: Vec<u8>| {
            let digest = Sha256::digest(&octets);
            let hex = digest.iter().map(|b| format!("{b:02x}")).collect();
            (octets.len() as u64, hex)
        };
        self.values(field).iter().map(|hex| hash(octets(hex))).collect()
    }
}

/// Between the values of a field that occurs more than once in a frame: in no value of ours.
const AGGREGATOR: char = '\u{1}';
/// Between fields.
const SEPARATOR: char = '\u{2}';

fn tshark() -> Command {
    Command::new("tshark")
}

fn rows(capture: &Path, port: u16, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = tshark();
    command.arg("-n").arg("-r").arg(capture).args(["-d", &format!("tcp.port=={port},tpkt")]);
    command.args(["-T", "fields", "-E", "occurrence=a"]);
    command.args(["-E", &format!("separator={SEPARATOR}")]);
    command.args(["-E", &format!("aggregator={AGGREGATOR}")]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs: `cargo xtask test` installs it");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark on {}: {complaint}", capture.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| -> Vec<String> { line.split(SEPARATOR).map(str::to_owned).collect() };
    let rows: Vec<Vec<String>> = text.lines().map(row).collect();
    assert!(!rows.is_empty(), "tshark found no frame in {}", capture.display());
    assert!(rows.iter().all(|row| row.len() == fields.len()), "{} fields a row", fields.len());
    rows
}

/// The fields of [`BAD`] that this tshark has: they differ between versions.
fn bad_fields() -> &'static [&'static str] {
    static FOUND: OnceLock<Vec<&'static str>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let output = tshark().args(["-G", "fields"]).output().expect("tshark runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned().leak();
        let names = text.lines().filter_map(|line| line.split('\t').nth(2));
        let bad = names.filter(|name| BAD.iter().any(|start| name.starts_with(start)));
        let bad: Vec<&str> = bad.collect();
        for start in BAD {
            assert!(bad.iter().any(|name| name.starts_with(start)), "tshark has no {start}");
        }
        bad
    })
}

/// The names of the SPDUs of one frame. A PDU of category 2 follows one of category 0 (X.225, 6.3.7):
/// give tokens (1) or please tokens (2), which are not named.
fn spdus(types: &[String]) -> Vec<&'static str> {
    let mut types = types.iter().map(String::as_str);
    let mut names = Vec::new();
    while let Some(first) = types.next() {
        let token = matches!(first, "1" | "2");
        // The last of a frame may stand alone: the turn is given or asked for.
        if token && types.len() == 0 {
            names.push(if first == "1" { "GT" } else { "PT" });
            break;
        }
        names.push(match if token { types.next() } else { Some(first) } {
            Some("13") => "CN",
            Some("14") => "AC",
            Some("12") => "RF",
            Some("9") => "FN",
            Some("10") => "DN",
            Some("25") => "AB",
            Some("26") => "AA",
            Some("1") => "DT",
            Some("45") => "AS",
            Some("29") => "AR",
            Some("49") => "MIP",
            Some("50") => "MIA",
            // AE and AEA have the codes of the major synchronization point and its ack.
            Some("41") => "AE",
            Some("42") => "AEA",
            Some("21") => "GTC",
            Some("22") => "GTA",
            Some("57") => "AD",
            Some("58") => "ADA",
            other => panic!("tshark shows an SPDU {other:?} after {first}"),
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_no_name_and_what_follows_has() {
        let named =
            |frame: &str| spdus(&frame.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ");
        assert_eq!(named("13"), "CN");
        assert_eq!(named("1 45 1 1 1 49"), "AS DT MIP");
        assert_eq!(named("2 50 2 50"), "MIA MIA");
        assert_eq!(named("1 41 2 42 9 10"), "AE AEA FN DN");
        assert_eq!((named("2 42 2").as_str(), named("1").as_str()), ("AEA PT", "GT"));
    }
}
