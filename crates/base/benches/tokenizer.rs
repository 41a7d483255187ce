//! Octets a second through the tokenizer: a content of one long string, as most of P1 is, and
//! nothing but small elements, as an envelope with many recipients is.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use base::ber::{Limits, Tag, Tokenizer, Writer, universal};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Octets handed in at once, as they come from a TSDU.
const PIECE: usize = 8_192;

fn tokens(octets: &[u8]) -> usize {
    let mut tokenizer = Tokenizer::new(Limits::default());
    let mut count = 0;
    for mut piece in octets.chunks(PIECE) {
        while let Some(token) = tokenizer.next(&mut piece).expect("sound octets") {
            black_box(&token);
            count += 1;
        }
    }
    assert!(tokenizer.is_done());
    count
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.constructed(universal::SEQUENCE, write);
    writer.into_vec()
}

fn tokenizer(c: &mut Criterion) {
    let string = vec![0x55; 10_000_000];
    let long = written(|w| w.primitive(universal::OCTET_STRING, &string));
    let small = written(|w| {
        for n in 0..20_000u32 {
            w.constructed(Tag::context(n % 30), |w| {
                w.primitive(universal::PRINTABLE_STRING, b"NAPLES");
                w.primitive(universal::INTEGER, &[1]);
            });
        }
    });
    for (name, octets) in [("a string of 10 MB", long), ("elements of 2 to 13 octets", small)] {
        let mut group = c.benchmark_group("tokenizer");
        group.throughput(Throughput::Bytes(octets.len() as u64));
        group.bench_function(name, |b| b.iter(|| tokens(black_box(&octets))));
        group.finish();
    }
}

criterion_group!(benches, tokenizer);
criterion_main!(benches);
