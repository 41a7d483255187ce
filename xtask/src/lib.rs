//! What the project's own chores share: its directory, and the commands that are run there.

pub mod command;
pub mod marks;
pub mod workspace;

/// How a verb that could do its work ended. An `Err` beside it means that it could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Passed,
    /// What could be checked is well; the verb has said what could not.
    PassedInPart,
    /// Something is wrong, and the verb has already said what.
    Failed,
}

impl Outcome {
    /// `Passed` where `passed`.
    #[must_use]
    pub fn of(passed: bool) -> Outcome {
        if passed { Outcome::Passed } else { Outcome::Failed }
    }

    /// What a verb that ended so ends the process with; says why where it could not do its work.
    #[must_use]
    pub fn code(outcome: anyhow::Result<Outcome>) -> std::process::ExitCode {
        match outcome {
            Ok(Outcome::Passed | Outcome::PassedInPart) => std::process::ExitCode::SUCCESS,
            Ok(Outcome::Failed) => std::process::ExitCode::FAILURE,
            Err(error) => {
                eprintln!("error: {error:#}");
                std::process::ExitCode::FAILURE
            }
        }
    }
}
