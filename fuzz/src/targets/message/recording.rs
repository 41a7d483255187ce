//! Recordings of inputs: the file at any cut, any octets as the body of a header or a record, an input that the node
//! takes, and any octets of an association, whose passwords are looked for.

use crate::targets::cut;
use base::AssociationId;
use bytes::Bytes;
use record::format::{MAGIC, framed};
use record::mask::{Key, Masks};
use record::player::{PlayError, Player};
use record::strip::Stripper;
use record::{Decoder, FORMAT, Names, Record, words};
use std::sync::OnceLock;
use testkit::{NOTHING, Network, record_nodes};

/// A recording of a site that starts and is bound to.
fn sample() -> &'static [u8] {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        record_nodes(true);
        let mut network = Network::pair(1, NOTHING);
        network.run_for(std::time::Duration::from_secs(2));
        record_nodes(false);
        network.sites.iter_mut().flat_map(|site| site.take_recordings()).next().unwrap_or_default()
    })
}

/// Octets before the second record.
fn front() -> &'static [u8] {
    let length = sample().get(10..14).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    sample().get(..10 + 16 + u32::from_le_bytes(length) as usize).unwrap_or_default()
}

/// A whole recording, and bodies of its records.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut rest = sample().get(front().len()..).unwrap_or_default();
    let mut body = || {
        let (length, after) = rest.split_first_chunk()?;
        let body = after.get(12..12 + u32::from_le_bytes(*length) as usize)?;
        rest = after.get(12 + body.len()..)?;
        Some(body.to_vec())
    };
    let names = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    let mut seeds: Vec<(&'static str, Vec<u8>)> =
        names.into_iter().map_while(|name| Some((name, body()?))).collect();
    seeds.push(("whole", sample().to_vec()));
    seeds
}

/// All records that are read, in words, and whether the file can be read to its end.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, bool) {
    let mut decoder = Decoder::default();
    let mut all = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(Record::Input(_, input))) => {
                    all.push(words::input(&input, &Names::default()));
                }
                Ok(Some(record)) => all.push(format!("{record:?}").chars().take(80).collect()),
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (all, false);
                }
            }
        }
    }
    (all, true)
}

/// Octets before the first record.
fn preamble() -> Vec<u8> {
    [&MAGIC[..], &FORMAT.to_le_bytes()].concat()
}

/// Runs what a file has that is whole, and copies it without contents: both come to the same end. The second record is
/// these octets.
fn play(octets: &[u8]) {
    let decoded = || {
        let mut decoder = Decoder::default();
        decoder.push(front());
        decoder.push(&framed(1, octets));
        match (decoder.next(), decoder.next()) {
            (Ok(Some(Record::Header(header))), Ok(Some(record))) => Some((header, record)),
            _ => None,
        }
    };
    let (Some((header, record)), Some((_, again))) = (decoded(), decoded()) else { return };
    // Another configuration is checked where it is read, and the node believes it.
    if matches!(record, Record::Input(_, node::Input::Configure { .. })) {
        return;
    }
    let (Ok(mut player), Ok(mut stripper)) = (Player::new(&header), Stripper::new(&header)) else {
        return;
    };
    // A copy has a panic in words.
    let played = player.record(record).err();
    let played = played.filter(|error| !matches!(error, PlayError::Panic(..)));
    assert_eq!(stripper.record(again).err(), played, "the copy ends otherwise");
    let mut copy = Vec::new();
    stripper.take(&mut copy);
    assert!(read(std::iter::once(&copy[..])).1, "the copy cannot be read");
}

/// Octets as a file, as a body, and as those of an association.
pub(crate) fn run(octets: &[u8]) {
    let whole = read(std::iter::once(octets));
    assert_eq!(read(cut(octets).into_iter()), whole, "the cut matters");
    read([front(), &framed(1, octets)].into_iter());
    read([&preamble()[..], &framed(0, octets)].into_iter());
    play(octets);
    for of_user in [false, true] {
        let masked = |pieces: Vec<&[u8]>| -> Vec<u8> {
            let mut masks = Masks::of_others(Key([3; 32]));
            if of_user {
                masks.of_user(AssociationId(1));
            }
            let mut one = |piece| {
                let piece = Bytes::copy_from_slice(piece);
                masks.find(AssociationId(1), &piece).copy(&piece)
            };
            pieces.into_iter().flat_map(|piece| one(piece).to_vec()).collect()
        };
        let whole = masked(vec![octets]);
        assert_eq!(whole.len(), octets.len());
        // What comes at once may be overwritten as a whole; what came in pieces was written before.
        let cut = masked(cut(octets));
        assert_eq!(cut.len(), octets.len());
        let is_same = |(whole, cut): (&u8, &u8)| whole == cut || *whole == 0;
        assert!(whole.iter().zip(&cut).all(is_same), "the cut matters");
    }
}
