//! The daemon `mta`.

/// Messages are made of many small pieces, made on one thread and freed on another: glibc's
/// allocator took a fifth of a small message's processor time (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // The kernel clears a huge page at once, 2 MiB for the thread that serves everybody. Where it has
    // no such switch it has no huge pages either.
    let _ = nix::sys::prctl::set_thp_disable(true);
    mta::command::main()
}
