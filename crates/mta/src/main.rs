//! The daemon `mta`.

/// A message consists of many small allocations, made on one thread and freed on another. With
/// glibc's allocator they took a fifth of a small message's processor time (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Disables transparent huge pages: the kernel would clear 2 MiB at once on the thread that
    // serves every connection. A kernel without this option has no huge pages either.
    let _ = nix::sys::prctl::set_thp_disable(true);
    mta::command::main()
}
