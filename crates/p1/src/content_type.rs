//! Content types (X.411 8.2.1.1.1.34).

use base::ber::Oid;

/// ContentType: what the content is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentType {
    /// built-in: a number, see the constants.
    BuiltIn(i64),
    /// extended: an object identifier.
    Extended(Oid),
}

impl ContentType {
    /// unidentified.
    pub const UNIDENTIFIED: ContentType = ContentType::BuiltIn(0);
    /// external.
    pub const EXTERNAL: ContentType = ContentType::BuiltIn(1);
    /// interpersonal-messaging-1984 (P2).
    pub const P2: ContentType = ContentType::BuiltIn(2);
    /// interpersonal-messaging-1988 (P22).
    pub const P22: ContentType = ContentType::BuiltIn(22);
    /// edi-messaging.
    pub const EDI: ContentType = ContentType::BuiltIn(35);
    /// voice-messaging.
    pub const VOICE: ContentType = ContentType::BuiltIn(40);

    /// STANAG 4406 military messages (P772), 1.3.26.0.4406.0.4.1.
    pub fn p772() -> ContentType {
        // From constant, well-formed octets; the other branch is never taken.
        match Oid::from_content(&P772) {
            Ok(oid) => ContentType::Extended(oid),
            Err(_) => ContentType::UNIDENTIFIED,
        }
    }
}

/// Content octets of 1.3.26.0.4406.0.4.1.
const P772: [u8; 8] = [0x2b, 26, 0, 0xa2, 0x36, 0, 4, 1];
