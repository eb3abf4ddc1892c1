//! What a model is told of a result.

use lula_protocol::{Digest, EffectId, ProtocolVersion, TextOrigin};

use super::*;

fn told(text: &str, truncated: bool, details: ToolOutputDetails, most: usize) -> Reply {
    let mut output = ToolOutput::new(text, TextOrigin::Repository).with(details);
    output.truncated = truncated;
    let result = ToolResult {
        protocol: ProtocolVersion,
        effect: EffectId::from_parts(1, [0; 10]),
        outcome: ToolOutcome::Done { output },
        receipt: None,
    };
    Reply::of(result, most).unwrap()
}

fn file(lines: u32, from_line: u32, to_line: u32) -> ToolOutputDetails {
    ToolOutputDetails::File {
        path: "a.py".to_owned(),
        digest: Digest::of_bytes(b""),
        bytes: 20_000,
        lines,
        from_line,
        to_line,
        binary: false,
        lossy: false,
    }
}

#[test]
fn a_page_of_a_file_has_numbers_and_says_how_to_read_on() {
    let reply = told("a = 1\nb = 2\n", true, file(1054, 9, 10), 1000);
    assert_eq!(
        reply.text,
        "lines 9-10 of 1,054\n    9\ta = 1\n   10\tb = 2\n[1,044 more lines: read on with from_line \
         11]\n"
    );
    let whole = told("a = 1\n", false, file(1, 1, 1), 1000);
    assert_eq!(whole.text, "lines 1-1 of 1\n    1\ta = 1\n");
    assert_eq!(
        told("", false, file(0, 0, 0), 1000).text,
        "the file is empty"
    );
}

#[test]
fn a_line_that_is_cut_is_said_to_be() {
    let reply = told("xxxx", true, file(1, 1, 1), 1000);
    assert!(
        reply.text.contains("line 1 is cut after 4 of"),
        "{}",
        reply.text
    );
}

fn ran(status: u8, stdout: &str, stderr: &str, dropped: u64, most: usize) -> Reply {
    let details = ToolOutputDetails::Command {
        status,
        stdout: stdout.to_owned(),
        stdout_dropped: dropped,
        stderr: stderr.to_owned(),
        stderr_dropped: 0,
    };
    told("", false, details, most)
}

#[test]
fn the_exit_status_is_the_first_line_however_much_a_command_writes() {
    let flood = (0..10_000)
        .map(|number| format!("line {number}\n"))
        .collect::<Vec<_>>()
        .concat();
    let reply = ran(1, &flood, &flood, 0, 4000);
    assert!(reply.failed);
    assert!(reply.text.starts_with("exit status 1\n<stdout>\nline 0\n"));
    assert_eq!(
        reply.text.matches("line 9999\n").count(),
        2,
        "both ends stay"
    );
    assert_eq!(reply.text.matches("bytes left out …]").count(), 2);
    assert!(reply.text.len() < 4300, "{}", reply.text.len());
    assert_eq!(
        ran(0, "ok\n", "", 0, 4000).text,
        "exit status 0\n<stdout>\nok\n</stdout>\n"
    );
}

#[test]
fn what_the_runner_left_out_already_is_counted() {
    let flood = "x".repeat(5000);
    let reply = ran(0, &flood, "", 1_000_000, 3000);
    assert!(
        reply.text.contains("[… 1,002,000 bytes left out …]"),
        "{}",
        reply.text
    );
}

#[test]
fn a_search_says_how_many_lines_it_left_out() {
    let details = ToolOutputDetails::Matches {
        matches: Vec::new(),
        files: 3,
        left_out: 1200,
    };
    let reply = told("a:1:x\n", true, details, 1000);
    assert!(
        reply.text.contains("[… 1,200 more left out"),
        "{}",
        reply.text
    );
}

#[test]
fn a_job_is_told_with_what_it_wrote() {
    let details = ToolOutputDetails::Job {
        job: "job-1".to_owned(),
        status: None,
        running: true,
        output: "serving\n".to_owned(),
        left_out: 2000,
    };
    assert_eq!(
        told("job-1 is running\n", false, details, 1000).text,
        "job-1 is running\n[… 2,000 earlier bytes left out …]\n<output>\nserving\n</output>\n"
    );
}

#[test]
fn colours_of_a_command_are_not_shown() {
    let reply = ran(0, "\u{1b}[32m1 passed\u{1b}[0m\n", "", 0, 1000);
    assert_eq!(reply.text, "exit status 0\n<stdout>\n1 passed\n</stdout>\n");
}
