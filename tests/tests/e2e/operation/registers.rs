//! What a user registers holds over restarts of the daemon.

use testbed::Site;

#[test]
fn a_redirection_and_a_limit_hold_after_a_kill() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let (ops, log) = (site.address("OPS"), site.address("LOG"));
    let register = |site: &Site, user: &str, arguments: &[&str]| {
        let run = site.xuxa(user, &[&["register"][..], arguments].concat()).unwrap();
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    };
    register(&site, "OPS", &["--redirect-to", &log]);
    site.kill().unwrap();
    site.start().unwrap();
    site.send("LOG", &["--to", &ops, "--size", "1kB"]).unwrap();
    assert_eq!(site.receive("LOG", 1).unwrap().messages().count(), 1, "redirected");
    assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0);

    register(&site, "OPS", &["--clear"]);
    register(&site, "OPS", &["--max-length", "5kB"]);
    site.kill().unwrap();
    site.start().unwrap();
    site.send("LOG", &["--to", &ops, "--size", "20kB"]).unwrap();
    assert_eq!(site.receive("LOG", 1).unwrap().reports().count(), 1, "content-too-long");
    site.send("LOG", &["--to", &ops, "--size", "1kB"]).unwrap();
    assert_eq!(site.receive("OPS", 1).unwrap().messages().count(), 1);
}
