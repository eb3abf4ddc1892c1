//! The program in the kernel: refused calls fail with the declared error, and ordinary programs do
//! not notice.
//!
//! A filter binds the thread that installs it and its children, so each test uses a thread.

use std::process::{Command, Output};

use super::*;
use crate::sys::attempt::attempt;
use crate::sys::{lockdown, refusals};

fn native() -> SyscallAbi {
    SyscallAbi::native().expect("a supported machine")
}

/// Runs something on a thread under the rules.
fn under<T: Send>(rules: SeccompRules, act: impl FnOnce() -> T + Send) -> T {
    let program = SeccompProgram::compile(native(), &rules);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            lockdown::no_new_privileges().unwrap();
            lockdown::install_seccomp(program.instructions()).unwrap();
            act()
        });
        thread.join().unwrap()
    })
}

fn call(name: &str, args: &[u64]) -> Result<u64, i32> {
    let number = native().number_of(name).unwrap();
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    attempt(number, all).map_err(|error| error.raw_os_error().unwrap())
}

#[test]
fn refused_calls_fail_with_the_declared_error() {
    under(SeccompRules::NAMESPACE, || {
        for (name, args, errno) in [
            ("bpf", &[0_u64][..], libc::EPERM),
            ("io_uring_setup", &[1, 0], libc::EPERM),
            ("perf_event_open", &[0], libc::EPERM),
            ("userfaultfd", &[0], libc::EPERM),
            ("keyctl", &[0], libc::EPERM),
            ("ptrace", &[0], libc::EPERM),
            ("mount", &[0], libc::EPERM),
            ("unshare", &[0x1000_0000], libc::EPERM),
            ("unshare", &[0x80], libc::EPERM),
            ("clone", &[0x1000_0011], libc::EPERM),
            ("clone3", &[0, 0], libc::ENOSYS),
            ("openat2", &[0], libc::ENOSYS),
            ("ioctl", &[0, 0x5412], libc::EPERM),
            ("ioctl", &[0, 0xdead_0000_5412], libc::EPERM),
            ("ioctl", &[0, 0x1_0000_541c], libc::EPERM),
            ("personality", &[0x0004_0000], libc::EPERM),
            ("socket", &[38, 5, 0], libc::EAFNOSUPPORT),
            ("socket", &[40, 1, 0], libc::EAFNOSUPPORT),
            ("socket", &[2, 3, 255], libc::EPERM),
            ("socket", &[16, 3, 9], libc::EPERM),
            ("fchmod", &[0, 0o4755], libc::EPERM),
        ] {
            assert_eq!(call(name, args), Err(errno), "{name} {args:x?}");
        }
        for number in [500, 4096, 0x4000_0000, 0x4000_0000 + 59] {
            let answer = attempt(number, [0; 6]).unwrap_err().raw_os_error();
            assert_eq!(answer, Some(libc::ENOSYS), "{number:#x}");
        }
        assert_eq!(call("personality", &[0xffff_ffff]).map(drop), Ok(()));
        assert_eq!(
            call("unshare", &[0x400]).map(drop),
            Ok(()),
            "files are not a namespace"
        );
    });
}

#[test]
fn a_shared_network_and_file_tree_is_fenced_by_sockets() {
    under(SeccompRules::SHARED, || {
        for family in [1, 2, 10, 16] {
            assert_eq!(
                call("socket", &[family, 1, 0]),
                Err(libc::EPERM),
                "{family}"
            );
        }
        assert_eq!(call("shmget", &[0, 4096, 0o1600]), Err(libc::EPERM));
        let mut pair = [0_u64; 1];
        let pointer = pair.as_mut_ptr().addr() as u64;
        assert_eq!(
            call("socketpair", &[1, 2, 0, pointer]),
            Err(libc::EPERM),
            "datagrams"
        );
        assert_eq!(call("socketpair", &[1, 1, 0, pointer]), Ok(0), "streams");
    });
}

#[test]
fn refusals_reach_the_listener_and_fail_all_the_same() {
    let rules = SeccompRules {
        refusals: RefusedCallReply::Notify,
        ..SeccompRules::NAMESPACE
    };
    let program = SeccompProgram::compile(native(), &rules);
    let (send, receive) = std::sync::mpsc::channel();
    let caller = std::thread::spawn(move || {
        lockdown::no_new_privileges().unwrap();
        let listener = refusals::install_with_listener(program.instructions()).unwrap();
        send.send(listener).unwrap();
        let unseen = (call("clone3", &[0, 0]), call("getpid", &[]).is_ok());
        (call("bpf", &[0]), call("socket", &[38, 5, 0]), unseen)
    });
    let listener = SeccompListener::new(receive.recv().unwrap(), native(), rules);
    let mut seen = Vec::new();
    while let Some(heard) = listener
        .next(|_, _| None, |_, _| SignalTarget::Outside)
        .unwrap()
    {
        if let SeccompNotification::Refused(denial) = heard {
            seen.push(denial.attempt);
        }
    }
    let (bpf, socket, unseen) = caller.join().unwrap();
    assert_eq!((bpf, socket), (Err(libc::EPERM), Err(libc::EAFNOSUPPORT)));
    assert_eq!(unseen, (Err(libc::ENOSYS), true));
    let name = |name: &str| lula_protocol::denial::DeniedAttempt::Syscall {
        name: name.to_owned(),
    };
    assert_eq!(seen, [name("bpf"), name("socket(AF_ALG, 5)")]);
}

fn program(name: &str, arguments: &[&str]) -> Output {
    let output = Command::new(name).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{name} is needed for this test: {error}"))
}

fn works(name: &str, arguments: &[&str]) {
    let output = under(SeccompRules::NAMESPACE, || program(name, arguments));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
}

#[test]
fn python_runs_pools_of_processes() {
    let script = "
import multiprocessing as m, socket, asyncio, subprocess, threading
if __name__ == '__main__':
    for way in ('fork', 'spawn', 'forkserver'):
        with m.get_context(way).Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2], way
    server = socket.create_server(('127.0.0.1', 0))
    socket.create_connection(server.getsockname()).close()
    asyncio.run(asyncio.create_subprocess_exec('true'))
    subprocess.run(['true'], check=True)
";
    let file = tempfile::NamedTempFile::with_suffix(".py").unwrap();
    std::fs::write(file.path(), script).unwrap();
    works("python3", &[file.path().to_str().unwrap()]);
}

#[test]
fn node_compiles_and_works_in_threads() {
    let script = "
const { Worker } = require('worker_threads');
let sum = 0; for (let i = 0; i < 1e7; i++) sum += i % 7;
const net = require('net').createServer().listen(0, () => net.close());
require('os').networkInterfaces();
require('fs').promises.readFile('/etc/hostname').catch(() => {});
new Worker('process.exit(0)', { eval: true }).on('exit', code => process.exitCode = code);
";
    works("node", &["-e", script]);
}

#[test]
fn java_compiles_and_works_in_threads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Main.java");
    let source = "
public class Main { public static void main(String[] a) throws Exception {
  long s = 0; for (int i = 0; i < 20_000_000; i++) s += i % 7;
  Thread t = new Thread(() -> {}); t.start(); t.join();
  new ProcessBuilder(\"true\").start().waitFor();
  System.out.println(s); } }";
    std::fs::write(&file, source).unwrap();
    works("java", &[file.to_str().unwrap()]);
}

#[test]
fn git_commits() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {} && git init -q . && echo x > f && git add f && \
         git -c user.name=a -c user.email=a@b commit -qm x && git gc -q && git log --oneline",
        folder.path().display()
    );
    works("sh", &["-c", &script]);
}

#[test]
fn cargo_builds_and_tests() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join("src")).unwrap();
    std::fs::write(
        root.join("Cargo.toml"),
        "[package]\nname = 'x'\nversion = '0.1.0'\nedition = '2021'\n",
    )
    .unwrap();
    std::fs::write(
        root.join("src/lib.rs"),
        "#[test] fn t() { std::thread::spawn(|| {}).join().unwrap() }\n",
    )
    .unwrap();
    let manifest = root.join("Cargo.toml");
    works(
        "cargo",
        &[
            "test",
            "--offline",
            "-q",
            "--manifest-path",
            manifest.to_str().unwrap(),
        ],
    );
}
