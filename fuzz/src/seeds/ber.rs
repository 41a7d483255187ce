//! Elements in every form of BER.

use super::{Seed, hex, named};

/// See the module.
pub fn elements() -> Vec<Seed> {
    named(&[
        ("definite", hex("30 0b 02 01 05 04 02 \"ab\" 31 02 05 00")),
        (
            "indefinite",
            hex("30 80 02 01 05 24 80 04 02 \"ab\" 04 00 00 00 a1 04 30 02 05 00 00 00"),
        ),
        ("bits", hex("30 80 03 02 07 80 23 80 03 03 00 a5 5a 03 02 04 f0 00 00 00 00")),
        ("oids", hex("30 12 06 08 2b 1a 00 a2 36 00 04 01 06 02 51 01 06 02 88 37")),
        ("long-forms", hex("bf 81 23 84 00 00 00 05 9f 1f 02 01 02")),
        ("integers", hex("30 13 02 01 80 02 02 00 ff 02 08 7f ff ff ff ff ff ff ff 0a 00")),
        ("times", hex("30 1c 17 0d \"070814093000Z\" 17 0b \"0708140930Z\"")),
        ("strings", hex("30 80 36 80 04 03 \"hel\" 24 04 04 02 \"lo\" 00 00 14 02 e6 f8 00 00")),
    ])
}
