//! The daemon `mta`.

/// Messages are made of many small pieces, made on one thread and freed on another: glibc's
/// allocator took a fifth of a small message's processor time (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    mta::command::main()
}
