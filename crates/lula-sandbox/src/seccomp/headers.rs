//! The tables of system calls against the kernel's own headers, as distributions package them.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use super::SyscallAbi;

/// Names that headers have, and calls that are gone from the kernel, or were never there.
const NO_CALLS: [&str; 16] = [
    "_sysctl",
    "afs_syscall",
    "arch_specific_syscall",
    "create_module",
    "epoll_ctl_old",
    "epoll_wait_old",
    "get_kernel_syms",
    "getpmsg",
    "lookup_dcookie",
    "nfsservctl",
    "putpmsg",
    "query_module",
    "security",
    "syscalls",
    "tuxcall",
    "uselib",
];
const NEVER_THERE: &str = "vserver";

/// What the headers define, by the preprocessor of C with these arguments.
fn defined(arguments: &[&str]) -> BTreeMap<String, u32> {
    let mut compiler = Command::new("cc")
        .args(["-E", "-dM"])
        .args(arguments)
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut source = compiler.stdin.take().unwrap();
    source.write_all(b"#include <asm/unistd.h>\n").unwrap();
    drop(source);
    let output = compiler.wait_with_output().unwrap();
    assert!(output.status.success(), "no headers for {arguments:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let meanings: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
        .collect();
    let mut numbers = BTreeMap::new();
    for (name, meaning) in &meanings {
        let Some(call) = name.strip_prefix("__NR_") else {
            continue;
        };
        // Some are told by another name, which has the number.
        let mut meaning = *meaning;
        while let Some(next) = meanings.get(meaning) {
            meaning = next;
        }
        if let Ok(number) = meaning.parse() {
            numbers.insert(call.to_owned(), number);
        }
    }
    assert!(numbers.len() > 250, "{numbers:?}");
    numbers
}

fn compare(abi: SyscallAbi, arguments: &[&str]) {
    let headers = defined(arguments);
    let known: BTreeMap<&str, u32> = abi.calls().iter().copied().collect();
    // In the headers calls have the names that C gives them.
    let same = |name: &str| match name {
        "umount" if abi == SyscallAbi::Aarch64 => "umount2".to_owned(),
        "fstatat" => "newfstatat".to_owned(),
        other => other.to_owned(),
    };
    for (name, number) in &headers {
        if NO_CALLS.contains(&&**name) || name == NEVER_THERE {
            continue;
        }
        // Those that came after the table: answered as unknown.
        if *number > known.values().copied().max().unwrap() {
            continue;
        }
        assert_eq!(
            known.get(&*same(name)),
            Some(number),
            "{abi:?}: {name} in the headers"
        );
    }
    let newest = headers
        .iter()
        .filter(|(name, _)| !NO_CALLS.contains(&&***name))
        .map(|(_, number)| *number)
        .max();
    let numbers: Vec<_> = headers.values().collect();
    for (name, number) in abi.calls() {
        // The headers may be older than the table.
        let is_late = Some(*number) > newest || ["uretprobe", "uprobe"].contains(name);
        assert!(
            numbers.contains(&number) || is_late,
            "{abi:?}: {name} of the table, number {number}"
        );
    }
}

/// By the headers of this machine; by those of both processors where `cargo xtask aarch64` names them.
#[test]
#[cfg(target_arch = "x86_64")]
fn every_call_has_the_number_of_the_kernels_headers() {
    let Ok(x86) = std::env::var("LULA_TEST_X86_HEADERS") else {
        compare(SyscallAbi::X86_64, &[]);
        return;
    };
    let arm = std::env::var("LULA_TEST_ARM_HEADERS").unwrap();
    let none = ["-nostdinc", "-U__x86_64__", "-U__i386__"];
    compare(
        SyscallAbi::X86_64,
        &[&none[..], &["-D__x86_64__", "-I", &x86]].concat(),
    );
    compare(
        SyscallAbi::Aarch64,
        &[&none[..], &["-D__aarch64__", "-I", &arm]].concat(),
    );
}
