//! The sandbox helper as a program of its own, for tests and benchmarks whose `main` is not theirs.
//! Its built-in programs show what a built-in can and cannot do.
#![allow(clippy::print_stdout, clippy::panic)]

use std::io::{BufRead, Write};
use std::path::Path;

use lula_sandbox::BuiltInProgram;

const BUILT_INS: &[BuiltInProgram] = &[
    BuiltInProgram {
        name: "echo",
        main: echo,
    },
    BuiltInProgram {
        name: "open",
        main: open,
    },
    BuiltInProgram {
        name: "around",
        main: around,
    },
    BuiltInProgram {
        name: "panic",
        main: |_| panic!("as asked"),
    },
    BuiltInProgram {
        name: "threads",
        main: threads,
    },
];

fn main() {
    lula_sandbox::helper_main_if_asked(BUILT_INS);
    std::process::exit(2);
}

/// Answers each line with itself.
fn echo(_: &[String]) -> i32 {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        if output
            .write_all(&line)
            .and_then(|()| output.flush())
            .is_err()
        {
            return 1;
        }
        line.clear();
    }
    0
}

/// Opens each path for reading, or for writing after a `+`, and says what came of it.
fn open(paths: &[String]) -> i32 {
    for path in paths {
        let opened = match path.strip_prefix('+') {
            Some(path) => std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map(drop),
            None => std::fs::File::open(path).map(drop),
        };
        let errno = opened.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0);
        println!("{path} {errno}");
    }
    0
}

/// Says what it has: arguments, directory, variables, descriptors.
fn around(arguments: &[String]) -> i32 {
    println!("arguments {}", arguments.join(" "));
    let directory = std::env::current_dir().unwrap_or_default();
    println!("directory {}", directory.display());
    let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    names.sort();
    println!("variables {}", names.join(" "));
    let open: Vec<String> = (0..1024)
        .map(|number| format!("/proc/self/fd/{number}"))
        .filter(|link| std::fs::read_link(link).is_ok())
        .filter_map(|link| Some(Path::new(&link).file_name()?.to_str()?.to_owned()))
        .collect();
    println!("descriptors {}", open.join(" "));
    3
}

/// Works with several threads, as a search would.
fn threads(_: &[String]) -> i32 {
    let sums: Vec<_> = (0..4_u64)
        .map(|part| std::thread::spawn(move || (part * 100..(part + 1) * 100).sum::<u64>()))
        .collect();
    let total: u64 = sums.into_iter().map(|sum| sum.join().unwrap_or(0)).sum();
    println!("{total}");
    0
}
