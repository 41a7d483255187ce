//! Distribution lists, alternate recipients and returned contents, in octets that no encoder of ours wrote.

use super::daemon::{Here, SOON, assert_delivered, on_far};
use super::peer::time_of_the_run;
use super::reader;
use super::stack::{content_of, sha256};
use super::taker::take_transfer;

const STAFF: &str = "/C=IT/ADMD=NET/PRMD=HERE/S=Staff";

/// O/R names as the vectors have them: [APPLICATION 0] {30 {C, A, P, S}}.
const UPPER_NAME: &[u8] =
    b"\x60\x1e\x30\x1c\x61\x04\x13\x02GB\x62\x03\x13\x01 \xa2\x06\x13\x04PEER\xa5\x07\x80\x05Upper";
const STAFF_NAME: &[u8] = b"\x60\x20\x30\x1e\x61\x04\x13\x02IT\x62\x05\x13\x03NET\xa2\x06\x13\x04HERE\xa5\x07\x80\x05Staff";
const GONE_NAME: &[u8] = b"\x60\x1f\x30\x1d\x61\x04\x13\x02IT\x62\x05\x13\x03NET\xa2\x06\x13\x04HERE\xa5\x06\x80\x04Gone";

fn add_list(here: &Here) {
    let carol = "/C=FR/ADMD=ATLAS/PRMD=FAR/S=Carol";
    let rossi = "/C=IT/ADMD=NET/PRMD=HERE/S=Rossi";
    let run = here.site.mta(&["list", "add", STAFF, "--member", carol, "--member", rossi]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn an_expanded_copy_bears_the_history_that_came_and_the_list() {
    let here = Here::start();
    add_list(&here);
    here.connect().play(&["bind-ia5", "list-expand", "release"]).expect_end();
    let mut far = on_far(&here);
    let (apdu, _) = take_transfer(&mut far, 65_535);
    let message = reader::message(&apdu);
    assert_eq!(sha256(&message.content), content_of("list-expand").sha256);
    // 80 01 1A (26), A2 {30 {30 {60 Upper, 17 time}, 30 {60 Staff, 17 time}}}: the first as it came.
    let time = [b"\x17\x0d", &time_of_the_run()[..]].concat();
    let first = [b"\x30\x2f", UPPER_NAME, &time].concat();
    let second = [b"\x30\x31", STAFF_NAME, b"\x17\x0d"].concat();
    let at = |part: &[u8]| message.envelope.windows(part.len()).position(|w| w == part);
    let (first, second) = (at(&first), at(&second));
    assert!(first.is_some() && first < second, "{:02X?}", message.envelope);
    // The trace has the operation: other-actions {dl-operation(1)}.
    assert!(reader::contains(&message.envelope, b"\x83\x02\x06\x40"), "{:02X?}", message.envelope);
    // The member has the list's number, and the next MTA does not see Rossi.
    let [recipient] = &reader::member(&message.envelope, 0xa2)[..] else { panic!("one recipient") };
    assert!(reader::contains(recipient, b"\x80\x05Carol\x80\x01\x01"), "{recipient:02X?}");
    far.play(&["answer-release"]).expect_end();
    assert_delivered(&here.receive(1), &["list-expand"]);
}

#[test]
fn a_list_that_was_expanded_before_is_not_expanded_again() {
    let here = Here::start();
    add_list(&here);
    here.connect().play(&["bind-ia5", "list-loop", "release"]).expect_end();
    here.site.wait_until("nothing is queued", SOON, |s| s.waiting() == 0).unwrap();
    assert!(here.site.receive_waiting("Rossi").unwrap().deliveries.is_empty());
    assert!(here.is_far_quiet(), "it was expanded all the same");
}

#[test]
fn an_alternate_takes_the_place_and_the_history_has_who_it_was() {
    let here = Here::start();
    here.connect().play(&["bind-ia5", "alternate", "release"]).expect_end();
    let mut far = on_far(&here);
    let (apdu, _) = take_transfer(&mut far, 65_535);
    let message = reader::message(&apdu);
    assert_eq!(sha256(&message.content), content_of("alternate").sha256);
    let [recipient] = &reader::member(&message.envelope, 0xa2)[..] else { panic!("one recipient") };
    // 80 01 19 (25), A2 {30 {30 {30 {60 Gone, 17 time}, 0A originator-requested(1)}}}.
    let was = [b"\x30\x30", GONE_NAME, b"\x17\x0d"].concat();
    assert!(reader::contains(recipient, &was), "{recipient:02X?}");
    assert!(reader::contains(recipient, b"\x0a\x01\x01"), "{recipient:02X?}");
    assert!(reader::contains(recipient, b"\x80\x05Carol"), "{recipient:02X?}");
    // The trace has the operation: other-actions {redirected(0)}.
    assert!(reader::contains(&message.envelope, b"\x83\x02\x07\x80"), "{:02X?}", message.envelope);
    far.play(&["answer-release"]).expect_end();
}

#[test]
fn a_returned_content_reaches_the_originator_octet_by_octet() {
    let here = Here::start();
    here.connect().play(&["bind-ia5", "report-returned", "release"]).expect_end();
    let run = here.site.xuxa("Rossi", &["--json", "receive", "--count", "1"]).unwrap();
    let answer: serde_json::Value = run.json().unwrap();
    let report = &answer["deliveries"][0];
    let expected = content_of("report-returned");
    assert_eq!(report["returned"]["sha256"], *expected.sha256, "{answer}");
    assert_eq!(report["returned"]["length"], expected.length);
    let recipient = &report["recipients"][0];
    assert_eq!(recipient["diagnostic"], "maximum-time-expired");
    assert_eq!(recipient["supplementary"], "Gone away");
}
