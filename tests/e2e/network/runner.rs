//! A runner whose commands have a network by name: what its operator granted, and nothing that a request says.

use std::os::unix::fs::PermissionsExt as _;

use lula_protocol::{
    EffectId, ProtocolVersion, RunId, ToolAction, ToolCall, ToolOutcome, ToolOutputDetails,
};
use lula_runner_api::client::RunnerCommand;
use serde_json::{Value, json};

use super::Stage;

#[test]
fn a_runners_commands_reach_what_its_operator_granted() {
    let stage = Stage::new();
    std::fs::write(stage.world.work().join("file"), "x").unwrap();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/e2e/network/stage.py"
    );
    let program = stage.directory.path().join("runner.sh");
    let user = if rustix::process::geteuid().is_root() {
        ""
    } else {
        "--user --map-root-user"
    };
    let text = format!(
        "#!/bin/sh\nexec unshare {user} --net --mount python3 {script} {} {} \"$@\"\n",
        stage.directory.path().display(),
        env!("CARGO_BIN_EXE_lula")
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let spawn = RunnerCommand::new(&program)
        .pass_on(lula_sandbox::HostToolchains::variables())
        .root(stage.world.work())
        .state(stage.world.home().join("state"))
        .variable("HOME", stage.world.home())
        .argument("--net")
        .argument("pkg.example.org");
    let runner = runtime.block_on(spawn.start()).unwrap();
    let client = runner.client();
    let work = stage.world.work();
    let opened = client.open(work.to_str().unwrap(), "a test");
    let workspace = runtime.block_on(opened).unwrap().id;
    let exec = |input: Value| {
        let action: ToolAction =
            serde_json::from_value(json!({"tool": "exec", "input": input})).unwrap();
        let call = ToolCall {
            protocol: ProtocolVersion,
            effect: EffectId::from_parts(1, crate::runner::fresh()),
            epoch: 1,
            run: RunId::from_parts(1, [7; 10]),
            workspace: workspace.clone(),
            action,
        };
        let result = runtime.block_on(client.execute(&call)).unwrap();
        match result.outcome {
            ToolOutcome::Done { output } => (output.details, result.receipt.unwrap()),
            other => panic!("{other:?}"),
        }
    };
    let line = "curl -sS --max-time 10 https://pkg.example.org/one; \
                curl -sS --max-time 10 https://other.example.org/two";
    // A variable that a caller sets is the command's own affair, and opens nothing.
    let variables = json!({"HTTPS_PROXY": "http://93.184.216.34:80"});
    for input in [
        json!({"argv": ["sh", "-c", line]}),
        json!({"argv": ["sh", "-c", format!("unset HTTPS_PROXY; {line}")], "env": variables}),
    ] {
        let (details, receipt) = exec(input);
        let Some(ToolOutputDetails::Command { status, stdout, .. }) = details else {
            panic!("{details:?}");
        };
        assert_eq!(
            (status, stdout.as_str()),
            (6, "GET /one says pkg.example.org\n")
        );
        assert!(receipt.layers.iter().any(|layer| layer.name() == "egress"));
        let grants: Vec<_> = receipt
            .denials
            .iter()
            .filter_map(|one| one.grant.clone())
            .collect();
        assert_eq!(grants, ["--net other.example.org:443"]);
    }
    assert_eq!(stage.heard().lines().count(), 2);
    // The workspace is how a person names its sandbox.
    let doors = stage.world.run_with(
        &[(
            "LULA_STATE_DIR",
            stage.world.home().join("state").to_str().unwrap(),
        )],
        &["grant", workspace.as_str(), "other.example.org"],
    );
    doors.exits(0);
    let (details, _) = exec(json!({"argv": ["sh", "-c", line]}));
    let Some(ToolOutputDetails::Command { status: 0, .. }) = details else {
        panic!("{details:?}");
    };
    runtime.block_on(runner.shut_down()).unwrap();
}

#[test]
fn the_tests_of_a_run_reach_what_was_granted() {
    let stage = Stage::new();
    let files = [
        ("calc.py", "def add(a, b):\n    return a - b\n"),
        (
            "test_calc.py",
            "import unittest, urllib.request\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    \
             def test_add(self):\n        urllib.request.urlopen('https://pkg.example.org/test').read()\n        \
             self.assertEqual(add(1, 2), 3)\n",
        ),
    ];
    for (name, text) in files {
        std::fs::write(stage.world.work().join(name), text).unwrap();
    }
    let commit =
        "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm first";
    let made = std::process::Command::new("sh")
        .args(["-c", commit])
        .current_dir(stage.world.work())
        .status()
        .unwrap();
    assert!(made.success());
    let task = [
        "run",
        "fix the failing tests",
        "--tests",
        "python3 -m unittest -q",
    ];
    let granted = [&task[..], &["--net", "pkg.example.org"]].concat();
    stage
        .run(&granted)
        .exits(0)
        .says("now passing: test_calc.T.test_add");
    assert!(stage.heard().contains("GET pkg.example.org /test"));
}
