//! `cargo xtask`: the project's own checks and chores, in Rust so that they run wherever cargo does.
//!
//! A verb is a module with a `pub(crate) struct Args` (clap's; its doc comment is the help text) and
//! `impl Args { pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> }`.
//! Adding one is that file, its `mod` line and its name in `verbs!`.

mod bench;
mod checks;
mod ci;
mod demo;
mod dist;
mod faults;
mod results;
mod studies;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use checks::{conformance, deny, edges, purity, ratio, tidy};
use faults::{cluster, guided, hunt, mutants, soak};
use workspace::Workspace;
pub(crate) use xtask::{Outcome, command, workspace};

/// The subcommands: each name is a module of this crate.
macro_rules! verbs {
    ($($verb:ident,)*) => {
        #[derive(Subcommand)]
        #[allow(non_camel_case_types, reason = "a variant is named as its module and its verb")]
        enum Verb {
            $($verb($verb::Args),)*
        }

        impl Verb {
            fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
                match self {
                    $(Verb::$verb(args) => args.run(workspace),)*
                }
            }
        }
    };
}

verbs! {
    demo,
    dist,
    bench,
    ci,
    test,
    soak,
    hunt,
    cluster,
    mutants,
    guided,
    studies,
    results,
    conformance,
    edges,
    purity,
    ratio,
    tidy,
    deny,
}

/// The project's own checks and chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    Outcome::code(Workspace::find().and_then(|workspace| cli.verb.run(&workspace)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
