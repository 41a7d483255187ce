use explore::pair::Pair;
use explore::reliable::{Budget, Setting, Talker};
use explore::search::explore;
use osi::api::{Dialogue, Mode, Role};

#[test]
fn quick() {
    let setting = Setting {
        mode: Mode::Normal,
        dialogue: Dialogue::Monologue,
        content: 1100,
        window: 1,
        budget: Budget { transfers: 1, resumes: 1, turns: 1, stops: 1 },
    };
    let depth: usize = std::env::var("DEPTH").ok().and_then(|d| d.parse().ok()).unwrap_or(10);
    let pair = Pair::new(Talker::new(setting, Role::Initiator), Talker::new(setting, Role::Responder));
    let found = explore(pair, depth, 10_000_000);
    println!("{found:#?}");
    assert!(found.broken.is_none());
}
