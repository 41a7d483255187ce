//! Records of the durable queue.

use engine::Record;

pub(crate) fn run(octets: &[u8]) {
    match Record::decode(octets) {
        Ok(record) => {
            let again = Record::decode(&record.encode());
            assert_eq!(again.as_ref(), Ok(&record));
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}
