//! `lab doctor`: what this machine can do, and what to install or allow.

use anyhow::{Context as _, Result};
use comfy_table::{ContentArrangement, presets};
use emulator::DataPathKind;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use testbed::probe::{Finding, MachineProbe};
use text::TextTable;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

/// All that was found.
#[derive(Serialize)]
struct DoctorReport {
    uid: u32,
    kernel: String,
    as_root: MachineProbe,
    in_user_namespace: MachineProbe,
    tools: Vec<Tool>,
    rights: Option<&'static str>,
    path: Option<DataPathKind>,
    advice: Vec<String>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    file: Option<PathBuf>,
    for_what: &'static str,
    #[serde(skip)]
    package: &'static str,
}

/// Name, Debian's package, what for.
const TOOLS: [(&str, &str, &str); 6] = [
    ("ip", "iproute2", "interfaces, addresses and routes"),
    ("tc", "iproute2", "the data path tc"),
    ("nsenter", "util-linux", "sites in namespaces (demo, tests)"),
    ("unshare", "util-linux", "sites in namespaces (demo, tests)"),
    ("ping", "iputils-ping", "`lab exec HOST ping`, and tests"),
    ("tshark", "tshark", "reading captures, and tests"),
];

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let report = DoctorReport::make()?;
        if self.json {
            super::print_json(&report)?;
        } else {
            report.print();
        }
        Ok(if report.path.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Asks another process: what a process may do changes with its moving into a user namespace.
fn probe(arguments: &[&str]) -> Result<MachineProbe> {
    let own = std::env::current_exe().context("where this program is")?;
    let mut command = Command::new(own);
    let output = command.arg("probe").args(arguments).stdin(Stdio::null()).output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("lab probe: {}", String::from_utf8_lossy(&output.stderr)))
}

impl DoctorReport {
    fn make() -> Result<DoctorReport> {
        let (as_root, in_user_namespace) = (probe(&[])?, probe(&["--user"])?);
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let tools = TOOLS.map(|(name, package, for_what)| Tool {
            name,
            file: find(name),
            for_what,
            package,
        });
        let taken = [("root", &as_root), ("user namespace", &in_user_namespace)];
        let taken = taken.into_iter().find(|(_, probe)| probe.namespaces.works);
        let path = taken.and_then(|(_, probe)| DataPathKind::choose(None, probe).ok());
        let mut report = DoctorReport {
            uid: nix::unistd::geteuid().as_raw(),
            kernel: kernel.trim().to_owned(),
            rights: taken.map(|(name, _)| name),
            path,
            as_root,
            in_user_namespace,
            tools: tools.into(),
            advice: Vec::new(),
        };
        report.advice = report.advise();
        Ok(report)
    }

    fn advise(&self) -> Vec<String> {
        let mut advice = Vec::new();
        let user = &self.in_user_namespace;
        let probe = if self.as_root.namespaces.works { &self.as_root } else { user };
        if !probe.namespaces.works {
            advice.push(
                "no network namespaces: run as root, or let users make user namespaces \
                 (sysctl user.max_user_namespaces above 0; kernel.unprivileged_userns_clone = 1 on \
                 Debian, kernel.apparmor_restrict_unprivileged_userns = 0 on Ubuntu; in a \
                 container, allow unshare(2) in its seccomp profile)"
                    .to_owned(),
            );
            return advice;
        }
        if !probe.tun.works {
            advice.push(format!(
                "no TUN device ({}), so packet sockets are used: `modprobe tun`, and read and \
                 write for this user on /dev/net/tun (`--device /dev/net/tun` for a container)",
                probe.tun.why.as_deref().unwrap_or("it does not work"),
            ));
        }
        if !probe.veth.works {
            advice.push("no veth pairs: `modprobe veth`, or CONFIG_VETH in the kernel".to_owned());
        }
        let lacks = |name: &str| probe.qdiscs.get(name).is_some_and(|finding| !finding.works);
        let missing: Vec<&str> = ["htb", "gred"].into_iter().filter(|name| lacks(name)).collect();
        if !missing.is_empty() {
            advice.push(format!(
                "the data path tc lacks {}: `modprobe {}` (our own routers need none of it)",
                missing.join(" and "),
                missing.iter().map(|name| format!("sch_{name}")).collect::<Vec<_>>().join(" "),
            ));
        }
        let missing = self.tools.iter().filter(|tool| tool.file.is_none());
        advice.extend(missing.map(|tool| {
            format!(
                "no program {}: `apt install {}`; for {}",
                tool.name, tool.package, tool.for_what
            )
        }));
        advice
    }

    fn print(&self) {
        let mut table = TextTable::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["", "as root", "in a user namespace"]);
        let (root, user) = (&self.as_root, &self.in_user_namespace);
        let mut row = |name: &str, root: &Finding, user: &Finding| {
            table.add_row([name.to_owned(), shown(root), shown(user)]);
        };
        row("network namespaces", &root.namespaces, &user.namespaces);
        row("TUN device", &root.tun, &user.tun);
        row("veth pair", &root.veth, &user.veth);
        row("packet socket", &root.packet_socket, &user.packet_socket);
        for (name, finding) in &root.qdiscs {
            row(&format!("qdisc {name}"), finding, user.qdiscs.get(name).unwrap_or(finding));
        }
        table.add_row([
            "congestion".to_owned(),
            root.congestion.join(" "),
            user.congestion.join(" "),
        ]);
        println!("Linux {}, user {}\n\n{table}\n", self.kernel, self.uid);
        for tool in &self.tools {
            let file = tool.file.as_deref().map_or("-".into(), Path::to_string_lossy);
            println!("{:8} {file}", tool.name);
        }
        println!();
        match (self.path, self.rights) {
            (Some(path), Some(rights)) => {
                println!("`lab up` takes the data path {path}, as {rights}.");
            }
            _ => println!("`lab up` cannot work here."),
        }
        for line in &self.advice {
            println!("* {line}");
        }
    }
}

fn shown(finding: &Finding) -> String {
    match &finding.why {
        None => "yes".to_owned(),
        Some(why) => format!("no: {why}"),
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let all = format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin");
    all.split(':').map(|directory| Path::new(directory).join(program)).find(|file| file.is_file())
}
