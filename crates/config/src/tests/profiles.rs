//! Profiles of peers: what a peer lacks is taken from there, what it has stays.

use super::*;
use node::config::{Release, X410};
use osi::api::Dialogue;
use p1::extension::{Dialect, Form, Qualifier};

/// The usual file, its peer with these lines.
fn with(lines: &str) -> String {
    GOOD.replace("mta_name = \"MTA-ACT\"", &format!("mta_name = \"MTA-ACT\"\n{lines}"))
}

fn peer(text: &str) -> node::config::Peer {
    let (site, report) = check_in(Path::new("/nowhere"), text);
    assert_eq!(report.render(false), "", "{text}");
    site.unwrap().node.peers.remove(0)
}

#[test]
fn a_profile_gives_what_the_peer_lacks() {
    let old = peer(&with("profile = \"x400-1988\""));
    assert_eq!((old.form.dialect, old.x410), (Dialect::BlueBook1988, None));
    let (slow, fast) = (&old.channels[0], &old.channels[1]);
    assert!(slow.checkpoint_adapts && slow.rts.window == 3);
    assert_eq!(slow.setup_timeout, Duration::from_secs(60));
    // The channel has a table of its own: each key replaces one of the profile's.
    assert_eq!((fast.rts.checkpoint_size, fast.rts.window), (2, 3));
    assert_eq!(fast.rts.dialogue, Dialogue::TwoWayAlternate);
    let old = peer(&with("profile = \"x400-1988\"\nextensions = \"modern\"\nmessage_aborts = 9"));
    assert_eq!((old.form.dialect, old.message_aborts), (Dialect::Modern, 9));
}

#[test]
fn x410_mode_is_a_profile_or_keys() {
    let by_profile = peer(&with("profile = \"x410-1984\""));
    assert_eq!(by_profile.x410, Some(X410 { protocol: 12, swapped: true }));
    assert!(by_profile.octet_credentials);
    let keys = "profile = \"x410-1984\"\napplication_protocol = 1\nextensions = \"1984\"\nbyte_swapped = false";
    assert_eq!(peer(&with(keys)).x410, Some(X410 { protocol: 1, swapped: false }));
    let keys = "mode = \"x410-1984\"\napplication_protocol = 3072";
    assert_eq!(peer(&with(keys)).x410, Some(X410 { protocol: 3072, swapped: false }));
}

/// The first is that of a peer without one.
#[test]
fn all_profiles_are_good_and_modern_is_the_default() {
    let plain = format!("{:?}", peer(&with("")));
    assert_eq!(format!("{:?}", peer(&with("profile = \"modern\""))), plain);
    for name in ["stanag-4406", "x400-1988", "x410-1984"] {
        assert_ne!(format!("{:?}", peer(&with(&format!("profile = {name:?}")))), plain, "{name}");
    }
}

#[test]
fn a_file_of_ones_own_is_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        std::fs::write(dir.path().join("old.toml"), text).unwrap();
        let (site, report) = check_in(dir.path(), &with("profile = \"old.toml\""));
        assert!(site.is_some() || report.render(false).contains("profile = \"old.toml\""));
        let problems: Vec<String> = report.problems.iter().map(|p| p.message.clone()).collect();
        (site.map(|mut site| site.node.peers.remove(0)), problems)
    };
    let (site, problems) = check("extensions = \"1988\"\n[channel]\ncongestion = \"reno\"\n");
    assert_eq!((site.unwrap().form.dialect, problems.len()), (Dialect::BlueBook1988, 0));
    for (text, message) in [
        (
            "# A peer\npassword = \"x\"",
            "profile \"old.toml\": line 2: password belongs to one peer",
        ),
        ("[channel]\nlisten = 1", "line 2: listen belongs to one peer"),
        ("a = 1\nb", "line 2: not TOML"),
        ("extensions = \"1989\"", "extensions of peer \"act\""),
        ("unheard = 1", "peer \"act\" has no key \"unheard\""),
        ("[channel]\nrts = { window = 0 }", "window"),
        ("[channel]\nrts = { dialog = \"monologue\" }", "no key \"dialog\""),
    ] {
        let (site, problems) = check(text);
        assert!(site.is_none(), "{text}");
        assert!(problems.iter().any(|problem| problem.contains(message)), "{text}: {problems:?}");
    }
}

#[test]
fn all_faults_of_a_profile_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = "password = \"x\"\nextensions = \"1989\"\nunheard = 1\n[channel]\nremote = \"a:1\"\nlisten = 1\n";
    std::fs::write(dir.path().join("old.toml"), text).unwrap();
    let (site, report) = check_in(dir.path(), &with("profile = \"old.toml\""));
    assert!(site.is_none());
    let problems: Vec<String> = report.problems.iter().map(|p| p.message.clone()).collect();
    for message in [
        "line 1: password belongs to one peer",
        "line 5: remote belongs to one peer",
        "line 6: listen belongs to one peer",
        "extensions of peer \"act\"",
        "no key \"unheard\"",
    ] {
        let count = problems.iter().filter(|problem| problem.contains(message)).count();
        assert_eq!(count, 1, "{message}: {problems:?}");
    }
}

/// One port, in both directions, for all channels.
#[test]
fn a_peer_with_one_port_is_no_reason_for_a_warning() {
    let one = GOOD.replace("act.example.org:5101", "127.0.0.1:5100");
    let warned = |text: &str| {
        let (site, report) = check_in(Path::new("/nowhere"), text);
        assert!(site.is_some(), "{text}");
        report.render(false)
    };
    assert!(warned(&one).contains("two channels of peer"));
    assert_eq!(warned(&one.replace("listen = \"127.0.0.1:5001\"\n", "")), "");
}

#[test]
fn a_presentation_selector_has_no_effect_in_x410_mode() {
    let check = |lines: &str| {
        let (site, report) = check_in(Path::new("/nowhere"), &with(lines));
        assert!(site.is_some(), "{lines}");
        report.render(false)
    };
    // A call of theirs may be in normal mode, and call own_psel.
    let both = check("mode = \"x410-1984\"\npsel = \"P\"\nown_psel = \"Q\"\nssel = \"S\"");
    assert_eq!(both.matches("psel has no effect in X.410 mode").count(), 1, "{both}");
    assert_eq!(check("psel = \"P\""), "");
    assert!(check("profile = \"x410-1984\"\npsel = \"P\"").contains("psel has no effect"));
}

#[test]
fn what_cannot_be_a_profile_is_named() {
    let (site, report) = check_in(Path::new("/nowhere"), &with("application_protocol = 12"));
    assert!(site.is_some() && report.render(false).contains("has no effect in normal mode"));
    for (line, message) in [
        ("profile = \"x400-1984\"", "profile \"x400-1984\": there is no profile of this name"),
        ("profile = \"./absent.toml\"", "profile \"./absent.toml\": No such file"),
        ("profile = 7", "profile of peer \"act\""),
        ("mode = \"x410-1984\"\napplication_protocol = 13", "an application_protocol of 13"),
        ("mode = \"x410-1984\"\napplication_protocol = 1", "extensions is not \"1984\""),
        ("mode = \"x410-1984\"\nextensions = \"1984\"", "application_protocol 12 is P1 of 1988"),
    ] {
        let (site, report) = check_in(Path::new("/nowhere"), &with(line));
        assert!(site.is_none(), "{line}");
        let shown = report.render(false);
        assert!(shown.contains(message), "{line}: {shown}");
    }
}

#[test]
fn the_form_of_what_a_peer_is_sent_and_how_its_associations_end() {
    let usual = peer(&with(""));
    assert_eq!(usual.form, Form::default());
    assert!(usual.form.has_qualifier() && usual.form.explicit_defaults);
    assert_eq!(usual.release, Release::Release);
    let keys = "qualifier = \"omit\"\nexplicit_defaults = false\nrelease = \"close\"";
    let own = peer(&with(keys));
    let form =
        Form { dialect: Dialect::Modern, qualifier: Qualifier::Omit, explicit_defaults: false };
    assert_eq!((own.form, own.release), (form, Release::Close));
    let omits = |keys: &str| {
        let form = peer(&with(keys)).form;
        (form.dialect, form.qualifier == Qualifier::Omit)
    };
    // The older dialects have no private extensions, whatever is configured.
    assert_eq!(omits("extensions = \"1988\""), (Dialect::BlueBook1988, true));
    assert_eq!(omits("extensions = \"1988\"\nqualifier = \"omit\""), (Dialect::BlueBook1988, true));
    assert_eq!(omits("profile = \"x400-1988\""), (Dialect::BlueBook1988, true));
    let later = "profile = \"x400-1988\"\nextensions = \"modern\"";
    assert_eq!(omits(later), (Dialect::Modern, true));
    assert_eq!(omits(&format!("{later}\nqualifier = \"private\"")), (Dialect::Modern, false));
    // The qualifier of a profile is for the extensions of the profile.
    let earlier = "profile = \"stanag-4406\"\nextensions = \"1988\"";
    assert_eq!(omits(earlier), (Dialect::BlueBook1988, true));
}

#[test]
fn an_older_dialect_has_no_qualifier() {
    for (keys, line, message) in [
        (
            "extensions = \"1988\"\nqualifier = \"private\"",
            "qualifier",
            "qualifier = \"private\" and extensions = \"1988\": that edition has no private extensions",
        ),
        (
            "qualifier = \"private\"\nmode = \"x410-1984\"\napplication_protocol = 1\nextensions = \"1984\"",
            "qualifier",
            "qualifier = \"private\" and extensions = \"1984\"",
        ),
        ("profile = \"x400-1988\"\nqualifier = \"private\"", "qualifier", "extensions = \"1988\""),
        ("qualifier = \"public\"", "qualifier", "qualifier of peer \"act\""),
        ("explicit_defaults = \"yes\"", "explicit_defaults", "explicit_defaults of peer \"act\""),
        ("release = \"abort\"", "release", "release of peer \"act\""),
    ] {
        let text = with(keys);
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        assert!(site.is_none(), "{keys}");
        let shown = report.render(false);
        assert!(shown.contains(message), "{keys}: {shown}");
        let at = 1 + text.lines().position(|l| l.starts_with(line)).unwrap();
        assert!(shown.contains(&format!(":{at}:")), "{keys}: {at}: {shown}");
    }
}
