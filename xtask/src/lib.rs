//! Shared parts of the project's own checks: its directory, and the commands that run there.

pub mod command;
pub mod marks;
pub mod workspace;

/// The outcome of a verb that could do its work. An `Err` means that it could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Passed,
    /// All that could be checked is well; the verb has reported what could not.
    PassedInPart,
    /// Something is wrong, and the verb has already reported it.
    Failed,
}

impl Outcome {
    /// `Passed` where `passed`.
    #[must_use]
    pub fn from_passed(passed: bool) -> Outcome {
        if passed { Outcome::Passed } else { Outcome::Failed }
    }

    /// The exit code of the process for a verb's outcome; prints the error if there is one.
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
