//! Where the queue is, and which node of its site an MTA is.

use super::*;
use crate::section::store::engine::{ClusterNode, Postgres};

fn engine(text: &str) -> (Option<StoreEngine>, String) {
    let (site, report) = check_in(Path::new("/nowhere"), &format!("{GOOD}\n{text}"));
    (site.map(|site| site.engine), report.render(false))
}

#[test]
fn a_queue_is_in_the_data_directory_unless_a_database_is_named() {
    for text in ["", "[store]", "[store]\nengine = \"embedded\""] {
        assert_eq!(engine(text).0, Some(StoreEngine::Embedded));
    }
    let database = "[store]\nengine = \"postgres\"\nurl = \"host=h dbname=mta user=mta_run\"";
    let alone = Postgres {
        url: "host=h dbname=mta user=mta_run".to_owned(),
        password: None,
        schema: "mta".to_owned(),
        connections: 4,
        node: None,
    };
    assert_eq!(engine(database).0, Some(StoreEngine::Postgres(alone.clone())));
    let node = ClusterNode { name: "n1".to_owned(), lease: Duration::from_secs(4) };
    let one_of_several = Postgres { node: Some(node), ..alone };
    let text = format!("{database}\n[cluster]\nnode = \"n1\"");
    assert_eq!(engine(&text).0, Some(StoreEngine::Postgres(one_of_several)));
}

#[test]
fn what_cannot_be_is_refused_with_what_to_write() {
    let postgres = "[store]\nengine = \"postgres\"\n";
    for (text, expected) in [
        ("[cluster]\nnode = \"n1\"".to_owned(), "write [store] with engine"),
        ("[store]\nurl = \"host=h\"".to_owned(), "of the engine postgres"),
        ("[store]\nengine = \"mysql\"".to_owned(), "postgres"),
        ("[store]\nengin = \"postgres\"".to_owned(), "engine"),
        (postgres.to_owned(), "url"),
        (format!("{postgres}url = \"host=h password=secret\""), "does not belong"),
        (format!("{postgres}url = \"postgresql://a:secret@h/mta\""), "does not belong"),
        (format!("{postgres}url = \"postgresql://a@h/mta?password=secret\""), "does not belong"),
        (format!("{postgres}url = \"host=h\"\npassword = \"secret\""), "does not belong"),
        (format!("{postgres}url = \"host=h\"\n[cluster]\nlease = \"4s\""), "node"),
        (format!("{postgres}url = \"host=h\"\n[cluster]\nnode = \"n\"\nlease = \"1h\""), "1 s"),
    ] {
        let (engine, shown) = engine(&text);
        assert!(engine.is_none() && shown.contains(expected), "{text}: {shown}");
    }
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    for url in ["host=h password=hunter2", "postgresql://a:hunter2@h/mta"] {
        let (_, shown) = engine(&format!("[store]\nengine = \"postgres\"\nurl = \"{url}\""));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
