//! Nothing is left behind, whenever and however a network ends.

use crate::support::{As, PAIR, PATIENCE, Up, ignores_interrupt, links, skipped, text, unique};
use nix::sys::signal::Signal;
use std::process::Stdio;
use std::time::Duration;
use testbed::clock::{self, Deadline};

/// Programs in a host that do all they can to stay: in the background, and with another session.
const STAYING: &str = "setsid sleep 3000 & (setsid sleep 3001 &) ; echo inside; exec sleep 3002";

/// A program that stays in host `a`; back once it runs.
fn stay(up: &Up) -> std::process::Child {
    let mut command = up.command(&["exec", "--lab", &up.name, "a", "sh", "-c", STAYING]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    assert_eq!(line, "inside\n");
    child
}

fn ends_without_a_trace(who: As) {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let before = links();
        let mut up = Up::new(who, PAIR, &[]);
        let mut staying = stay(&up);
        let namespaces = up.namespaces();
        if who != As::Nobody {
            let held = &namespaces.namespaces;
            assert!(held.len() >= 2, "one for each host: {held:?}");
        }
        up.signal(signal);
        let status = up.wait();
        assert_eq!(status.success(), signal != Signal::SIGKILL, "{signal}: {status}");
        let ended = Deadline::after(PATIENCE).wait_for("lab exec", || Ok(staying.try_wait()?));
        assert_eq!(ended.unwrap().code(), Some(1), "{signal}");
        up.assert_nothing_left(&namespaces);
        assert_eq!(links(), before, "{signal}");
    }
}

#[test]
fn a_signal_ends_it_without_a_trace() {
    if !skipped("a_signal_ends_it_without_a_trace", As::Own) {
        ends_without_a_trace(As::Own);
    }
}

#[test]
fn a_signal_ends_that_of_a_user_without_rights_too() {
    if !skipped("a_signal_ends_that_of_a_user_without_rights_too", As::Nobody) {
        ends_without_a_trace(As::Nobody);
    }
}

#[test]
fn a_signal_at_any_moment_of_its_start_leaves_nothing() {
    if skipped("a_signal_at_any_moment_of_its_start_leaves_nothing", As::Own) {
        return;
    }
    let before = links();
    // An ignored signal has no effect before `lab up` blocks it.
    let interrupt = if ignores_interrupt() { Signal::SIGTERM } else { Signal::SIGINT };
    const MOMENTS: [u64; 10] = [0, 3, 10, 20, 35, 50, 75, 100, 150, 220];
    for (number, moment) in MOMENTS.into_iter().enumerate() {
        let signals = [Signal::SIGKILL, interrupt, Signal::SIGKILL, Signal::SIGTERM];
        for who in [As::Own, As::WithoutTun] {
            if who.lacks().is_some() {
                continue;
            }
            let mut up = Up::start(who, PAIR, &["--for", "60s"]);
            clock::pause(Duration::from_millis(moment));
            let mut held = up.namespaces();
            if number + 1 == MOMENTS.len() {
                // However slow the machine is, once there is something that could be left.
                let there = Deadline::after(PATIENCE).wait_for("a namespace", || {
                    held = up.namespaces();
                    Ok((!held.namespaces.is_empty()).then_some(()))
                });
                there.unwrap();
            }
            up.signal(signals[number % signals.len()]);
            up.wait();
            up.assert_nothing_left(&held);
        }
    }
    assert_eq!(links(), before);
}

#[test]
fn a_start_with_sigint_ignored_loses_no_signal_once_its_name_is_bound() {
    let test = "a_start_with_sigint_ignored_loses_no_signal_once_its_name_is_bound";
    if skipped(test, As::IgnoringInterrupt) {
        return;
    }
    for _ in 0..3 {
        let mut up = Up::start(As::IgnoringInterrupt, PAIR, &["--for", "5min"]);
        let socket = format!("/{}", up.name);
        // Polled without a pause: soon after it is bound, the handler is installed.
        let deadline = Deadline::after(PATIENCE);
        while !std::fs::read_to_string("/proc/net/unix").unwrap().contains(&socket) {
            assert!(!deadline.has_passed(), "no socket");
        }
        up.signal(Signal::SIGINT);
        let held = up.namespaces();
        up.wait();
        up.assert_nothing_left(&held);
    }
}

#[test]
fn a_killed_lab_exec_takes_its_programs_along() {
    if skipped("a_killed_lab_exec_takes_its_programs_along", As::Own) {
        return;
    }
    let mut up = Up::new(As::Own, PAIR, &[]);
    let mut staying = stay(&up);
    let namespaces = up.namespaces();
    staying.kill().unwrap();
    staying.wait().unwrap();
    // With the last of them the network can end, and nothing keeps its namespaces.
    assert!(up.run(&["down", &up.name]).status.success());
    up.wait();
    up.assert_nothing_left(&namespaces);
}

#[test]
fn it_ends_by_itself_and_by_lab_down() {
    if skipped("it_ends_by_itself_and_by_lab_down", As::Own) {
        return;
    }
    let mut up = Up::new(As::Own, PAIR, &["--for", "2s"]);
    let held = up.namespaces();
    assert!(up.wait().success());
    up.assert_nothing_left(&held);

    let mut up = Up::new(As::Own, PAIR, &[]);
    let held = up.namespaces();
    assert!(held.namespaces.len() >= 2, "one for each host: {:?}", held.namespaces);
    let listed = up.run(&["list"]);
    assert!(text(&listed).contains(&up.name), "{}", text(&listed));
    assert!(up.run(&["down", &up.name]).status.success());
    assert!(up.wait().success());
    let gone = up.run(&["status", &up.name]);
    assert_eq!(gone.status.code(), Some(2), "{}", text(&gone));
    up.assert_nothing_left(&held);
}

#[test]
fn several_may_end_it_at_once() {
    if skipped("several_may_end_it_at_once", As::Own) {
        return;
    }
    let mut up = Up::new(As::Own, PAIR, &[]);
    let held = up.namespaces();
    // While it is stopped it answers nobody: all have found it before it ends.
    up.signal(Signal::SIGSTOP);
    let down = |_| {
        let mut command = up.command(&["down", &up.name]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (0..3).map(down).collect();
    let socket = format!("/{}", up.name);
    let waiting = Deadline::after(PATIENCE).wait_for("three connections", || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        // The listening one, and an end of each connection.
        Ok((sockets.matches(&socket).count() >= 4).then_some(()))
    });
    up.signal(Signal::SIGCONT);
    waiting.unwrap();
    for one in all {
        let output = one.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
    assert!(up.wait().success());
    up.assert_nothing_left(&held);
}

#[test]
fn one_that_is_ended_while_it_starts_ends_in_order() {
    if skipped("one_that_is_ended_while_it_starts_ends_in_order", As::Own) {
        return;
    }
    for _ in 0..5 {
        let mut up = Up::start(As::Own, PAIR, &["--json"]);
        let socket = format!("/{}", up.name);
        let deadline = Deadline::after(PATIENCE);
        while !std::fs::read_to_string("/proc/net/unix").unwrap().contains(&socket) {
            assert!(!deadline.has_passed(), "no socket");
        }
        // Its question waits in the socket, and is the first that is answered.
        let output = up.run(&["down", &up.name]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(up.wait().success());
    }
}

#[test]
fn two_are_up_at_once_and_a_name_is_taken_once() {
    if skipped("two_are_up_at_once_and_a_name_is_taken_once", As::Own) {
        return;
    }
    let (one, other) = (Up::new(As::Own, PAIR, &[]), Up::new(As::Own, PAIR, &[]));
    for up in [&one, &other] {
        up.assert_ping("a", "10.0.2.2", &[]);
    }
    let passed = |up: &Up| {
        let status = up.run(&["status", &up.name, "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        status["carried"]["to_hosts"]["packets"].as_u64().unwrap()
    };
    assert!(passed(&one) >= 4 && passed(&other) >= 4);

    let second = Up::start(As::Own, PAIR, &[]);
    second.is_up();
    let directory =
        crate::support::directory(&[("p.toml", PAIR), ("mark.toml", crate::support::MARKING)]);
    let file = directory.path().join("p.toml");
    let file = file.to_str().unwrap();
    let refused = one.run(&["up", file, "--name", &one.name]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("is up already"), "{}", text(&refused));
    one.assert_ping("a", "10.0.2.2", &[]);
}

#[test]
fn an_unknown_name_is_reported() {
    if skipped("an_unknown_name_is_reported", As::Own) {
        return;
    }
    let up = Up::new(As::Own, PAIR, &[]);
    let name = up.name.as_str();
    let other = unique();
    for (arguments, expected) in [
        (vec!["exec", "--lab", name, "c", "true"], "no host c: there are a, b"),
        (vec!["capture", "--lab", name, "c.eth0"], "a.eth0, b.eth0, r.left, r.right"),
        (vec!["router", "--lab", name, "s", "flow", "list"], "no router s"),
        (vec!["router", "--lab", name, "r", "flow", "list", "t"], "no table \"t\""),
        (vec!["router", "--lab", name, "r", "flow", "delete", "flows", "x"], "no flow \"x\""),
        (vec!["router", "--lab", name, "r", "flow", "add", "t", "x"], "no table \"t\""),
        (
            vec!["router", "--lab", name, "r", "flow", "add", "flows", "x", "--before", "y"],
            "no flow \"y\" to stand before",
        ),
        (
            vec!["router", "--lab", name, "r", "flow", "replace", "flows", "x"],
            "no flow of this name to replace: add it",
        ),
        (vec!["down", &other], "no network"),
    ] {
        let refused = up.run(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused));
        assert!(text(&refused).contains(expected), "{arguments:?}: {}", text(&refused));
    }
    assert_eq!(up.exec("a", &["no-such-program"]).status.code(), Some(127));
    assert_eq!(up.exec("b", &["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(up.exec("b", &["sh", "-c", "kill -TERM $$"]).status.code(), Some(143));
}
