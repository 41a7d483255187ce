//! Topologies that are part of the program need no file.

use crate::support::{As, skipped, text};

#[test]
fn a_shipped_topology_is_known_by_its_name_and_another_name_is_refused_with_the_list() {
    let lab = |arguments: &[&str]| As::Own.command().arg("up").args(arguments).output().unwrap();
    // Beside no file of that name.
    let unknown = lab(&["naot", "--for", "1s", "--quiet"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown).contains("bern, degeb, nato, pair"), "{}", text(&unknown));
    if skipped("a_shipped_topology_is_known_by_its_name", As::Own) {
        return;
    }
    let network = format!("shipped-{}", std::process::id());
    let up = lab(&["nato", "--name", &network, "--for", "1s", "--quiet", "--json"]);
    assert_eq!(up.status.code(), Some(0), "{}", text(&up));
    assert!(text(&up).contains("naples-sar"), "{}", text(&up));
}
