//! The sandbox helper as a program of its own, for tests and benchmarks whose `main` is not theirs.

fn main() {
    lula_sandbox::helper_main_if_asked();
    std::process::exit(2);
}
