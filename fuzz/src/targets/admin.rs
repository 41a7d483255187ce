//! Lines of the admin socket: what an administrator asks the daemon, and what is answered.

use mta::admin::{Answer, Request};

pub(super) fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    if let Ok(request) = serde_json::from_str::<Request>(&text) {
        let again = serde_json::to_string(&request).expect("what was read");
        assert_eq!(serde_json::from_str::<Request>(&again).ok(), Some(request));
    }
    if let Ok(answer) = serde_json::from_str::<Answer>(&text) {
        let again = serde_json::to_string(&answer).expect("what was read");
        assert_eq!(serde_json::from_str::<Answer>(&again).ok(), Some(answer));
    }
}
