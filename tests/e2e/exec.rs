//! `lula exec`: behaves like the command, with a fence around it.

use std::io::Write;
use std::process::Stdio;

use crate::support::{LulaEnv, Ran};

#[test]
fn output_and_status_are_the_commands_own() {
    let world = LulaEnv::new();
    let ran = world
        .run(&["exec", "--", "sh", "-c", "echo out; echo err >&2; exit 7"])
        .exits(7);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn standard_input_reaches_the_command() {
    let world = LulaEnv::new();
    let mut child = world
        .command(&["exec", "--", "tr", "a-z", "A-Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(ran.stdout, "HELLO\n");
}

#[test]
fn a_command_may_use_every_processor() {
    let world = LulaEnv::new();
    let outside = std::process::Command::new("nproc").output().unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    // Whichever processors its sandbox was built on.
    for _ in 0..5 {
        let inside = world.run(&["exec", "--", "nproc"]).exits(0);
        assert_eq!(inside.stdout, outside);
    }
}

#[test]
fn the_workspace_is_shared_and_nothing_else_is() {
    let world = LulaEnv::new();
    std::fs::write(world.home().join("secret"), "canary").unwrap();
    std::fs::write(world.work().join("in.txt"), "in\n").unwrap();
    let secret = world.home().join("secret");
    let script = format!(
        "cat in.txt > out.txt; cat {} 2>&1; ls /root /home 2>&1",
        secret.display()
    );
    let ran = world.run(&["exec", "--write", "direct", "--", "sh", "-c", &script]);
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
    assert_eq!(
        std::fs::read_to_string(world.work().join("out.txt")).unwrap(),
        "in\n"
    );
}

#[test]
fn the_callers_variables_do_not_reach_the_command() {
    let world = LulaEnv::new();
    let ran = world
        .run_with(
            &[("AWS_SECRET_ACCESS_KEY", "canary")],
            &["exec", "--", "env"],
        )
        .exits(0);
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
}

#[test]
fn the_sandboxes_helper_forgets_what_lula_was_called_with() {
    let world = LulaEnv::new();
    let mut child = world
        .command(&[
            "exec",
            "--profile",
            "strict",
            "--",
            "sh",
            "-c",
            "echo ready; cat",
        ])
        .env("AWS_SECRET_ACCESS_KEY", "canary-in-a-variable")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    assert!(
        memory_holds(child.id(), "canary-in-a-variable"),
        "lula itself was given it"
    );
    let helpers = children(child.id());
    assert_eq!(helpers.len(), 1, "{helpers:?}");
    for helper in helpers {
        let called = std::fs::read(format!("/proc/{helper}/cmdline")).unwrap();
        let called = String::from_utf8_lossy(&called);
        let called = called.trim_end_matches('\0');
        assert_eq!(called, "lula-sandbox-zygote");
        assert!(!memory_holds(helper, "canary-in-a-variable"));
        let open = std::fs::read_dir(format!("/proc/{helper}/fd")).unwrap();
        let paths: Vec<_> = open
            .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap_or_default())
            .filter(|path| path.starts_with(world.home()) || path.starts_with(world.work()))
            .collect();
        assert!(paths.is_empty(), "{paths:?}");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Processes that this one started.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind_its_name = stat.rsplit(") ").next().unwrap_or_default();
        behind_its_name.split(' ').nth(1) == Some(&parent.to_string())
    };
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(is_child).collect()
}

/// Whether anything that a process can write has those bytes in it.
fn memory_holds(pid: u32, text: &str) -> bool {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    maps.lines()
        .filter(|line| line.contains(" rw"))
        .any(|line| {
            let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let (from, to) = (number(from), number(to));
            let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
            // What the kernel does not show is nothing that the program wrote.
            memory.read_at(&mut bytes, from).is_ok()
                && bytes
                    .windows(text.len())
                    .any(|window| window == text.as_bytes())
        })
}

#[test]
fn a_command_starts_where_the_person_is_and_sees_the_repository() {
    let world = LulaEnv::new();
    std::fs::create_dir_all(world.work().join(".git")).unwrap();
    std::fs::create_dir_all(world.work().join("deep/er")).unwrap();
    std::fs::write(world.work().join("top.txt"), "top\n").unwrap();
    let mut command = world.command(&["exec", "--", "cat", "../../top.txt"]);
    command.current_dir(world.work().join("deep/er"));
    let ran = Ran::from(command.output().unwrap()).exits(0);
    assert_eq!(ran.stdout, "top\n");
}

#[test]
fn a_read_only_workspace_stays_as_it_is() {
    let world = LulaEnv::new();
    let ran = world
        .run(&["exec", "--write", "none", "--", "touch", "new.txt"])
        .exits(1);
    assert!(
        ran.stderr.contains("Read-only file system"),
        "{}",
        ran.stderr
    );
    assert!(!world.work().join("new.txt").exists());
}

#[test]
fn time_that_runs_out_is_124_and_ends_the_whole_tree() {
    let world = LulaEnv::new();
    let script = "setsid sh -c 'sleep 2; echo late > late.txt' & sleep 60";
    world
        .run(&[
            "exec",
            "--write=direct",
            "--timeout=300ms",
            "--",
            "sh",
            "-c",
            script,
        ])
        .exits(124);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(
        !world.work().join("late.txt").exists(),
        "a daemon outlived its sandbox"
    );
}

#[test]
fn a_refusal_is_125_and_a_missing_command_127() {
    let world = LulaEnv::new();
    world
        .run(&["exec", "--tier", "microvm", "--", "true"])
        .exits(125)
        .says("error[L0301]");
    world
        .run(&["exec", "--", "no-such-program"])
        .exits(127)
        .says("error[L0302]");
    std::fs::write(world.work().join("plain.txt"), "x").unwrap();
    world.run(&["exec", "--", "./plain.txt"]).exits(126);
}

#[test]
fn a_signal_is_handed_on() {
    let world = LulaEnv::new();
    let child = world
        .command(&[
            "exec",
            "--",
            "sh",
            "-c",
            "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let mut child = child;
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert_eq!(rest, "caught\n");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn a_signal_to_the_whole_group_is_the_commands_and_nobody_elses() {
    use std::os::unix::process::CommandExt;
    let world = LulaEnv::new();
    // Ctrl-C goes to every process that the terminal started; which is first differs from time to time.
    for _ in 0..8 {
        let mut child = world
            .command(&[
                "exec",
                "--",
                "sh",
                "-c",
                "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = rustix::process::Pid::from_child(&child);
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
        assert_eq!((rest.as_str(), ended.status.code()), ("caught\n", Some(9)));
    }
}

#[test]
fn a_command_whose_reader_has_gone_ends_as_it_would_by_itself() {
    let world = LulaEnv::new();
    let mut child = world
        .command(&["exec", "--", "yes"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "y\n");
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    let pipe = rustix::process::Signal::PIPE.as_raw();
    assert_eq!(ended.status.code(), Some(128 + pipe));
}

#[test]
fn no_moment_is_too_early_for_a_signal() {
    let world = LulaEnv::new();
    for milliseconds in [0, 1, 3, 5, 8, 12, 18, 30, 60] {
        let mut child = world
            .command(&["exec", "--", "sleep", "600"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        // Either way it is the signal's: ours before there is a command, the command's afterwards.
        let ended = child.wait().unwrap();
        let by_signal = std::os::unix::process::ExitStatusExt::signal(&ended);
        let term = rustix::process::Signal::TERM.as_raw();
        assert!(
            by_signal == Some(term) || ended.code() == Some(128 + term),
            "after {milliseconds} ms: {ended}"
        );
    }
}

#[test]
fn the_receipt_says_what_stood_around_the_command() {
    let world = LulaEnv::new();
    world
        .run(&["exec", "--receipt", "r.json", "--", "true"])
        .exits(0);
    let text = std::fs::read_to_string(world.work().join("r.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(receipt["ended"]["how"], "exited");
    assert!(
        receipt["layers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|layer| layer["layer"] == "seccomp")
    );

    let document = world
        .run(&["exec", "--json", "--", "sh", "-c", "echo hi; exit 3"])
        .exits(3)
        .json();
    assert_eq!(document["stdout"], "hi\n");
    assert_eq!(document["status"], 3);
}

#[test]
fn the_home_directory_is_never_a_workspace() {
    let world = LulaEnv::new();
    let home = world.home();
    let ran = world.run(&["exec", "--workspace", home.to_str().unwrap(), "--", "true"]);
    ran.exits(2).says("error[L0304]");
}

#[test]
fn there_is_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5)");
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("control: the server can be reached");
    let ran = LulaEnv::new()
        .run(&["exec", "--", "python3", "-c", &script])
        .exits(1);
    assert!(ran.stderr.contains("Connection refused"), "{}", ran.stderr);
}

#[test]
fn an_attempt_to_get_out_is_in_the_receipt() {
    let world = LulaEnv::new();
    let denied = |script: &str| {
        let document = world.run(&["exec", "--json", "--", "python3", "-c", script]);
        let document = document.exits(0).json();
        let unseen = document["receipt"]["not_observed"]
            .as_array()
            .unwrap()
            .len();
        assert!(unseen > 0, "{document}");
        let denials = document["receipt"]["denials"].as_array().unwrap().clone();
        denials.first().cloned()
    };
    let out = "import socket\nfor _ in range(3): socket.socket().connect_ex(('192.0.2.1', 443))";
    let denial = denied(out).expect("a denial");
    assert_eq!(denial["count"], 3);
    assert_eq!(denial["attempt"]["host"], "192.0.2.1");
    assert_eq!(denial["attempt"]["port"], 443);
    assert_eq!(denial["rule"], "network = \"none\"");
    let within = "import socket\nsocket.socket().connect_ex(('127.0.0.1', 443))";
    assert_eq!(denied(within), None);
}

#[test]
fn a_command_that_is_explained_names_what_it_was_denied_and_what_would_grant_it() {
    let world = LulaEnv::new();
    let key = world.home().join("deploy.key");
    std::fs::write(&key, "secret").unwrap();
    let path = key.to_str().unwrap();
    let ran = world.run(&["exec", "--explain", "--", "cat", path]);
    let said = ran.exits(1).stderr;
    let expected =
        format!("denied: read {path} (not in the sandbox); paths.read = [{path:?}] would allow it");
    assert!(said.contains(&expected), "{said}");

    // The grant as it was named is one.
    let policy = world.home().join("reading.toml");
    std::fs::write(&policy, format!("[paths]\nread = [{path:?}]\n")).unwrap();
    let policy = policy.to_str().unwrap();
    let ran = world.run(&["exec", "--explain", "--policy", policy, "--", "cat", path]);
    let ran = ran.exits(0);
    assert_eq!(ran.stdout, "secret");
    assert!(!ran.stderr.contains(path), "{}", ran.stderr);
}

#[test]
fn a_policy_of_ones_own_is_kept_and_never_taken_from_the_workspace() {
    let world = LulaEnv::new();
    let policy = world.home().join("tight.toml");
    std::fs::write(
        &policy,
        "profile = \"strict\"\n[limits]\npids = 11\nopen_files = 77\n",
    )
    .unwrap();
    let named = policy.to_str().unwrap();
    let document = world
        .run(&[
            "exec",
            "--json",
            "--policy",
            named,
            "--",
            "sh",
            "-c",
            "ulimit -n",
        ])
        .exits(0)
        .json();
    assert_eq!(document["stdout"], "77\n");

    let inside = world.work().join("loose.toml");
    std::fs::copy(&policy, &inside).unwrap();
    world
        .run(&["exec", "--policy", "loose.toml", "--", "true"])
        .exits(2)
        .says("error[L0105]");
    std::os::unix::fs::symlink(&inside, world.home().join("link.toml")).unwrap();
    let link = world.home().join("link.toml");
    world
        .run(&["exec", "--policy", link.to_str().unwrap(), "--", "true"])
        .exits(2)
        .says("error[L0105]");

    std::fs::write(&policy, "[limits]\npids = 0\n").unwrap();
    let ran = world.run(&["exec", "--policy", named, "--", "true"]);
    ran.exits(2)
        .says("error[L0102]")
        .says("line 2: limits.pids");
    world
        .run(&[
            "exec",
            "--policy",
            named,
            "--profile",
            "build",
            "--",
            "true",
        ])
        .exits(2);
}

#[test]
fn a_project_has_its_own_virtual_environment() {
    let world = LulaEnv::new();
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(world.work().join(".venv"))
        .status()
        .unwrap();
    assert!(made.success());
    let script = "python -c 'import sys; print(sys.prefix)'; echo $VIRTUAL_ENV";
    let directory = world.work().canonicalize().unwrap().join(".venv");
    let expected = format!("{0}\n{0}\n", directory.display());
    for write in ["review", "direct", "none"] {
        let ran = world.run(&["exec", "--write", write, "--", "sh", "-c", script]);
        assert_eq!(ran.exits(0).stdout, expected, "{write}");
    }
    std::fs::remove_file(directory.join("bin/python")).unwrap();
    world
        .run(&["exec", "--", "true"])
        .exits(0)
        .says("the project's virtual environment is broken");
}
