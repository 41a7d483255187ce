//! A policy as commands of tc(8) and nft(8), for kernels that have the disciplines.
//!
//! The disciplines of the kernel differ from those of a policy. An approximation is stated beside
//! its command; parts without a counterpart are listed in [`TcScript::left_out`]. Rates of htb count
//! the link header (14 octets of Ethernet), those of a policy do not.

mod filter;
mod leaf;
mod mark;
mod tree;

use router::Rate;
use router::policy::{Attachment, RouterPolicy};
use std::collections::BTreeSet;
use std::fmt;

/// The queueing disciplines that a kernel has, by their names in tc(8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdiscs(BTreeSet<String>);

impl Qdiscs {
    /// All disciplines that a script can use.
    pub fn all() -> Qdiscs {
        Qdiscs::from_names(["htb", "prio", "pfifo", "bfifo", "red", "gred", "sfq"])
    }

    /// The disciplines with these names.
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Qdiscs {
        Qdiscs(names.into_iter().map(str::to_owned).collect())
    }

    /// Whether the kernel has this discipline.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl fmt::Display for Qdiscs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program, `tc` or `nft`, and its arguments.
    pub words: Vec<String>,
    /// A note on how it approximates the policy.
    pub about: Option<String>,
}

/// The commands of a script in their order, and what they leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcScript {
    /// Commands that remove the result of an earlier script. The kernel refuses those for parts
    /// that do not exist.
    pub undo: Vec<Command>,
    /// The commands to run, in this order.
    pub commands: Vec<Command>,
    /// Parts of the policy without a counterpart.
    pub left_out: Vec<String>,
}

/// Why a script cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoScript {
    /// The policy has no such interface.
    #[error("the policy has no interface {0:?}: it has {1}")]
    Interface(String, String),
    /// An invalid name of a device.
    #[error("invalid device name {0:?}: up to 15 letters, digits, dots, dashes and underscores")]
    Device(String),
    /// The policy exceeds the numbers of the kernel.
    #[error("the policy has too many classes or filters for a script")]
    TooLarge,
}

/// The rate of a line whose device has no rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// The rate of the device in bits a second, `overhead` counted.
    pub rate: Rate,
    /// Octets that the line adds to each packet.
    pub overhead: u16,
}

/// The script for `interface` of the policy at the device `dev`, with the disciplines of the
/// kernel. With a `line`, the script limits the rate; without one, the device does.
///
/// # Errors
/// [`NoScript`].
pub fn script(
    policy: &RouterPolicy,
    interface: &str,
    dev: &str,
    kernel: &Qdiscs,
    line: Option<ScriptLine>,
) -> Result<TcScript, NoScript> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if dev.is_empty() || dev.len() > 15 || !dev.chars().all(is_part) || dev.starts_with('-') {
        return Err(NoScript::Device(dev.to_owned()));
    }
    let attachment = policy.interfaces.get(interface).or_else(|| policy.interfaces.get("*"));
    let Some(attachment) = attachment else {
        let known: Vec<&str> = policy.interfaces.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(NoScript::Interface(interface.to_owned(), known));
    };
    let mut builder =
        ScriptBuilder { policy, dev, kernel, line, script: TcScript::default(), parts: 0 };
    builder.attachment(attachment)?;
    Ok(builder.script)
}

/// Commands of one script, at most.
const MAX_COMMANDS: usize = 10_000;

struct ScriptBuilder<'a> {
    policy: &'a RouterPolicy,
    dev: &'a str,
    kernel: &'a Qdiscs,
    line: Option<ScriptLine>,
    script: TcScript,
    /// The last number given to a class, discipline or chain.
    parts: u16,
}

impl ScriptBuilder<'_> {
    fn attachment(&mut self, attachment: &Attachment) -> Result<(), NoScript> {
        if let Some(name) = &attachment.queueing {
            self.undo(&format!("tc qdisc delete dev {} root", self.dev));
            match self.policy.queueings.get(name) {
                Some(queueing) => self.root(queueing)?,
                None => self.leave_out(format!("the queueing {name} is not in the policy")),
            }
        }
        self.chains("prerouting", "iifname", &attachment.input)?;
        self.chains("postrouting", "oifname", &attachment.output)
    }

    fn undo(&mut self, line: &str) {
        let words = line.split_whitespace().map(str::to_owned).collect();
        let command = Command { words, about: None };
        if !self.script.undo.contains(&command) {
            self.script.undo.push(command);
        }
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        // Names may contain any character; a comment ends at its line break.
        let clean = |c: char| if base::shown::is_obeyed(c) { ' ' } else { c };
        let what: String = what.into().chars().map(clean).collect();
        if !self.script.left_out.contains(&what) {
            self.script.left_out.push(what);
        }
    }

    /// Adds a command, written as words separated by blanks.
    fn run(&mut self, line: &str, about: Option<&str>) -> Result<(), NoScript> {
        self.run_words(line.split_whitespace().map(str::to_owned).collect(), about)
    }

    fn run_words(&mut self, words: Vec<String>, about: Option<&str>) -> Result<(), NoScript> {
        if self.script.commands.len() >= MAX_COMMANDS {
            return Err(NoScript::TooLarge);
        }
        self.script.commands.push(Command { words, about: about.map(str::to_owned) });
        Ok(())
    }

    fn number(&mut self) -> Result<u16, NoScript> {
        self.parts = self.parts.checked_add(1).filter(|n| *n < 0x7000).ok_or(NoScript::TooLarge)?;
        Ok(self.parts)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, word) in self.words.iter().enumerate() {
            let blank = if number == 0 { "" } else { " " };
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/@,=+%".contains(c);
            match !word.is_empty() && word.chars().all(plain) {
                true => write!(f, "{blank}{word}")?,
                false => write!(f, "{blank}'{}'", word.replace('\'', "'\\''"))?,
            }
        }
        Ok(())
    }
}

/// A script for sh(1). It can be run again. It ends at the first command that the kernel refuses,
/// names it, and returns status 1.
impl fmt::Display for TcScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "#!/bin/sh")?;
        if !self.left_out.is_empty() {
            writeln!(f, "# Not here, or otherwise than in the policy:")?;
        }
        for what in &self.left_out {
            writeln!(f, "#  - {what}")?;
        }
        writeln!(f, "run() {{ \"$@\" || {{ echo \"refused: $*\" >&2; exit 1; }}; }}")?;
        if !self.undo.is_empty() {
            writeln!(f, "# What an earlier run has left:")?;
        }
        for command in &self.undo {
            writeln!(f, "{command} 2> /dev/null || true")?;
        }
        for command in &self.commands {
            if let Some(about) = &command.about {
                writeln!(f, "# nearly: {about}")?;
            }
            writeln!(f, "run {command}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
