//! TPKT and COTP: packets that are none, TPDUs out of place, games with the end of a TSDU.

use super::case::{Case, play};
use super::octets::*;

pub(super) fn cases() -> Vec<Case> {
    let connect = || connect(|_| {});
    let ppdu = Connect::default().cp();
    let cn = spdu(0x0d, &[&Connect::default().parameters, &spdu(0xc1, &[&ppdu])]);
    let (front, back) = cn.split_at(40);
    vec![
        Case::peer("tpkt: version 4")
            .sends(vec![4, 0, 0, 11, 6, 0xe0, 0, 0, 0, 1, 0])
            .must("closed", "TPKT version 4, not 3 (RFC 1006 section 6)"),
        Case::peer("tpkt: length 0")
            .sends(vec![3, 0, 0, 0])
            .must("closed", "TPKT length 0, below 7 (RFC 1006 section 6)"),
        Case::peer("tpkt: length 4, nothing in it")
            .sends(vec![3, 0, 0, 4])
            .must("closed", "TPKT length 4, below 7 (RFC 1006 section 6)"),
        Case::peer("tpkt: length 6, less than any TPDU")
            .sends(vec![3, 0, 0, 6, 1, 0xe0])
            .must("closed", "TPKT length 6, below 7 (RFC 1006 section 6)"),
        Case::open("tpkt: length 65535 and silence")
            .sends(vec![3, 0, 0xff, 0xff, 2, 0xf0, 0x80])
            .waits(400)
            .must(
                "open, AB(user) ARU ABRT(1), closed",
                "transport: a TPKT or TSDU begun by the peer did not end within",
            ),
        Case::open("tpkt: half a header and silence").sends(vec![3, 0]).waits(400).must(
            "open, AB(user) ARU ABRT(1), closed",
            "transport: a TPKT or TSDU begun by the peer did not end within",
        ),
        Case::open("eot: a TSDU begun, then silence").sends(dt_part(&[1])).waits(400).must(
            "open, AB(user) ARU ABRT(1), closed",
            "transport: a TPKT or TSDU begun by the peer did not end within",
        ),
        Case::open("eot: a TSDU of empty DTs, one every ten seconds")
            .trickles(dt_part(&[]).repeat(20), std::time::Duration::from_secs(10))
            .must(
                "open, AB(user) ARU ABRT(1), closed",
                "transport: a TPKT or TSDU begun by the peer did not end within",
            ),
        Case::peer("tpkt: a TLS client hello")
            .sends(vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])
            .must("closed", "TPKT version 22, not 3 (RFC 1006 section 6)"),
        Case::peer("tpkt: an HTTP request")
            .sends(b"GET / HTTP/1.0\r\n\r\n".to_vec())
            .must("closed", "TPKT version 71, not 3 (RFC 1006 section 6)"),
        Case::open("tpkt: sound, then garbage")
            .sends([dt(&[1, 0]), vec![0xff; 64]].concat())
            .must("open, closed", "TPKT version 255, not 3 (RFC 1006 section 6)"),
        Case::peer("cotp: DT before CR")
            .sends(connect())
            .must("ER(2), closed", "Dt in Closed (X.224 6.22)"),
        Case::peer("cotp: CC before CR")
            .sends(tpkt(&[6, 0xd0, 0, 1, 0, 2, 0]))
            .must("ER(2), closed", "Cc in Closed (X.224 6.22)"),
        Case::peer("cotp: ER before CR")
            .sends(tpkt(&[4, 0x70, 0, 0, 0]))
            .must("closed", "the peer rejected a TPDU, cause 0 (X.224 13.12)"),
        Case::peer("cotp: DR before CR")
            .sends(tpkt(&[6, 0x80, 0, 0, 0, 1, 0]))
            .must("closed", "disconnect request, reason 0: reason not specified (X.224 6.6)"),
        Case::peer("cotp: class 4 without alternative")
            .sends(cr_with(0x40, &[]))
            .must("DR(130), closed", "class 0 only (X.224 6.6)"),
        Case::peer("cotp: a called selector where we have none")
            .sends(cr_with(0, b"\xc2\x05OTHER"))
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("cotp: TPDU size of 3 octets")
            .sends(cr_with(0, &[0xc0, 3, 1, 2, 3]))
            .waits(60)
            .must("ER(3), closed", "TPDU field TPDU size out of range (X.224 13.3): Invalid in"),
        Case::peer("cotp: TPDU size 2^32")
            .sends(cr_with(0, &[0xc0, 1, 32]))
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("cotp: TPDU size 2^0")
            .sends(cr_with(0, &[0xc0, 1, 0]))
            .waits(60)
            .must("ER(3), closed", "TPDU field TPDU size out of range (X.224 13.3): Invalid in"),
        Case::peer("cotp: parameter beyond the header").sends(cr_with(0, &[0xc1, 200, 1])).must(
            "ER(0), closed",
            "malformed TPDU: its lengths do not fit (X.224 13.2): Invalid in",
        ),
        Case::peer("cotp: selector of 200 octets")
            .sends(cr_with(0, &[&[0xc1, 200][..], &[b'A'; 200]].concat()))
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("cotp: length indicator 255").sends(tpkt(&[255, 0xe0, 0, 0, 0, 1, 0])).must(
            "ER(0), closed",
            "malformed TPDU: its lengths do not fit (X.224 13.2): Invalid in",
        ),
        Case::peer("cotp: length indicator beyond the packet")
            .sends(tpkt(&[40, 0xe0, 0, 0, 0, 1, 0]))
            .must(
                "ER(0), closed",
                "malformed TPDU: its lengths do not fit (X.224 13.2): Invalid in",
            ),
        Case::peer("cotp: length indicator 0").sends(tpkt(&[0, 0xe0, 0, 0, 0, 1, 0])).must(
            "ER(0), closed",
            "malformed TPDU: its lengths do not fit (X.224 13.2): Invalid in",
        ),
        Case::peer("cotp: unknown TPDU code")
            .sends(tpkt(&[6, 0x55, 0, 0, 0, 1, 0]))
            .must("ER(2), closed", "TPDU type unknown to class 0 (X.224 13.1): Invalid in Closed"),
        Case::peer("cotp: CR with a destination reference")
            .sends(tpkt(&[6, 0xe0, 0, 9, 0, 1, 0]))
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("cotp: CR with user data, which class 0 has not")
            .sends(tpkt(b"\x06\xe0\x00\x00\x00\x01\x00data"))
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("cotp: CR twice")
            .sends_all(vec![cr(), cr()])
            .must("CC, ER(2), closed", "Cr in Open (X.224 6.22)"),
        Case::open("cotp: CR within the association")
            .sends(cr())
            .must("open, ER(2), closed", "Cr in Open (X.224 6.22)"),
        Case::open("cotp: CC within the association")
            .sends(tpkt(&[6, 0xd0, 0, 1, 0, 2, 0]))
            .must("open, ER(2), closed", "Cc in Open (X.224 6.22)"),
        Case::open("cotp: DR within the association")
            .sends(tpkt(&[6, 0x80, 0, 1, 0, 2, 0x80]))
            .must(
                "open, closed",
                "disconnect request, reason 128: normal disconnect (X.224 6.7.1)",
            ),
        Case::open("cotp: ER within the association")
            .sends(tpkt(&[4, 0x70, 0, 1, 2]))
            .must("open, closed", "the peer rejected a TPDU, cause 2 (X.224 13.12)"),
        Case::open("cotp: expedited data, which class 0 has not")
            .sends(tpkt(&[2, 0x10, 0x80, 1]))
            .must(
                "open, ER(2), closed",
                "TPDU type unknown to class 0 (X.224 13.1): Invalid in Open",
            ),
        Case::open("cotp: DT with a number").sends(tpkt(&[2, 0xf0, 0x85, 1, 0])).must("open", ""),
        Case::open("cotp: DT of four octets header")
            .sends(tpkt(&[4, 0xf0, 0, 0, 0x80, 1, 0]))
            .must(
                "open, ER(0), closed",
                "malformed TPDU: its lengths do not fit (X.224 13.2): Invalid in",
            ),
        Case::peer("eot: CONNECT in two DTs")
            .sends_all(vec![cr(), dt_part(front), dt(back)])
            .must("open", ""),
        Case::peer("eot: CONNECT in DTs of one octet")
            .sends(cr())
            .sends_all(cn.iter().map(|octet| dt_part(&[*octet])).collect())
            .sends(dt(&[]))
            .must("open", ""),
        Case::peer("eot: empty DTs without end")
            .sends(cr())
            .sends(dt_part(&[]).repeat(1_000))
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("eot: an empty TSDU")
            .sends_all(vec![cr(), dt(&[])])
            .must("CC, closed", "a parameter is longer than its SPDU (X.225 8.2)"),
        Case::open("eot: an empty TSDU within the association").sends(dt(&[])).must(
            "open, AB(protocol error), closed",
            "a parameter is longer than its SPDU (X.225 8.2)",
        ),
        Case::peer("eot: CONNECT without an end")
            .sends_all(vec![cr(), dt_part(&cn)])
            .waits(60)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("eot: two CONNECTs in one TSDU")
            .sends_all(vec![cr(), dt(&cn.repeat(2))])
            .must("CC, closed", "octets after the last SPDU of basic concatenation (X.225 6.3.7)"),
        Case::open("eot: a TSDU of 200 MB that never ends")
            .sends(activity_start(1))
            .sends(dt_part(&[1, 0, 1, 0, 0x61, 0x84, 0x7f, 0xff, 0xff, 0xff]))
            .sends(dt_part(&[0x30; 65_000]).repeat(30))
            .must(
                "open, AB(user) ARP(6, 7), closed",
                "User-data: truncated: the element is longer than what holds it",
            ),
        Case::open("eot: megabytes of an SPDU other than data")
            .sends(dt_part(&spdu(0x19, &[&[0xc1; 60_000]])))
            .sends(dt_part(&[0; 60_000]).repeat(20))
            .must(
                "open, AB(protocol error), closed",
                "an SPDU other than DT has more than 65536 octets",
            ),
    ]
}

#[test]
fn packets_and_tpdus() {
    play(&cases());
}
