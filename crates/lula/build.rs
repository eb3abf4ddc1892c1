//! Has the linker lay the functions that `lula exec` runs together; see `cargo xtask order`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=order.txt");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if is_linked_by_lld() && env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={folder}/order.txt");
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}

/// Whether the linker is the one that comes with the compiler, as it is on this platform unless
/// somebody chose another. Others do not know the flag.
fn is_linked_by_lld() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some()
        || ["linker", "fuse-ld", "link-self-contained"]
            .iter()
            .any(|word| flags.contains(word));
    target == "x86_64-unknown-linux-gnu" && !chosen
}
