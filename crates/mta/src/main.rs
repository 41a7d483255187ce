//! The daemon `mta`.

fn main() -> std::process::ExitCode {
    mta::command::main()
}
