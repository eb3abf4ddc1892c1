//! Has the linker make a program that starts quickly: the functions that `lula exec` runs lie together
//! (see `cargo xtask order`), the list of addresses to mend at the start is short, and what walks the stack
//! for backtraces is part of it instead of a library to load.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=order.txt");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && is_linked_by_lld() {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={folder}/order.txt");
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
        if c_library().is_some_and(|version| version >= PACKED_SINCE) {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
        if let Some(libraries) = unwinder() {
            println!("cargo::rustc-link-arg-bins=-L{}", libraries.display());
        }
    }
}

/// A folder in which the name of the shared unwinder stands for the static one, where the C compiler
/// has that. The standard library names the shared one and offers no choice.
fn unwinder() -> Option<PathBuf> {
    let told = Command::new("cc")
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    let found = PathBuf::from(String::from_utf8(told.ok()?.stdout).ok()?.trim());
    if !found.is_absolute() || !found.exists() {
        return None;
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR")?).join("unwinder");
    fs::create_dir_all(&folder).ok()?;
    fs::write(folder.join("libgcc_s.so"), "INPUT ( -lgcc_eh -lgcc )\n").ok()?;
    Some(folder)
}

/// The first C library whose loader reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// The version of this machine's C library, for which the program is made anyway.
fn c_library() -> Option<(u32, u32)> {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let told = String::from_utf8(told.ok()?.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether the linker is the one that comes with the compiler, as it does on this platform unless
/// a person took it out or chose another. Others do not know the flag.
fn is_linked_by_lld() -> bool {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some()
        || ["linker", "fuse-ld", "link-self-contained"]
            .iter()
            .any(|word| flags.contains(word));
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let comes_along = || {
        let told = Command::new(compiler).args(["--print", "sysroot"]).output();
        let root = told
            .ok()
            .and_then(|told| String::from_utf8(told.stdout).ok());
        root.is_some_and(|root| {
            let tools = PathBuf::from(root.trim()).join("lib/rustlib").join(TARGET);
            tools.join("bin/gcc-ld/ld.lld").exists()
        })
    };
    target == TARGET && !chosen && comes_along()
}
