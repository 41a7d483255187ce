use super::*;
use proptest::prelude::*;

/// Interface, time, length and octets of a packet.
type Found = (usize, Option<u64>, u32, Vec<u8>);

/// A file's packets, read from a buffer that grows by `piece` octets; and how it ended.
fn read(file: &[u8], piece: usize) -> (Vec<Found>, Result<(), FileError>) {
    let mut decoder = FileDecoder::default();
    let (mut packets, mut from, mut to) = (Vec::new(), 0, 0);
    loop {
        match decoder.next(&file[from..to]) {
            Ok(DecodeStep::Need(octets)) => {
                assert!(octets > to - from, "needs no more than there is");
                if to == file.len() {
                    return (packets, Ok(()));
                }
                to = (to + piece).min(file.len());
            }
            Ok(DecodeStep::Passed(size)) => from += size,
            Ok(DecodeStep::Packet { size, packet }) => {
                from += size;
                let time = packet.time.map(|time| time.0);
                packets.push((packet.interface, time, packet.original, packet.octets.to_vec()));
            }
            Err(error) => return (packets, Err(error)),
        }
        assert_eq!(decoder.offset(), from as u64);
    }
}

struct File(Vec<u8>, bool);

impl File {
    fn u32(&mut self, value: u32) {
        self.0.extend(if self.1 { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u16(&mut self, value: u16) {
        self.0.extend(if self.1 { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut File)) {
        let mut inner = File(Vec::new(), self.1);
        body(&mut inner);
        inner.0.resize(inner.0.len().next_multiple_of(4), 0);
        let length = inner.0.len() as u32 + 12;
        self.u32(kind);
        self.u32(length);
        self.0.extend(inner.0);
        self.u32(length);
    }

    fn section(&mut self) {
        self.block(0x0a0d_0d0a, |b| {
            b.u32(0x1a2b_3c4d);
            b.u32(1);
            b.u32(u32::MAX);
            b.u32(u32::MAX);
        });
    }

    fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) {
        self.block(1, |b| {
            b.u16(link);
            b.u16(0);
            b.u32(96);
            for (code, value) in options {
                b.u16(*code);
                b.u16(value.len() as u16);
                b.0.extend(*value);
                b.0.resize(b.0.len().next_multiple_of(4), 0);
            }
        });
    }

    fn packet(&mut self, interface: u32, stamp: u64, original: u32, octets: &[u8]) {
        self.block(6, |b| {
            b.u32(interface);
            b.u32((stamp >> 32) as u32);
            b.u32(stamp as u32);
            b.u32(octets.len() as u32);
            b.u32(original);
            b.0.extend(octets);
        });
    }
}

fn pcapng(big: bool) -> Vec<u8> {
    let mut file = File(Vec::new(), big);
    file.section();
    // Without an end of options, which some writers leave out.
    file.interface(1, &[(2, b"eth0"), (9, &[9])]);
    file.interface(101, &[(9, &[0x80 | 10]), (0, &[])]);
    file.packet(0, 5_000_000_001, 1500, b"abcde");
    file.packet(1, 3 << 10, 4, b"wxyz");
    file.block(99, |b| b.u32(7));
    file.block(3, |b| {
        b.u32(3);
        b.0.extend(b"xyz");
    });
    // A second section numbers its interfaces anew.
    file.section();
    file.interface(113, &[]);
    file.packet(0, 1_000_002, 2, b"hi");
    file.0
}

#[test]
fn pcapng_of_both_orders_several_interfaces_and_resolutions() {
    for big in [false, true] {
        let file = pcapng(big);
        let (packets, end) = read(&file, file.len());
        assert_eq!(end, Ok(()));
        assert_eq!(
            packets,
            [
                (0, Some(5_000_000_001), 1500, b"abcde".to_vec()),
                (1, Some(3_000_000_000), 4, b"wxyz".to_vec()),
                (0, None, 3, b"xyz".to_vec()),
                (2, Some(1_000_002_000), 2, b"hi".to_vec()),
            ]
        );
    }
    let mut decoder = FileDecoder::default();
    let (file, mut at) = (pcapng(false), 0);
    while let Ok(DecodeStep::Passed(size) | DecodeStep::Packet { size, .. }) =
        decoder.next(&file[at..])
    {
        at += size;
    }
    let found: Vec<_> =
        decoder.interfaces().iter().map(|of| (of.name.as_deref(), of.link)).collect();
    assert_eq!(
        found,
        [(Some("eth0"), LinkType::Ethernet), (None, LinkType::Raw), (None, LinkType::Sll)]
    );
}

#[test]
fn a_packet_has_its_direction_where_the_file_has_it() {
    for big in [false, true] {
        let mut file = File(Vec::new(), big);
        file.section();
        file.interface(101, &[]);
        // Of no length, of one that is padded; a comment before the flags, and none at all.
        for (octets, flags) in
            [(&b""[..], Some(1u32)), (b"abcde", Some(2)), (b"abcd", Some(0x20)), (b"abc", None)]
        {
            file.block(6, |b| {
                for word in [0, 0, 7, octets.len() as u32, 9] {
                    b.u32(word);
                }
                b.0.extend(octets);
                b.0.resize(b.0.len().next_multiple_of(4), 0);
                b.u16(1);
                b.u16(3);
                b.0.extend(b"hi!\0");
                if let Some(flags) = flags {
                    b.u16(2);
                    b.u16(4);
                    b.u32(flags);
                }
                b.u32(0);
            });
        }
        let (mut decoder, mut at, mut found) = (FileDecoder::default(), 0, Vec::new());
        while at < file.0.len() {
            match decoder.next(&file.0[at..]).unwrap() {
                DecodeStep::Packet { size, packet } => {
                    found.push((packet.octets.len(), packet.inbound));
                    at += size;
                }
                DecodeStep::Passed(size) => at += size,
                DecodeStep::Need(_) => panic!("the file is whole"),
            }
        }
        assert_eq!(found, [(0, Some(true)), (5, Some(false)), (4, None), (3, None)]);
    }
}

#[test]
fn pcap_of_both_orders_and_units() {
    for (magic, big, nanos) in [
        (0xa1b2_c3d4u32, true, 7_000),
        (0xa1b2_c3d4, false, 7_000),
        (0xa1b2_3c4d, true, 7),
        (0xa1b2_3c4d, false, 7),
    ] {
        let mut file = File(Vec::new(), big);
        file.u32(magic);
        file.u16(2);
        file.u16(4);
        for value in [0, 0, 96, 1, 2, 7, 3, 1500] {
            file.u32(value);
        }
        file.0.extend(b"abc");
        let (packets, end) = read(&file.0, 5);
        assert_eq!(end, Ok(()));
        assert_eq!(packets, [(0, Some(2_000_000_000 + nanos), 1500, b"abc".to_vec())]);
    }
}

#[test]
fn an_error_has_its_position() {
    let fault = |file: &[u8]| read(file, file.len()).1.unwrap_err();
    assert_eq!(fault(b"GET / HTTP/1.1\r\n"), FileError { at: 0, fault: FileFault::Magic });
    assert_eq!(fault(&[0x1f, 0x8b, 8, 0]).fault, FileFault::Packed("gzip"));
    let mut file = File(Vec::new(), false);
    file.section();
    let at = file.0.len() as u64;
    let sound = file.0.clone();
    file.packet(3, 0, 0, b"");
    assert_eq!(fault(&file.0), FileError { at, fault: FileFault::Interface(3) });
    let bad = [&sound[..], &[6, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(fault(&bad).to_string(), format!("at octet {at}: a block of 13 octets"));
    let mut trailer = sound.clone();
    *trailer.last_mut().unwrap() = 1;
    assert!(matches!(fault(&trailer).fault, FileFault::Trailer(..)));
    let mut many = File(sound, false);
    (0..=MAX_INTERFACES).for_each(|_| many.interface(1, &[]));
    assert_eq!(fault(&many.0).fault, FileFault::Interfaces);
}

#[test]
fn times_of_any_resolution() {
    let at = |unit, stamp| Resolution { unit, offset: 0 }.time(stamp).0;
    assert_eq!(at(Unit::Decimal(3), 1_500), 1_500_000_000);
    assert_eq!(at(Unit::Decimal(12), 1_500), 1);
    assert_eq!(at(Unit::Decimal(127), u64::MAX), 0);
    assert_eq!(at(Unit::Decimal(0), u64::MAX), u64::MAX);
    assert_eq!(at(Unit::Binary(127), u64::MAX), 0);
    assert_eq!(Resolution { unit: Unit::Decimal(6), offset: -2 }.time(3_000_000).0, 1_000_000_000);
}

proptest! {
    #[test]
    fn damage_never_panics_and_cuts_do_not_matter(
        big in any::<bool>(), piece in 1usize..50,
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..6),
    ) {
        let mut file = pcapng(big);
        for (at, value) in damage {
            let at = usize::from(at) % file.len();
            file[at] = value;
        }
        prop_assert_eq!(read(&file, piece), read(&file, file.len()));
    }
}
