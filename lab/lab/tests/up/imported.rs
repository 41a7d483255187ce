//! The paper's configuration, imported and put on the router that it is of.

use crate::support::{As, Up, directory, skip, skipped, text};
use serde_json::Value;
use std::path::Path;

/// The row of a code point at a part of a router.
fn row<'s>(parts: &'s [Value], part: &str, code: &str) -> &'s Value {
    let found = parts.iter().find(|of| of["part"] == part);
    let rows = found.and_then(|of| of["rows"].as_array()).into_iter().flatten();
    let mut of_code = rows.filter(|row| row["dscp_name"] == code);
    of_code.next().unwrap_or_else(|| panic!("no {code} at {part}: {parts:#?}"))
}

#[test]
fn an_imported_configuration_marks_and_queues_on_the_nato_network() {
    let test = "an_imported_configuration_marks_and_queues_on_the_nato_network";
    if skipped(test, As::Own) {
        return;
    }
    if std::process::Command::new("ping").arg("-V").output().is_err() {
        return skip(test, "no ping (iputils-ping)");
    }
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab");
    let files = directory(&[]);
    let policy = files.path().join("imported.toml");
    let imported = As::Own
        .command()
        .arg("import-ios")
        .arg(config.join("ios/isode-nato-2007.ios"))
        .arg("-o")
        .arg(&policy)
        .args(["--interface", "Ethernet0/0=lan", "--interface", "ethernet 0/1=wan"])
        .output()
        .unwrap();
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported));
    let given = format!("nato-three-queues={}", policy.display());
    let topology = config.join("topologies/nato.toml");
    let mut up = Up::of_file(As::Own, &topology, &["--policy", &given], files);
    up.is_up();
    let held = up.namespaces();

    // CS1 and CS2 as the programs mark them, and CS0 of a host whose load the router marks CS1.
    let act = "10.10.65.10";
    up.assert_ping("naples", act, &["-Q", "32"]);
    up.assert_ping("naples", act, &["-Q", "64", "-c", "3"]);
    let added = up.exec("naples", &["ip", "address", "add", "10.10.64.31/24", "dev", "lan"]);
    assert!(added.status.success(), "{}", text(&added));
    up.assert_ping("naples", act, &["-I", "10.10.64.31"]);

    let status = up.run(&["status", &up.name, "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let nodes = status["nodes"].as_array().unwrap();
    let router = nodes.iter().find(|node| node["name"] == "naples-sar").unwrap();
    let parts = router["parts"].as_array().unwrap();
    let marked = row(parts, "lan/input/0/cs1-blast/0", "CS1");
    assert_eq!(marked["marked"], 2, "{marked}");
    for (class, packets) in [("CS1", 4), ("CS2", 3)] {
        let queue = row(parts, &format!("wan/queueing/shaped/{class}"), class);
        assert_eq!(queue["went"]["packets"], packets, "{queue}");
    }

    let down = up.run(&["down", &up.name]);
    assert!(down.status.success(), "{}", text(&down));
    assert!(up.wait().success());
    up.assert_nothing_left(&held);
}
