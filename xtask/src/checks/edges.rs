//! `cargo xtask edges`: which crate may never depend on which, however indirectly.
//!
//! A crate is resolved as it stands alone (`cargo tree -p`), with its default features and without
//! development dependencies: what other members turn on must not excuse it. What runs in the compiler
//! (procedural macros) does not count.

use anyhow::{Context as _, bail};
use comfy_table::{ContentArrangement, Table, presets};

use crate::Outcome;
use crate::workspace::{Member, PURE, Workspace};

/// Crates that must not be reached from others.
struct Rule {
    /// The crates that must not depend: names, or folders that end in `/`.
    from: &'static [&'static str],
    /// The packages that they must not depend on.
    to: Forbidden,
    /// The reason for the rule.
    reason: &'static str,
}

enum Forbidden {
    /// These packages.
    Packages(&'static [&'static str]),
    /// The members of the workspace in these folders.
    Folders(&'static [&'static str]),
    /// Every member of the workspace.
    Members,
}

const RULES: &[Rule] = &[
    Rule {
        from: PURE,
        to: Forbidden::Packages(&[
            "tokio",
            "mio",
            "socket2",
            "nix",
            "libc",
            "anyhow",
            "redb",
            "tracing-subscriber",
            "rand",
            "getrandom",
        ]),
        reason: "the pure tier has no runtime, system calls, files or randomness; its errors are typed",
    },
    Rule {
        from: &["crates/"],
        to: Forbidden::Folders(&["lab/", "testkit/", "bench/", "tests/", "fuzz/", "cluster/"]),
        reason: "the MTA and its client are a product of their own, and know nothing of the lab",
    },
    Rule {
        from: &["lab/"],
        to: Forbidden::Folders(&["testkit/", "bench/", "tests/", "fuzz/", "cluster/"]),
        reason: "what measures and tests stands on what it measures",
    },
    Rule {
        from: &["xtask"],
        to: Forbidden::Members,
        reason: "every chore waits until it is compiled, the demonstration and CI too",
    },
    Rule {
        from: &["base"],
        to: Forbidden::Members,
        reason: "all share base, so it stands on none of them",
    },
    Rule {
        from: &["osi", "explain"],
        to: Forbidden::Packages(&["p1"]),
        reason: "the stack carries opaque octets and never names an MTA",
    },
    Rule {
        from: &["p1"],
        to: Forbidden::Packages(&["p772", "scheduler"]),
        reason: "an envelope does not know what its content is, nor when it is sent",
    },
    Rule {
        from: &["p7"],
        to: Forbidden::Packages(&["osi", "p772", "scheduler", "engine", "node"]),
        reason: "what a message store reads and writes, for a store and for its clients",
    },
    Rule {
        from: &["scheduler"],
        to: Forbidden::Packages(&["osi", "p1", "store"]),
        reason: "it knows identifiers, peers, precedences and sizes, never PDUs",
    },
    Rule {
        from: &["engine"],
        to: Forbidden::Packages(&["osi", "store", "mta"]),
        reason: "durability is a conversation: the engine asks, it does not write",
    },
    Rule {
        from: &["mailbox"],
        to: Forbidden::Packages(&["osi", "store", "node", "mta"]),
        reason: "a mailbox asks for what it reads, and does not know who its user's association is",
    },
    Rule {
        from: &["tracking"],
        to: Forbidden::Packages(&["osi", "p1", "engine", "node", "store", "mta", "tokio"]),
        reason: "it keeps and reads plain events, in its own thread and without the daemon",
    },
    Rule {
        from: &["settings"],
        to: Forbidden::Packages(&["store", "node", "mta"]),
        reason: "a configuration is data: who acts on it is above it",
    },
    Rule {
        from: &["node-api", "ownership", "association", "node"],
        to: Forbidden::Packages(&["store", "mta"]),
        reason: "the daemon drives the node; crash tests drive the same node on another disk",
    },
    Rule {
        from: &["router", "network"],
        to: Forbidden::Packages(&["osi", "p1", "scheduler", "engine", "node", "testbed", "mta"]),
        reason: "a router that knows nothing of messages; who drives a network is above it",
    },
    Rule {
        from: &["analyse"],
        to: Forbidden::Packages(&["scheduler", "engine", "node", "network", "testbed", "mta"]),
        reason: "anyone's packets, seen from outside: it decodes, and takes no part",
    },
    Rule {
        from: &["plot"],
        to: Forbidden::Members,
        reason: "who measures draws with it; what is drawn is numbers",
    },
    Rule {
        from: &["router"],
        to: Forbidden::Packages(&["network"]),
        reason: "a router knows its own interfaces, not what they lead to",
    },
    Rule {
        from: &["sim"],
        to: Forbidden::Packages(&["store", "config", "mta", "ua", "testbed"]),
        reason: "the simulation depends on machines only; the programs that run it are above it",
    },
    Rule {
        from: &["node", "router", "network"],
        to: Forbidden::Packages(&["sim", "virtual-tcp", "smoltcp"]),
        reason: "a machine does not know whether its time is real",
    },
    Rule {
        from: &["virtual-tcp"],
        to: Forbidden::Packages(&["network", "osi", "p1", "engine", "node", "sim"]),
        reason: "TCP carries octets: tests of the node run over it without the simulation",
    },
    Rule {
        from: &["toml-path"],
        to: Forbidden::Members,
        reason: "studies in the pure tier and sites of the testbed share it",
    },
    Rule {
        from: &["testbed"],
        to: Forbidden::Packages(&["router", "network", "study", "sim", "report", "plot", "node"]),
        reason: "sites and namespaces alone: the demonstration is built from it in a minute",
    },
    Rule {
        from: &["emulator", "traffic", "translation"],
        to: Forbidden::Packages(&["study", "sim", "report", "plot", "node", "mta"]),
        reason: "networks, load and policies know nothing of studies and messages",
    },
    Rule {
        from: &["config"],
        to: Forbidden::Packages(&["tokio", "mio", "socket2", "nix", "store", "mta"]),
        reason: "a file is read without a runtime, and the same by a fuzzer",
    },
    Rule {
        from: &["plot", "report"],
        to: Forbidden::Packages(&[
            "tokio", "mio", "socket2", "nix", "libc", "osi", "node", "store", "testbed", "mta",
        ]),
        reason: "pages and pictures are made of data alone, wherever it comes from",
    },
    Rule {
        from: &["xuxa-tui"],
        to: Forbidden::Packages(&["osi", "p1", "p7", "p772", "ua", "engine", "node"]),
        reason: "screens and keys know a backend, and no protocol",
    },
    Rule {
        from: &["ua", "xuxa-cli", "load"],
        to: Forbidden::Packages(&["engine", "node"]),
        reason: "clients speak P3 to any MTA, and so cannot lean on ours",
    },
];

/// Prints the table of forbidden edges and checks every one.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let members = workspace.members()?;
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
        table.set_header(["from", "must not reach", "because"]);
        let mut violations = Vec::new();
        for rule in RULES {
            let forbidden = forbidden(rule, &members);
            let from = members_of(rule.from, &members)?;
            table.add_row([
                rule.from.join(" "),
                match rule.to {
                    Forbidden::Packages(packages) => packages.join(" "),
                    Forbidden::Folders(folders) => folders.join(" "),
                    Forbidden::Members => "any of ours".to_owned(),
                },
                rule.reason.to_owned(),
            ]);
            for from in from {
                violations.extend(chains(&tree(workspace, from, "normal")?, &forbidden)?);
            }
        }
        println!("{table}");
        for chain in &violations {
            println!("forbidden: {}", chain.join(" -> "));
        }
        Ok(Outcome::from_passed(violations.is_empty()))
    }
}

/// What a package depends on, with edges of this kind: `normal`, or `normal,dev` for those of its tests too.
/// Procedural macros run in the compiler, so they and what they need are not in the tree.
fn tree(workspace: &Workspace, package: &str, edges: &str) -> anyhow::Result<String> {
    let edges = format!("{edges},no-proc-macro");
    workspace.cargo(&["tree", "-p", package, "-e", &edges, "--prefix", "depth"]).output()
}

/// Names of the packages that a rule forbids.
fn forbidden<'a>(rule: &Rule, members: &'a [Member]) -> Vec<&'a str> {
    let names = |folder: &str| {
        let inside = move |member: &&'a Member| lies_in(member, folder);
        members.iter().filter(inside).map(|member| member.name.as_str()).collect::<Vec<_>>()
    };
    match rule.to {
        Forbidden::Packages(packages) => packages.to_vec(),
        Forbidden::Folders(folders) => folders.iter().flat_map(|folder| names(folder)).collect(),
        Forbidden::Members => names(""),
    }
}

/// Whether the member's folder is `folder`, which ends in `/`, or lies in it.
fn lies_in(member: &Member, folder: &str) -> bool {
    format!("{}/", member.folder).starts_with(folder)
}

/// The members that a rule's names and folders stand for.
fn members_of<'a>(from: &[&str], members: &'a [Member]) -> anyhow::Result<Vec<&'a str>> {
    let mut found = Vec::new();
    for name in from {
        let before = found.len();
        let meant = |member: &&Member| match name.ends_with('/') {
            true => lies_in(member, name),
            false => member.name == *name,
        };
        found.extend(members.iter().filter(meant).map(|member| member.name.as_str()));
        if found.len() == before {
            bail!("a rule names {name}, and no member of the workspace is that");
        }
    }
    Ok(found)
}

/// The path from a tree's root to each of the forbidden packages in it, the root itself excepted.
///
/// The tree is `cargo tree --prefix depth`'s: `2libc v0.2.1 (*)`. A repeated subtree is elided
/// there, which hides nothing: it stood whole where it came first.
fn chains(tree: &str, forbidden: &[&str]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut chain: Vec<String> = Vec::new();
    let mut found: Vec<Vec<String>> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let name_at = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let (depth, rest) = line.split_at(name_at);
        let depth: usize = depth.parse().with_context(|| format!("no depth in {line:?}"))?;
        let name =
            rest.split_whitespace().next().with_context(|| format!("no name in {line:?}"))?;
        chain.truncate(depth);
        chain.push(name.to_owned());
        let known = found.iter().any(|chain| chain.last().is_some_and(|last| last == name));
        if depth > 0 && forbidden.contains(&name) && !known {
            found.push(chain.clone());
        }
    }
    if chain.is_empty() {
        bail!("cargo tree printed nothing");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0node v0.1.0 (/home/x/crates/node)
1base v0.1.0 (/home/x/crates/base)
2bytes v1.10.0
1engine v0.1.0 (/home/x/crates/engine)
2postcard v1.1.0
3tempfile v3.0.0
4libc v0.2.170
1socket2 v0.6.0
2libc v0.2.170
1engine v0.1.0 (/home/x/crates/engine) (*)
";

    #[test]
    fn a_violation_is_found_at_any_depth_and_shown_with_its_path() {
        let found = chains(TREE, &["libc", "tokio"]).unwrap();
        assert_eq!(found, [["node", "engine", "postcard", "tempfile", "libc"]]);
        assert_eq!(chains(TREE, &["socket2"]).unwrap(), [["node", "socket2"]]);
    }

    #[test]
    fn a_name_is_matched_whole_and_the_root_may_be_itself() {
        assert!(chains(TREE, &["lib", "socket", "node", "tokio"]).unwrap().is_empty());
    }

    #[test]
    fn tests_may_stand_on_the_testkit_and_what_is_delivered_may_not() {
        let workspace = Workspace::find().unwrap();
        let members = workspace.members().unwrap();
        let of_crates = |rule: &&Rule| rule.from == ["crates/"];
        let forbidden = forbidden(RULES.iter().find(of_crates).unwrap(), &members);
        assert!(forbidden.contains(&"testkit"), "{forbidden:?}");
        let of_tests = tree(&workspace, "node", "normal,dev").unwrap();
        assert!(
            chains(&of_tests, &forbidden).unwrap().contains(&vec!["node".into(), "testkit".into()])
        );
        let normal = tree(&workspace, "node", "normal").unwrap();
        assert!(chains(&normal, &forbidden).unwrap().is_empty());
    }

    #[test]
    fn a_tree_that_cannot_be_read_is_an_error() {
        assert!(chains("", &["libc"]).is_err());
        assert!(chains("node v0.1.0\n", &["libc"]).is_err());
    }

    #[test]
    fn base_reaches_no_member() {
        let members = members();
        let is_base = |r: &&Rule| r.from == ["base"] && matches!(r.to, Forbidden::Members);
        let rule = RULES.iter().find(is_base).unwrap();
        let tree = "0base v0.1.0 (/x)\n1osi v0.1.0 (/x)\n";
        assert_eq!(chains(tree, &forbidden(rule, &members)).unwrap(), [["base", "osi"]]);
    }

    fn members() -> Vec<Member> {
        let member = |name: &str, folder: &str| Member { name: name.into(), folder: folder.into() };
        vec![
            member("base", "crates/base"),
            member("osi", "crates/osi"),
            member("lab", "lab/lab"),
            member("labour", "labour"),
            member("bench", "bench"),
        ]
    }

    #[test]
    fn a_folder_stands_for_the_members_in_it() {
        let members = members();
        assert_eq!(members_of(&["crates/", "bench/"], &members).unwrap(), ["base", "osi", "bench"]);
        let rule = Rule { from: &[], to: Forbidden::Folders(&["lab/"]), reason: "" };
        assert_eq!(forbidden(&rule, &members), ["lab"]);
        assert!(members_of(&["xtask"], &members).is_err());
    }
}
