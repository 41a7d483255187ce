//! Checksums: XXH3 of 64 bits for each 64 KiB of a part, as the embedded store has them for blocks. They are
//! made before the octets leave and checked when they are back, so they cover what the server, its disk and
//! the network do.

use xxhash_rust::xxh3::xxh3_64;

/// Octets under one checksum.
pub(crate) const BLOCK: usize = 64 << 10;

/// The checksums of the blocks of these octets, little-endian, one after the other.
pub(crate) fn sums(octets: &[u8]) -> Vec<u8> {
    octets.chunks(BLOCK).flat_map(|block| xxh3_64(block).to_le_bytes()).collect()
}

/// Whether these octets, which begin with block number `first`, have the checksums of the whole.
pub(crate) fn agree(octets: &[u8], first: usize, sums: &[u8]) -> bool {
    let mut expected = sums.chunks_exact(8).skip(first);
    octets
        .chunks(BLOCK)
        .all(|block| expected.next().is_some_and(|sum| sum == xxh3_64(block).to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_octet_is_noticed_in_its_block() {
        let mut octets = vec![7; 3 * BLOCK + 5];
        let sums = sums(&octets);
        assert_eq!(sums.len(), 32);
        assert!(agree(&octets, 0, &sums) && agree(&octets[BLOCK..], 1, &sums));
        octets[2 * BLOCK] = 8;
        assert!(!agree(&octets, 0, &sums) && agree(&octets[..2 * BLOCK], 0, &sums));
        assert!(agree(&[], 0, &[]) && !agree(b"x", 0, &[]));
    }
}
