//! Input, terminals, signals, background commands, several at once.

use std::time::Duration;

use lula_protocol::receipt::CommandEnding;
use lula_sandbox::frames::OutputStream;
use lula_sandbox::{NextOutput, SandboxCommand, SandboxError};

use crate::support::session;

#[test]
fn input_arrives_whole_and_ends() {
    let (session, _workspace) = session();
    let input = vec![b'x'; 3_000_000];
    let finished = session
        .run(&SandboxCommand::new("wc").arguments(["-c"]).input(input))
        .unwrap();
    assert_eq!(finished.stdout.text().trim(), "3000000");
}

#[test]
fn input_that_nobody_reads_does_not_block() {
    let (session, _workspace) = session();
    let finished = session
        .run(&SandboxCommand::new("true").input(vec![b'x'; 3_000_000]))
        .unwrap();
    assert!(finished.succeeded());
}

#[test]
fn a_conversation_goes_back_and_forth() {
    let (session, _workspace) = session();
    let cat = session
        .start(&SandboxCommand::new("cat").open_input().streamed())
        .unwrap();
    for word in ["one\n", "two\n"] {
        cat.write_input(word.as_bytes()).unwrap();
        let output = cat.next_output().unwrap().unwrap();
        assert_eq!(output.stream, OutputStream::Stdout);
        assert_eq!(output.bytes, word.as_bytes());
    }
    cat.close_input().unwrap();
    assert_eq!(cat.next_output().unwrap(), None);
    assert!(cat.wait().unwrap().succeeded());
}

#[test]
fn a_streamed_command_waits_for_its_reader() {
    let (session, _workspace) = session();
    let yes = session
        .start(&SandboxCommand::shell("yes | head -c 2000000").streamed())
        .unwrap();
    let mut total = 0;
    while let Some(output) = yes.next_output().unwrap() {
        total += output.bytes.len();
    }
    assert_eq!(total, 2_000_000);
    assert!(yes.wait().unwrap().succeeded());
}

#[test]
fn waiting_for_a_streamed_command_takes_the_rest() {
    let (session, _workspace) = session();
    let yes = session
        .start(&SandboxCommand::shell("yes | head -c 2000000").streamed())
        .unwrap();
    yes.next_output().unwrap();
    assert_eq!(yes.wait().unwrap().stdout.total(), 2_000_000);
}

#[test]
fn nothing_to_read_within_a_time_is_said() {
    let (session, _workspace) = session();
    let quiet = session
        .start(&SandboxCommand::new("sleep").arguments(["1000"]).streamed())
        .unwrap();
    assert_eq!(
        quiet.next_output_within(Duration::from_millis(20)).unwrap(),
        NextOutput::NothingYet
    );
    quiet.kill().unwrap();
    assert_eq!(
        quiet.wait().unwrap().receipt.ended,
        CommandEnding::Signalled { signal: 9 }
    );
}

#[test]
fn a_terminal_has_a_size_and_can_be_resized() {
    let (session, _workspace) = session();
    let shell = session
        .start(
            &SandboxCommand::shell("stty size; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.02; done")
                .terminal(24, 80)
                .streamed(),
        )
        .unwrap();
    let mut seen = String::new();
    while !seen.contains("ready") {
        seen += &String::from_utf8_lossy(&shell.next_output().unwrap().unwrap().bytes);
    }
    shell.resize(50, 132).unwrap();
    let finished = shell.wait().unwrap();
    assert_eq!(finished.receipt.ended, CommandEnding::Exited { status: 3 });
    let text = finished.stdout.text();
    assert!(text.contains("24 80") && text.contains("50 132"), "{text}");
}

#[test]
fn control_c_in_a_terminal_interrupts() {
    let (session, _workspace) = session();
    let cat = session
        .start(&SandboxCommand::new("cat").terminal(24, 80).streamed())
        .unwrap();
    cat.write_input(b"hello\n").unwrap();
    assert!(cat.next_output().unwrap().is_some());
    cat.write_input(&[3]).unwrap();
    assert_eq!(
        cat.wait().unwrap().receipt.ended,
        CommandEnding::Signalled { signal: 2 }
    );
}

#[test]
fn a_signal_reaches_the_command() {
    let (session, _workspace) = session();
    let shell = session
        .start(
            &SandboxCommand::shell("trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done")
                .streamed(),
        )
        .unwrap();
    assert!(shell.next_output().unwrap().is_some());
    shell.signal(15).unwrap();
    assert_eq!(
        shell.wait().unwrap().receipt.ended,
        CommandEnding::Exited { status: 9 }
    );
}

#[test]
fn a_background_server_serves_the_next_command() {
    let (session, _workspace) = session();
    let server = session
        .start_in_background(&SandboxCommand::new("/usr/bin/python3").arguments([
            "-um",
            "http.server",
            "8000",
        ]))
        .unwrap();
    let fetch = "import time, urllib.request\n\
                 for _ in range(200):\n\
                 \ttry: print(urllib.request.urlopen('http://localhost:8000').status); break\n\
                 \texcept OSError: time.sleep(0.05)";
    let finished = session
        .run(&SandboxCommand::new("/usr/bin/python3").arguments(["-c", fetch]))
        .unwrap();
    assert_eq!(
        finished.stdout.text(),
        "200\n",
        "{}",
        finished.stderr.text()
    );
    assert!(!server.has_ended().unwrap());
    assert_eq!(session.processes(), [server.id()]);
    server.kill().unwrap();
    let finished = session.process(server.id()).unwrap().wait().unwrap();
    assert_eq!(
        finished.receipt.ended,
        CommandEnding::Signalled { signal: 9 }
    );
}

#[test]
fn a_background_flood_goes_on_while_nobody_waits() {
    let (session, _workspace) = session();
    let flood = session
        .start_in_background(&SandboxCommand::shell(
            "yes | head -c 20000000; echo done > flag",
        ))
        .unwrap();
    let waited = session
        .run(&SandboxCommand::shell(
            "while ! [ -e flag ]; do sleep 0.02; done",
        ))
        .unwrap();
    assert!(waited.succeeded());
    assert_eq!(flood.wait().unwrap().stdout.total(), 20_000_000);
}

#[test]
fn several_commands_run_at_once_from_several_threads() {
    let (session, _workspace) = session();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|number| {
                let session = &session;
                scope.spawn(move || {
                    let line = format!(
                        "sleep 0.{number}; yes {number} | head -c 300000 | wc -c; echo {number}"
                    );
                    session
                        .run(&SandboxCommand::shell(line))
                        .unwrap()
                        .stdout
                        .text()
                })
            })
            .collect();
        for (number, run) in runs.into_iter().enumerate() {
            assert_eq!(run.join().unwrap(), format!("300000\n{number}\n"));
        }
    });
}

#[test]
fn what_a_finished_command_left_running_keeps_its_pipe() {
    let (session, _workspace) = session();
    let line = "(sleep 0.3; echo late && echo written > flag) & echo now";
    let finished = session.run(&SandboxCommand::shell(line)).unwrap();
    assert_eq!(finished.stdout.text(), "now\n");
    let waited = session
        .run(&SandboxCommand::shell("sleep 0.6; cat flag"))
        .unwrap();
    assert_eq!(waited.stdout.text(), "written\n");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let (session, _workspace) = session();
    let refused = session
        .run(&SandboxCommand::new("no-such-program"))
        .unwrap_err();
    assert!(
        matches!(&refused, SandboxError::NotStarted { program, .. } if program == "no-such-program"),
        "{refused}"
    );
    // The session goes on.
    assert!(
        session
            .run(&SandboxCommand::new("true"))
            .unwrap()
            .succeeded()
    );
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let (session, _workspace) = session();
    let refused = session
        .run(&SandboxCommand::new("true").directory("/no/such/place"))
        .unwrap_err();
    assert!(
        matches!(&refused, SandboxError::NotStarted { step, .. } if step == "directory"),
        "{refused}"
    );
}

#[test]
fn the_environment_is_built_from_nothing() {
    let (session, _workspace) = session();
    let finished = session
        .run(&SandboxCommand::new("env").variable("EXTRA", "1"))
        .unwrap();
    let mut names: Vec<_> = finished
        .stdout
        .text()
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "EXTRA", "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"
        ]
    );
}

#[test]
fn no_descriptor_leaks_in() {
    let (session, _workspace) = session();
    let finished = session
        .run(&SandboxCommand::shell("ls /proc/self/fd | tr '\\n' ' '"))
        .unwrap();
    // The fourth is the directory being listed.
    assert_eq!(finished.stdout.text(), "0 1 2 3 ");
}
