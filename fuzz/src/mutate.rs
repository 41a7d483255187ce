//! Damages inputs: blindly, as BER, and as a stream of TPKTs.

use crate::tree::{self, Content, Form, Node};
use base::ber::{Tag, universal};
use base::rng::Rng;

/// Longest input made.
pub const MAX_INPUT: usize = 1 << 16;

/// Octets that are more often a limit than others.
const INTERESTING: [u8; 16] =
    [0, 1, 2, 3, 4, 0x1f, 0x24, 0x30, 0x31, 0x7f, 0x80, 0x81, 0x84, 0x88, 0xa0, 0xff];

/// An input made of one or two of the corpus and a few changes; sometimes one of them as it is.
pub fn mutate(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = pick(rng, corpus).cloned().unwrap_or_default();
    // Mostly few changes: what is damaged all over is refused by the first check.
    let changes = one_of(rng, [0, 1, 1, 1, 2, 2, 3, 8]);
    for _ in 0..changes {
        octets = change(rng, octets, corpus);
        octets.truncate(MAX_INPUT);
    }
    octets
}

fn change(rng: &mut Rng, octets: Vec<u8>, corpus: &[Vec<u8>]) -> Vec<u8> {
    if rng.below(4) == 0 {
        return blind(rng, octets, corpus);
    }
    if let Some(packets) = packets(&octets) {
        return of_packets(rng, packets, corpus);
    }
    match tree::parse(&octets) {
        Some(nodes) => of_tree(rng, nodes, corpus),
        None => blind(rng, octets, corpus),
    }
}

fn index(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

fn pick<'a, T>(rng: &mut Rng, of: &'a [T]) -> Option<&'a T> {
    of.get(index(rng, of.len()))
}

/// One of these.
pub(crate) fn one_of<T: Copy + Default, const N: usize>(rng: &mut Rng, of: [T; N]) -> T {
    pick(rng, &of).copied().unwrap_or_default()
}

fn octet(rng: &mut Rng) -> u8 {
    if rng.below(2) == 0 {
        rng.next_u64() as u8
    } else {
        pick(rng, &INTERESTING).copied().unwrap_or_default()
    }
}

/// A range of at most `most` octets.
fn range(rng: &mut Rng, length: usize, most: usize) -> std::ops::Range<usize> {
    let start = index(rng, length + 1);
    let size = index(rng, most.min(length - start) + 1);
    start..start + size
}

/// Changes that know nothing.
fn blind(rng: &mut Rng, mut octets: Vec<u8>, corpus: &[Vec<u8>]) -> Vec<u8> {
    let at = index(rng, octets.len());
    match rng.below(9) {
        0 => octets.iter_mut().skip(at).take(1).for_each(|o| *o ^= 1 << rng.below(8)),
        1 => octets.iter_mut().skip(at).take(1).for_each(|o| *o = octet(rng)),
        2 => octets.insert(at, octet(rng)),
        3 => drop(octets.drain(range(rng, octets.len(), 32))),
        4 => octets.truncate(at),
        5 => {
            let copied: Vec<u8> = octets.drain(range(rng, octets.len(), 64)).collect();
            let times = 2 + index(rng, 3);
            let again = std::iter::repeat_n(copied, times).flatten();
            let at = at.min(octets.len());
            octets.splice(at..at, again);
        }
        6 => {
            // Splice: our front, another's back.
            let other = pick(rng, corpus).cloned().unwrap_or_default();
            let from = index(rng, other.len() + 1);
            octets.truncate(at);
            octets.extend(other.iter().skip(from));
        }
        7 => {
            // What may be a length of one, two or four octets: a little or far off.
            let width = one_of(rng, [1, 2, 4]);
            let any = rng.next_u64() as u32;
            let by = one_of(rng, [1, 2, 0x7f, 0xff, any]);
            let field = octets.iter().skip(at).take(width);
            let value = field.fold(0u32, |n, o| n << 8 | u32::from(*o));
            let value =
                if rng.below(2) == 0 { value.wrapping_add(by) } else { value.wrapping_sub(by) };
            let new = value.to_be_bytes();
            octets.iter_mut().skip(at).zip(new.iter().skip(4 - width)).for_each(|(o, n)| *o = *n);
        }
        _ => {
            let run = std::iter::repeat_n(octet(rng), 1 + index(rng, 300));
            octets.splice(at..at, run);
        }
    }
    octets
}

/// Changes an element and mends the lengths around it.
fn of_tree(rng: &mut Rng, mut nodes: Vec<Node>, corpus: &[Vec<u8>]) -> Vec<u8> {
    let number = index(rng, tree::count(&nodes));
    let foreign = foreign_element(rng, corpus);
    tree::visit(&mut nodes, number, &mut |list, at| change_element(rng, list, at, &foreign));
    tree::write(&nodes)
}

/// Any element of any input.
fn foreign_element(rng: &mut Rng, corpus: &[Vec<u8>]) -> Node {
    let mut nodes = pick(rng, corpus).and_then(|o| tree::parse(o)).unwrap_or_default();
    let number = index(rng, tree::count(&nodes));
    let content = Content::Primitive(vec![octet(rng)]);
    let mut found = Node { tag: universal::INTEGER, content, form: Form::Definite };
    tree::visit(&mut nodes, number, &mut |list, at| {
        if let Some(node) = list.get(at) {
            found = node.clone();
        }
    });
    found
}

fn change_element(rng: &mut Rng, list: &mut Vec<Node>, at: usize, foreign: &Node) {
    let length = list.len();
    let Some(node) = list.get_mut(at) else { return };
    match rng.below(16) {
        0 => node.tag = tag(rng),
        1 => node.tag.number = node.tag.number.wrapping_add(1) & 0x7fff_ffff,
        2 => {
            let any = rng.below(300);
            node.form = Form::Wrong(one_of(rng, [0, 1, 0x7f, 0x80, 0xffff, u64::MAX, any]));
        }
        3 => node.form = Form::Padded(1 + rng.below(8) as u8),
        4 => node.form = Form::Indefinite,
        5 => {
            let levels = one_of(rng, [1, 2, 8, 30, 33, 40]);
            for _ in 0..levels {
                let tag = if rng.below(2) == 0 { node.tag } else { universal::SEQUENCE };
                let form = if rng.below(2) == 0 { Form::Definite } else { Form::Indefinite };
                *node = Node { tag, content: Content::Constructed(vec![node.clone()]), form };
            }
        }
        6 => *node = node.segmented(index(rng, 8)),
        7 => drop(list.remove(at)),
        8 => {
            let node = node.clone();
            let times = one_of(rng, [1, 1, 2, 100]);
            list.splice(at..at, std::iter::repeat_n(node, times));
        }
        9 => list.swap(at, index(rng, length)),
        10 => *node = foreign.clone(),
        11 => list.insert(at, foreign.clone()),
        12 => node.content = Content::Primitive(Vec::new()),
        _ => match &mut node.content {
            Content::Primitive(octets) => {
                let changed = blind(rng, std::mem::take(octets), &[]);
                *octets = changed;
            }
            Content::Constructed(children) => {
                let turn = index(rng, children.len());
                children.rotate_left(turn);
            }
        },
    }
}

fn tag(rng: &mut Rng) -> Tag {
    let number = match rng.below(4) {
        0 => rng.next_u64() as u32 & 0x7fff_ffff,
        _ => rng.below(34) as u32,
    };
    match rng.below(4) {
        0 => Tag::universal(number),
        1 => Tag::application(number),
        2 => Tag::private(number),
        _ => Tag::context(number),
    }
}

/// The payloads of a stream of TPKTs; the last may be cut short. `None` where there are not two.
pub fn packets(mut octets: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    while let [3, _, high, low, rest @ ..] = octets {
        let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(4)?;
        let (payload, after) = rest.split_at(length.min(rest.len()));
        packets.push(payload.to_vec());
        octets = after;
    }
    (octets.is_empty() && packets.len() > 1).then_some(packets)
}

/// Changes packets, or what is in one, and mends the TPKT lengths.
fn of_packets(rng: &mut Rng, mut packets: Vec<Vec<u8>>, corpus: &[Vec<u8>]) -> Vec<u8> {
    let at = index(rng, packets.len());
    let other = index(rng, packets.len());
    match rng.below(10) {
        0 => drop(packets.remove(at)),
        1 => packets.insert(other, packets.get(at).cloned().unwrap_or_default()),
        2 => packets.swap(at, other),
        3 => {
            let theirs = pick(rng, corpus).and_then(|o| self::packets(o)).unwrap_or_default();
            packets.insert(at, pick(rng, &theirs).cloned().unwrap_or_default());
        }
        4 => {
            // The same TSDU in two DT TPDUs: only the last has the EOT bit.
            if let Some([2, 0xf0, 0x80, data @ ..]) = packets.get(at).map(Vec::as_slice) {
                let (a, b) = data.split_at(index(rng, data.len() + 1));
                let (a, b) = ([&[2, 0xf0, 0], a].concat(), [&[2, 0xf0, 0x80], b].concat());
                packets.splice(at..=at, [a, b]);
            }
        }
        5 => {
            if let Some(packet) = packets.get_mut(at) {
                *packet = blind(rng, std::mem::take(packet), corpus);
            }
        }
        _ => {
            if let Some(packet) = packets.get_mut(at) {
                inner_ber(rng, packet);
            }
        }
    }
    let mut out = Vec::new();
    for packet in packets {
        let length = u16::try_from(packet.len() + 4).unwrap_or(u16::MAX);
        let [high, low] = length.to_be_bytes();
        out.extend_from_slice(&[3, 0, high, low]);
        out.extend_from_slice(&packet);
    }
    out
}

/// Changes an element of the longest BER at the end of a packet, behind the session's header. The
/// lengths in that header are mended where they are of one octet and end with the packet.
fn inner_ber(rng: &mut Rng, packet: &mut Vec<u8>) {
    let starts = (3..packet.len()).take(160);
    let found =
        starts.map(|at| (at, packet.get(at..).unwrap_or_default())).find_map(|(at, rest)| {
            // A PPDU begins with one of these (X.226 8.4): anything else parses by accident.
            let first = rest.first().copied().unwrap_or_default();
            [0x31, 0x61, 0x30, 0xa0].contains(&first).then(|| tree::parse(rest))?.map(|n| (at, n))
        });
    let Some((at, nodes)) = found else { return };
    let before = packet.len();
    let (head, _) = packet.split_at(at);
    let mut head = head.to_vec();
    let new = of_tree(rng, nodes, &[]);
    let grown = at + new.len();
    for n in 3..at {
        let ends_with_packet = |l: u8| l < 0xff && n + 1 + usize::from(l) == before;
        if let Some(length) = head.get_mut(n)
            && ends_with_packet(*length)
            && let Ok(mended) = u8::try_from(grown.saturating_sub(n + 1))
        {
            *length = mended;
        }
    }
    for n in 3..at.saturating_sub(2) {
        if let Some([0xff, high, low]) = head.get_mut(n..n + 3)
            && n + 3 + usize::from(u16::from_be_bytes([*high, *low])) == before
            && let Ok(mended) = u16::try_from(grown.saturating_sub(n + 3))
        {
            [*high, *low] = mended.to_be_bytes();
        }
    }
    head.extend_from_slice(&new);
    *packet = head;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_input() {
        let corpus = vec![vec![0x30, 3, 2, 1, 5], vec![3, 0, 0, 7, 2, 0xf0, 0x80, 3, 0, 0, 5, 1]];
        let make = |seed| mutate(&mut Rng::new(seed), &corpus);
        let all: Vec<Vec<u8>> = (0..500).map(make).collect();
        assert_eq!(all, (0..500).map(make).collect::<Vec<_>>());
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(distinct.len() > 250, "{} distinct inputs", distinct.len());
        assert!(all.iter().all(|i| i.len() <= MAX_INPUT));
    }

    #[test]
    fn an_empty_corpus_is_no_obstacle() {
        for seed in 0..500 {
            let _ = mutate(&mut Rng::new(seed), &[]);
            let _ = mutate(&mut Rng::new(seed), &[Vec::new()]);
        }
    }

    #[test]
    fn lengths_around_a_changed_element_stay_right() {
        // TPKT, DT, session CN with user data C1 of a SET: every length follows.
        let ppdu = [0x31, 4, 0x80, 2, b'a', b'b'];
        let mut packet = vec![2, 0xf0, 0x80, 0x0d, 8, 0xc1, 6];
        packet.extend_from_slice(&ppdu);
        let mut grown = 0;
        for seed in 0..200 {
            let mut changed = packet.clone();
            inner_ber(&mut Rng::new(seed), &mut changed);
            if let [2, 0xf0, 0x80, 0x0d, outer, 0xc1, inner, rest @ ..] = changed.as_slice()
                && rest.len() < 250
            {
                assert_eq!(usize::from(*inner), rest.len());
                assert_eq!(usize::from(*outer), rest.len() + 2);
                grown += usize::from(rest.len() != ppdu.len());
            }
        }
        assert!(grown > 20, "{grown}");
    }
}
