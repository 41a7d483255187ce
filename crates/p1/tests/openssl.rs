//! OpenSSL reads the signed contents that the other tests are made of, and sees the label in them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use base::ber::{Writer, universal};
use p1::SecurityLabel;
use p1::testing::signed;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What `openssl cms -cmsout -print` shows of a content; `None` where there is no OpenSSL.
fn printed(content: &[u8]) -> Option<String> {
    let mut command = Command::new("openssl");
    command.args(["cms", "-cmsout", "-print", "-inform", "DER"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().unwrap().write_all(content).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn openssl_sees_the_label_as_a_signed_attribute() {
    let label: SecurityLabel = "1.3.26.0.4406.0.5.1/secret/MARK".parse().unwrap();
    let mut w = Writer::new();
    label.write(&mut w, universal::SET);
    let Some(shown) = printed(&signed(&[&[w.as_slice()]], b"content")) else {
        eprintln!("no openssl here: left out");
        return;
    };
    let attributes = shown.split_once("signedAttrs:").unwrap().1;
    let (own, _) = attributes.split_once("signatureAlgorithm:").unwrap();
    for part in [
        "id-smime-aa-securityLabel (1.2.840.113549.1.9.16.2.2)",
        "OBJECT            :1.3.26.0.4406.0.5.1",
        "INTEGER           :04",
        "PRINTABLESTRING   :MARK",
    ] {
        assert!(own.contains(part), "{part}: {shown}");
    }
    assert!(!printed(&signed(&[&[]], b"content")).unwrap().contains("securityLabel"));
}
