//! Programs of the helper itself, run inside.

use lula_protocol::IsolationTier;
use lula_protocol::receipt::{CommandEnding, ProtectionLayer};
use lula_sandbox::{
    HostToolchains, OutputChunk, Sandbox, SandboxCommand, SandboxError, SandboxSession,
};
use tempfile::TempDir;

use crate::support::{build_policy, engine, session, workspace};

const TIERS: [IsolationTier; 3] = [
    IsolationTier::Namespace,
    IsolationTier::Landlock,
    IsolationTier::Process,
];

fn open(tier: IsolationTier) -> (SandboxSession, TempDir) {
    let workspace = workspace();
    let mut policy = build_policy();
    policy.min_tier = tier;
    if tier == IsolationTier::Process {
        policy.required_layers.clear();
    }
    let asked = Sandbox::new(policy, workspace.path())
        .tier(tier)
        .toolchains(HostToolchains::none());
    (engine().open(&asked).unwrap(), workspace)
}

#[test]
fn a_built_in_has_its_arguments_its_directory_and_three_descriptors() {
    for tier in TIERS {
        let (session, workspace) = open(tier);
        let finished = session
            .run(
                &SandboxCommand::built_in("around")
                    .arguments(["one", "two three"])
                    .variable("COLOUR", "blue"),
            )
            .unwrap();
        assert_eq!(finished.receipt.ended, CommandEnding::Exited { status: 3 });
        let said = finished.stdout.text();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "arguments one two three");
        assert_eq!(
            lines[1],
            format!("directory {}", workspace.path().display())
        );
        assert_eq!(
            lines[2],
            "variables COLOUR HOME LANG LOGNAME PATH SHELL TERM TMPDIR USER"
        );
        assert_eq!(lines[3], "descriptors 0 1 2", "{tier}");
    }
}

#[test]
fn a_built_in_stands_behind_the_same_layers_as_any_command() {
    for tier in TIERS {
        let (session, _workspace) = open(tier);
        let names = |command: &SandboxCommand| -> Vec<&'static str> {
            let receipt = session.run(command).unwrap().receipt;
            receipt.layers.iter().map(ProtectionLayer::name).collect()
        };
        let built_in = names(&SandboxCommand::built_in("around"));
        assert_eq!(built_in, names(&SandboxCommand::shell("true")), "{tier}");
        assert!(tier == IsolationTier::Process || built_in.contains(&"seccomp"));
    }
}

#[test]
fn a_built_in_opens_its_workspace_and_nothing_outside() {
    let outside = workspace();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "token").unwrap();
    // The same paths are there for a process outside.
    for path in ["/etc/shadow", "/proc/self/exe"] {
        assert!(std::fs::symlink_metadata(path).is_ok(), "{path}");
    }
    for tier in [IsolationTier::Namespace, IsolationTier::Landlock] {
        let (session, workspace) = open(tier);
        std::fs::write(workspace.path().join("inside"), "x").unwrap();
        let forbidden = [
            "/etc/shadow".to_owned(),
            secret.display().to_string(),
            format!("+{}", outside.path().join("new").display()),
            "+/etc/new".to_owned(),
            "/root/.ssh/id_ed25519".to_owned(),
            // The helper's own file, and the first process's view of the world.
            "/proc/self/exe".to_owned(),
            "/proc/1/root/etc/shadow".to_owned(),
            "/proc/1/mem".to_owned(),
            "/proc/1/environ".to_owned(),
        ];
        let allowed = ["inside".to_owned(), "+made".to_owned()];
        let finished = session
            .run(&SandboxCommand::built_in("open").arguments(allowed.iter().chain(&forbidden)))
            .unwrap();
        let said = finished.stdout.text();
        for (index, line) in said.lines().enumerate() {
            let worked = line.ends_with(" 0");
            assert_eq!(worked, index < allowed.len(), "{tier}: {line}");
        }
        assert_eq!(said.lines().count(), allowed.len() + forbidden.len());
        assert!(workspace.path().join("made").exists());
        assert!(!outside.path().join("new").exists());
    }
}

#[test]
fn an_unknown_built_in_is_refused_by_name_and_the_session_goes_on() {
    let (session, _workspace) = session();
    let refused = session
        .run(&SandboxCommand::built_in("no-such-thing"))
        .unwrap_err();
    assert!(
        matches!(&refused, SandboxError::BuiltIn { name, .. } if name == "no-such-thing"),
        "{refused}"
    );
    // A file of that name is not looked for, and a built-in is no file.
    assert!(matches!(
        session.run(&SandboxCommand::built_in("sh")),
        Err(SandboxError::BuiltIn { .. })
    ));
    assert!(matches!(
        session.run(&SandboxCommand::new("around")),
        Err(SandboxError::NotStarted { .. })
    ));
    assert!(
        session
            .run(&SandboxCommand::shell("true"))
            .unwrap()
            .succeeded()
    );
}

#[test]
fn a_built_in_in_a_directory_that_is_not_there_does_not_start() {
    let (session, _workspace) = session();
    let refused = session.run(&SandboxCommand::built_in("around").directory("/nowhere"));
    assert!(
        matches!(&refused, Err(SandboxError::NotStarted { step, .. }) if step == "directory"),
        "{refused:?}"
    );
}

#[test]
fn a_built_in_that_panics_ends_alone_with_status_101() {
    for tier in TIERS {
        let (session, _workspace) = open(tier);
        let finished = session.run(&SandboxCommand::built_in("panic")).unwrap();
        assert_eq!(
            finished.receipt.ended,
            CommandEnding::Exited { status: 101 }
        );
        assert!(finished.stderr.text().contains("as asked"));
        assert!(
            session
                .run(&SandboxCommand::shell("true"))
                .unwrap()
                .succeeded()
        );
    }
}

#[test]
fn a_built_in_may_use_threads() {
    for tier in TIERS {
        let (session, _workspace) = open(tier);
        let finished = session.run(&SandboxCommand::built_in("threads")).unwrap();
        assert_eq!(finished.stdout.text(), "79800\n", "{tier}");
    }
}

#[test]
fn a_built_in_answers_line_by_line_for_as_long_as_it_is_asked() {
    let (session, _workspace) = session();
    let process = session
        .start(&SandboxCommand::built_in("echo").open_input().streamed())
        .unwrap();
    // More than a window of credit in each direction.
    for number in 0..4000 {
        let line = format!("{number:0>100}\n");
        process.write_input(line.as_bytes()).unwrap();
        let mut heard = Vec::new();
        while heard.len() < line.len() {
            let Some(OutputChunk { bytes, .. }) = process.next_output().unwrap() else {
                panic!("it ended");
            };
            heard.extend(bytes);
        }
        assert_eq!(heard, line.as_bytes());
    }
    process.close_input().unwrap();
    assert!(process.wait().unwrap().succeeded());
}

#[test]
fn a_built_in_dies_with_its_deadline() {
    let (session, _workspace) = session();
    let finished = session
        .run(
            &SandboxCommand::built_in("echo")
                .open_input()
                .timeout(std::time::Duration::from_millis(100)),
        )
        .unwrap();
    assert_eq!(finished.receipt.ended, CommandEnding::TimedOut);
}
