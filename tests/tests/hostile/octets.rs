//! Octets by hand: what a peer may send, right or wrong in any one place. No encoder of ours.

/// An element: identifier octets, definite length, contents.
pub(crate) fn tlv(tag: impl Tag, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    [&tag.octets()[..], &length(contents.len()), &contents].concat()
}

/// One or several identifier octets.
pub(crate) trait Tag {
    fn octets(self) -> Vec<u8>;
}

impl Tag for u8 {
    fn octets(self) -> Vec<u8> {
        vec![self]
    }
}

impl Tag for &[u8] {
    fn octets(self) -> Vec<u8> {
        self.to_vec()
    }
}

/// A definite length in its shortest form.
pub(crate) fn length(octets: usize) -> Vec<u8> {
    let all = octets.to_be_bytes();
    let some: Vec<u8> = all.iter().copied().skip_while(|o| *o == 0).collect();
    match some.as_slice() {
        [] => vec![0],
        [one] if *one < 0x80 => vec![*one],
        _ => [&[0x80 | some.len() as u8][..], &some].concat(),
    }
}

/// `levels` elements in each other around `inner`.
pub(crate) fn nested(tag: u8, levels: usize, inner: &[u8]) -> Vec<u8> {
    (0..levels).fold(inner.to_vec(), |octets, _| tlv(tag, &[&octets]))
}

/// The same with indefinite lengths, which never end unless `ends`.
pub(crate) fn nested_indefinite(tag: u8, levels: usize, inner: &[u8], ends: bool) -> Vec<u8> {
    let mut octets = [tag, 0x80].repeat(levels);
    octets.extend_from_slice(inner);
    if ends {
        octets.extend(std::iter::repeat_n(0, 2 * levels));
    }
    octets
}

/// A TPKT (RFC 1006 6).
pub(crate) fn tpkt(tpdu: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(tpdu.len() + 4).unwrap().to_be_bytes();
    [&[3, 0, high, low], tpdu].concat()
}

/// CR (X.224 13.3): class 0, our reference 1, these parameters.
pub(crate) fn cr_with(class: u8, parameters: &[u8]) -> Vec<u8> {
    let head = [6 + parameters.len() as u8, 0xe0, 0, 0, 0, 1, class];
    tpkt(&[&head[..], parameters].concat())
}

pub(crate) fn cr() -> Vec<u8> {
    cr_with(0, &[])
}

/// A TSDU in one DT (X.224 13.7).
pub(crate) fn dt(tsdu: &[u8]) -> Vec<u8> {
    tpkt(&[&[2, 0xf0, 0x80], tsdu].concat())
}

/// A part of a TSDU in a DT without EOT.
pub(crate) fn dt_part(part: &[u8]) -> Vec<u8> {
    tpkt(&[&[2, 0xf0, 0], part].concat())
}

/// A TSDU in as many DTs as it needs.
pub(crate) fn dts(tsdu: &[u8]) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = tsdu.chunks(60_000).map(dt_part).collect();
    if let Some(last) = pieces.last_mut() {
        last[6] = 0x80;
    }
    pieces.concat()
}

/// An SPDU or a parameter of one: code, length, contents (X.225 8.2.4).
pub(crate) fn spdu(code: u8, contents: &[&[u8]]) -> Vec<u8> {
    let contents = contents.concat();
    let length = match contents.len() {
        short @ 0..255 => vec![short as u8],
        long => {
            let [high, low] = u16::try_from(long).unwrap().to_be_bytes();
            vec![0xff, high, low]
        }
    };
    [&[code][..], &length, &contents].concat()
}

/// In the data phase: behind an empty GIVE TOKENS (X.225 6.3.7), in a DT.
pub(crate) fn data_phase(spdu: &[u8]) -> Vec<u8> {
    dts(&[&[1, 0], spdu].concat())
}

/// ACTIVITY START with identifier INTEGER `n`.
pub(crate) fn activity_start(n: u8) -> Vec<u8> {
    data_phase(&spdu(0x2d, &[&spdu(0x29, &[&[2, 1, n]])]))
}

/// MINOR SYNC POINT with this text for a serial number.
pub(crate) fn minor_sync(serial: &str) -> Vec<u8> {
    data_phase(&spdu(0x31, &[&spdu(0x2a, &[serial.as_bytes()])]))
}

/// ACTIVITY END, likewise.
pub(crate) fn activity_end(serial: &str) -> Vec<u8> {
    data_phase(&spdu(0x29, &[&spdu(0x2a, &[serial.as_bytes()])]))
}

/// DATA TRANSFER with this PPDU.
pub(crate) fn data(ppdu: &[u8]) -> Vec<u8> {
    data_phase(&[&[1, 0], ppdu].concat())
}

/// User data of one value in this context (X.226 8).
pub(crate) fn user_data(context: u8, value: &[u8]) -> Vec<u8> {
    tlv(0x61, &[&tlv(0x30, &[&[2, 1, context], &tlv(0xa0, &[value])])])
}

/// The same as octets (X.226 8.4.2.3), where the value need not be an element.
pub(crate) fn aligned_data(context: u8, value: &[u8]) -> Vec<u8> {
    tlv(0x61, &[&tlv(0x30, &[&[2, 1, context], &tlv(0x81, &[value])])])
}

/// An RTTR (X.228): OCTET STRING in the context of mta-rtse.
pub(crate) fn rttr(octets: &[u8]) -> Vec<u8> {
    data(&user_data(3, &tlv(4, &[octets])))
}

/// What is transferred: EXTERNAL in the context of mtse.
pub(crate) fn external(apdu: &[u8]) -> Vec<u8> {
    tlv(0x28, &[&[2, 1, 5], &tlv(0xa0, &[apdu])])
}

/// A whole transfer without checkpoints, in RTTRs of some size.
pub(crate) fn transfer(apdu: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = vec![activity_start(1)];
    packets.extend(external(apdu).chunks(40_000).map(rttr));
    packets.push(activity_end("1"));
    packets
}

/// What a P1 CONNECT consists of.
#[derive(Clone)]
pub(crate) struct Connect {
    /// Connection identifier, connect/accept item, requirements: SPDU parameters.
    pub(crate) parameters: Vec<u8>,
    /// Normal mode.
    pub(crate) mode: Vec<u8>,
    /// Context definitions.
    pub(crate) contexts: Vec<Vec<u8>>,
    /// The context of the AARQ.
    pub(crate) acse: u8,
    /// Application context, contents of its object identifier.
    pub(crate) application: Vec<u8>,
    /// The context of the RTORQ.
    pub(crate) rtse: u8,
    /// Members of the RTORQ before the connection data.
    pub(crate) rtorq: Vec<u8>,
    /// Connection data.
    pub(crate) bind: Vec<u8>,
    /// Put behind the members of the AARQ.
    pub(crate) more: Vec<u8>,
}

/// A context definition: identifier, abstract syntax, transfer syntax.
pub(crate) fn context(id: &[u8], syntax: &[u8], transfer: &[u8]) -> Vec<u8> {
    let transfer = tlv(0x30, &[&tlv(6, &[transfer])]);
    tlv(0x30, &[&tlv(2, &[id]), &tlv(6, &[syntax]), &transfer])
}

/// 2.1.1: BER.
pub(crate) const BER: [u8; 2] = [0x51, 1];
/// 2.2.1.0.1: ACSE.
pub(crate) const ACSE: [u8; 4] = [0x52, 1, 0, 1];
/// 2.6.0.2.12: mta-rtse.
pub(crate) const MTA_RTSE: [u8; 4] = [0x56, 0, 2, 12];
/// 2.6.0.2.7: mtse.
pub(crate) const MTSE: [u8; 4] = [0x56, 0, 2, 7];

/// Connection identifier of a user and a common reference.
pub(crate) fn reference() -> Vec<u8> {
    spdu(1, &[&spdu(0x0a, &[b"\x04\x04by hand"]), &spdu(0x0b, &[b"\x17\x0d260101000000Z"])])
}

/// Connect/accept item with this version octet and these tokens.
pub(crate) fn accept_item(version: u8, tokens: u8) -> Vec<u8> {
    spdu(5, &[&[0x13, 1, 0], &[0x16, 1, version], &[0x1a, 1, tokens]])
}

/// Session requirements: half-duplex, minor synchronize, activity management, exceptions.
pub(crate) const REQUIREMENTS: [u8; 4] = [0x14, 2, 2, 0x49];

/// MTABindArgument: [1] SET of name and simple credentials, in the RTORQ's open.
pub(crate) fn mta_bind(name: &[u8], password: &[u8]) -> Vec<u8> {
    let credentials = tlv(0xa1, &[&tlv(0x16, &[password])]);
    let argument = tlv(0xa1, &[&tlv(0x80, &[name]), &credentials]);
    tlv(0xa0, &[&tlv(0xb0, &[&argument])])
}

impl Default for Connect {
    fn default() -> Connect {
        Connect {
            parameters: [reference(), accept_item(2, 0), REQUIREMENTS.to_vec()].concat(),
            mode: vec![0xa0, 3, 0x80, 1, 1],
            contexts: vec![
                context(&[1], &ACSE, &BER),
                context(&[3], &MTA_RTSE, &BER),
                context(&[5], &MTSE, &BER),
            ],
            acse: 1,
            application: vec![0x56, 0, 1, 6],
            rtse: 3,
            rtorq: vec![0x80, 1, 0, 0x81, 1, 3],
            bind: mta_bind(b"THERE", b"secret"),
            more: Vec::new(),
        }
    }
}

impl Connect {
    /// The AARQ (X.227 9).
    pub(crate) fn aarq(&self) -> Vec<u8> {
        let rtorq = tlv(0xb0, &[&self.rtorq, &tlv(0xa3, &[&self.bind])]);
        let external = tlv(0x28, &[&tlv(6, &[&BER]), &[2, 1, self.rtse], &tlv(0xa0, &[&rtorq])]);
        let application = tlv(0xa1, &[&tlv(6, &[&self.application])]);
        tlv(0x60, &[&application, &tlv(0xbe, &[&external]), &self.more])
    }

    /// The CP (X.226 8).
    pub(crate) fn cp(&self) -> Vec<u8> {
        let definitions = tlv(0xa4, &[&self.contexts.concat()]);
        let parameters = tlv(0xa2, &[&definitions, &user_data(self.acse, &self.aarq())]);
        tlv(0x31, &[&self.mode, &parameters])
    }

    /// The CN in a DT, with this PPDU.
    pub(crate) fn with(&self, ppdu: &[u8]) -> Vec<u8> {
        let code = if ppdu.len() > 512 { 0xc2 } else { 0xc1 };
        dt(&spdu(0x0d, &[&self.parameters, &spdu(code, &[ppdu])]))
    }

    /// The CN in a DT.
    pub(crate) fn octets(&self) -> Vec<u8> {
        self.with(&self.cp())
    }
}

/// CONNECT with a change.
pub(crate) fn connect(change: impl FnOnce(&mut Connect)) -> Vec<u8> {
    let mut connect = Connect::default();
    change(&mut connect);
    connect.octets()
}

/// What opens a P1 association.
pub(crate) fn p1_opening() -> Vec<Vec<u8>> {
    vec![cr(), connect(|_| {})]
}

/// The members of the envelope of a message to the user of the site, each with its name.
pub(crate) fn envelope() -> Vec<(&'static str, Vec<u8>)> {
    let domain = domain(b"THERE");
    let trace = tlv(0x30, &[&domain, &tlv(0x31, &[b"\x80\x0d260101000000Z\x82\x01\x00"])]);
    vec![
        ("identifier", tlv(0x64, &[&domain, &tlv(0x16, &[b"BY.HAND.1"])])),
        ("originator", name(b"THERE")),
        ("content-type", vec![0x46, 1, 0x16]),
        ("trace", tlv(0x69, &[&trace])),
        ("recipients", tlv(0xa2, &[&recipient(1, &[])])),
    ]
}

/// GlobalDomainIdentifier.
pub(crate) fn domain(prmd: &[u8]) -> Vec<u8> {
    let country = tlv(0x61, &[&tlv(0x13, &[b"XX"])]);
    tlv(0x63, &[&country, &tlv(0x62, &[&tlv(0x13, &[b"NATO"])]), &tlv(0x13, &[prmd])])
}

/// ORName of a user OPS.
pub(crate) fn name(prmd: &[u8]) -> Vec<u8> {
    name_of(prmd, b"OPS")
}

pub(crate) fn name_of(prmd: &[u8], surname: &[u8]) -> Vec<u8> {
    let country = tlv(0x61, &[&tlv(0x13, &[b"XX"])]);
    let admd = tlv(0x62, &[&tlv(0x13, &[b"NATO"])]);
    let prmd = tlv(0xa2, &[&tlv(0x13, &[prmd])]);
    let personal = tlv(0xa5, &[&tlv(0x80, &[surname])]);
    tlv(0x60, &[&tlv(0x30, &[&country, &admd, &prmd, &personal])])
}

/// PerRecipientMessageTransferFields with this number, and more members.
pub(crate) fn recipient(number: u32, more: &[u8]) -> Vec<u8> {
    let number = number.to_be_bytes();
    let first = number.iter().take(3).take_while(|o| **o == 0).count();
    let number = [&[0][..], &number[first..]].concat();
    tlv(0x31, &[&name(b"HERE"), &tlv(0x80, &[&number]), &[0x81, 2, 7, 0x80], more])
}

/// The message: MTS-APDU of envelope and content.
pub(crate) fn message(members: &[(&'static str, Vec<u8>)], content: &[u8]) -> Vec<u8> {
    let members: Vec<&[u8]> = members.iter().map(|(_, octets)| octets.as_slice()).collect();
    tlv(0xa0, &[&tlv(0x31, &members), &tlv(4, &[content])])
}

/// The same with one member changed.
pub(crate) fn message_with(member: &str, octets: &[u8]) -> Vec<u8> {
    let mut members = envelope();
    let (_, found) = members.iter_mut().find(|(name, _)| *name == member).expect("a member");
    *found = octets.to_vec();
    message(&members, b"content")
}

/// The same with one member more.
pub(crate) fn message_and(octets: &[u8]) -> Vec<u8> {
    let mut members = envelope();
    members.push(("more", octets.to_vec()));
    message(&members, b"content")
}
