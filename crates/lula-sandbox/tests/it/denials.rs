//! What a sandbox keeps from a command is named, with where it was to go and what would grant it.

use lula_protocol::IsolationTier;
use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_sandbox::{FinishedCommand, HostToolchains, Sandbox, SandboxCommand, SandboxSession};
use tempfile::TempDir;

use crate::support::{build_policy, engine, sandbox, session, workspace};

fn count(finished: &FinishedCommand, wanted: impl Fn(&DeniedAttempt) -> bool) -> u64 {
    let denials = finished.receipt.denials.iter();
    let fitting = denials.filter(|denial| wanted(&denial.attempt));
    fitting.map(|denial| denial.count).sum()
}

fn to(host: &str, port: u16) -> impl Fn(&DeniedAttempt) -> bool {
    move |attempt| matches!(attempt, DeniedAttempt::Connect { host: h, port: p } if h == host && *p == port)
}

#[test]
fn a_blocked_connection_is_recorded_with_its_destination_and_a_local_one_is_not() {
    let (session, _workspace) = session();
    let run = |line: &str| session.run(&SandboxCommand::shell(line)).unwrap();
    let outside = "bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'";
    let twice = run(&format!("{outside}; {outside}; true"));
    assert_eq!(count(&twice, to("192.0.2.1", 80)), 2);
    // Seen once is counted once.
    assert_eq!(
        count(&twice, |attempt| *attempt == DeniedAttempt::Network),
        0
    );
    // Refused by the port, not by the sandbox.
    let local = run("bash -c 'exec 3<>/dev/tcp/127.0.0.1/9'");
    assert_eq!(local.receipt.denials, []);
    let six = run("bash -c 'exec 3<>/dev/tcp/2001:db8::1/80'");
    assert_eq!(count(&six, to("2001:db8::1", 80)), 1);
    assert_eq!(run("true").receipt.denials, []);
}

#[test]
fn a_message_without_a_connection_is_counted_by_the_kernel() {
    let (session, _workspace) = session();
    let send = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                try: s.sendto(b'x', ('192.0.2.1', 53))\nexcept OSError: pass";
    let finished = session
        .run(&SandboxCommand::new("/usr/bin/python3").arguments(["-c", send]))
        .unwrap();
    assert_eq!(
        count(&finished, |attempt| *attempt == DeniedAttempt::Network),
        1
    );
    // What was counted once is not counted again.
    let after = session.run(&SandboxCommand::shell("true")).unwrap();
    assert_eq!(after.receipt.denials, []);
}

fn watching(
    policy: impl FnOnce(&mut lula_sandbox::policy::SandboxPolicy),
) -> (SandboxSession, TempDir) {
    let workspace = workspace();
    let mut asked = build_policy();
    policy(&mut asked);
    let asked = sandbox(asked, &workspace).watch_paths();
    (engine().open(&asked).unwrap(), workspace)
}

/// What was denied beside the C library's own reading of names of languages, which some systems keep
/// where no sandbox looks.
fn all(finished: &FinishedCommand) -> Vec<&SandboxDenial> {
    let denials = finished.receipt.denials.iter();
    let of_library = |denial: &&SandboxDenial| format!("{:?}", denial.attempt).contains("/locale");
    denials.filter(|denial| !of_library(denial)).collect()
}

fn denied<'a>(finished: &'a FinishedCommand, wanted: &DeniedAttempt) -> &'a SandboxDenial {
    let mut denials = finished.receipt.denials.iter();
    let found = denials.find(|denial| denial.attempt == *wanted);
    assert!(
        found.is_some(),
        "{wanted:?}: {:?}",
        finished.receipt.denials
    );
    found.unwrap()
}

#[test]
fn a_hidden_path_is_named_with_the_grant_that_would_show_it() {
    let secret = workspace();
    let file = secret.path().join("key");
    std::fs::write(&file, "secret").unwrap();
    let path = file.to_str().unwrap().to_owned();
    let (session, _workspace) = watching(|_| ());
    let line = format!("cat {path}; cat {path}; cat {path}-which-is-nowhere; cat /etc/hostname");
    let finished = session.run(&SandboxCommand::shell(line)).unwrap();
    let denial = denied(&finished, &DeniedAttempt::Read { path: path.clone() });
    assert_eq!(denial.count, 2);
    assert_eq!(denial.rule, "not in the sandbox");
    assert_eq!(denial.grant, Some(format!("paths.read = [{path:?}]")));
    // What is nowhere, and what is there, are no denials.
    assert_eq!(all(&finished).len(), 1, "{:?}", all(&finished));
}

#[test]
fn a_grant_that_was_named_is_enough() {
    let secret = workspace();
    let file = secret.path().join("key");
    std::fs::write(&file, "shown").unwrap();
    let path = file.to_str().unwrap().to_owned();
    let (session, _workspace) = watching(|policy| {
        policy.paths.read.insert(path.parse().unwrap());
    });
    let finished = session
        .run(&SandboxCommand::shell(format!("cat {path}")))
        .unwrap();
    assert_eq!(finished.stdout.text(), "shown");
    assert_eq!(all(&finished), [] as [&SandboxDenial; 0]);
}

#[test]
fn writing_where_nothing_can_be_written_is_named() {
    let (session, _workspace) = watching(|_| ());
    let line = "cd /usr; echo x > new; mkdir share/new; rm -f bin/env; echo x > /tmp/fine; \
                ln -s /anything/at/all /tmp/link; true";
    let finished = session.run(&SandboxCommand::shell(line)).unwrap();
    for (path, granted) in [
        ("/usr/new", "/usr"),
        ("/usr/share/new", "/usr/share"),
        ("/usr/bin/env", "/usr/bin/env"),
    ] {
        let wanted = DeniedAttempt::Write {
            path: path.to_owned(),
        };
        let denial = denied(&finished, &wanted);
        assert_eq!(denial.rule, "read-only");
        assert_eq!(denial.grant, Some(format!("paths.write = [{granted:?}]")));
    }
    assert_eq!(all(&finished).len(), 3, "{:?}", all(&finished));
}

#[test]
fn a_masked_path_is_named_with_its_mask() {
    let (session, workspace) = {
        let workspace = workspace();
        let hidden = workspace.path().join("private");
        std::fs::create_dir(&hidden).unwrap();
        std::fs::write(hidden.join("note"), "x").unwrap();
        let mut policy = build_policy();
        let mask = hidden.to_str().unwrap().parse().unwrap();
        policy.paths.mask.insert(mask);
        let asked = sandbox(policy, &workspace).watch_paths();
        (engine().open(&asked).unwrap(), workspace)
    };
    let finished = session
        .run(&SandboxCommand::shell(
            "cat private/note; rm -f never-there",
        ))
        .unwrap();
    let path = workspace.path().join("private/note");
    let denial = denied(
        &finished,
        &DeniedAttempt::Read {
            path: path.to_str().unwrap().to_owned(),
        },
    );
    assert_eq!(denial.rule, "paths.mask");
    assert_eq!(all(&finished).len(), 1, "{:?}", all(&finished));
}

#[test]
fn what_landlock_refuses_is_named_too() {
    let workspace = workspace();
    let mut policy = build_policy();
    policy.min_tier = IsolationTier::Landlock;
    let asked = Sandbox::new(policy, workspace.path())
        .tier(IsolationTier::Landlock)
        .toolchains(HostToolchains::none())
        .watch_paths();
    let session = engine().open(&asked).unwrap();
    let finished = session
        .run(&SandboxCommand::shell(
            "cat /etc/shadow; echo x > /usr/new; echo in > file; cat file",
        ))
        .unwrap();
    assert_eq!(finished.stdout.text(), "in\n");
    let read = DeniedAttempt::Read {
        path: "/etc/shadow".to_owned(),
    };
    assert_eq!(denied(&finished, &read).rule, "landlock");
    let write = DeniedAttempt::Write {
        path: "/usr/new".to_owned(),
    };
    let grant = denied(&finished, &write).grant.as_deref();
    assert_eq!(grant, Some("paths.write = [\"/usr\"]"));
}

#[test]
fn a_receipt_says_whether_paths_were_watched() {
    let says = |session: &SandboxSession| {
        let finished = session.run(&SandboxCommand::shell("true")).unwrap();
        let unseen = finished.receipt.not_observed;
        unseen.iter().any(|what| what.starts_with("paths"))
    };
    assert!(says(&session().0));
    assert!(!says(&watching(|_| ()).0));
}
