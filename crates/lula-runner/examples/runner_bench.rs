//! How many calls a runner answers: `cargo xtask bench runner`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark says no by panicking and prints what it is run for"
)]
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use lula_protocol::{EffectId, ProtocolVersion, RunId, ToolAction, ToolCall, WorkspaceId};
use lula_runner_api::ToolCallBatchMode;
use lula_runner_api::client::{RunnerClient, RunnerCommand};
use serde_json::json;

const CALLS: usize = 2000;
const BATCHES: usize = 60;
const EFFECTS: usize = 200;

struct Caller {
    client: RunnerClient,
    workspace: WorkspaceId,
    run: RunId,
    next: u64,
}

impl Caller {
    #[allow(clippy::needless_pass_by_value)] // reads better where it is called
    fn call(&mut self, action: serde_json::Value) -> ToolCall {
        let action: ToolAction = serde_json::from_value(action).unwrap();
        self.next += 1;
        let mut random = [0; 10];
        random[2..].copy_from_slice(&self.next.to_be_bytes());
        ToolCall {
            protocol: ProtocolVersion,
            effect: EffectId::from_parts(1, random),
            epoch: 1,
            run: self.run.clone(),
            workspace: self.workspace.clone(),
            action,
        }
    }
}

fn read() -> serde_json::Value {
    json!({"tool": "read_file", "input": {"path": "src/file.py"}})
}

/// Calls for each second, the median and the 99th percentile in microseconds.
fn report(name: &str, calls: usize, mut times: Vec<Duration>) -> serde_json::Value {
    let total: Duration = times.iter().sum();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    #[allow(clippy::cast_precision_loss)] // a few thousand
    let rate = calls as f64 / total.as_secs_f64();
    json!({
        "name": name,
        "calls": calls,
        "calls_per_second": rate.round(),
        "p50_us": u64::try_from(at(50)).unwrap(),
        "p99_us": u64::try_from(at(99)).unwrap(),
    })
}

async fn race(caller: &mut Caller) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let call = caller.call(read());
        let begun = Instant::now();
        caller.client.execute(&call).await.unwrap();
        times.push(begun.elapsed());
    }
    out.push(report("read_file", CALLS, times));
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        let calls = (0..50).map(|_| caller.call(read())).collect();
        let begun = Instant::now();
        caller
            .client
            .batch(calls, ToolCallBatchMode::Ordered)
            .await
            .unwrap();
        times.push(begun.elapsed());
    }
    out.push(report("batch_execute of 50 read_file", BATCHES * 50, times));
    for (name, action) in [
        (
            "write_file",
            json!({"tool": "write_file", "input": {"path": "out.txt", "content": "x\n"}}),
        ),
        (
            "exec /bin/true",
            json!({"tool": "exec", "input": {"argv": ["/bin/true"]}}),
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..EFFECTS {
            let call = caller.call(action.clone());
            let begun = Instant::now();
            caller.client.execute(&call).await.unwrap();
            times.push(begun.elapsed());
        }
        out.push(report(name, EFFECTS, times));
    }
    out
}

fn main() {
    let program = std::env::args_os().nth(1).unwrap();
    let json = std::env::args().any(|argument| argument == "--json");
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("project");
    std::fs::create_dir_all(root.join("src")).unwrap();
    let text = "def f(x):\n    return x + 1\n\n\n".repeat(100);
    std::fs::write(root.join("src/file.py"), text).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let results = runtime.block_on(async {
        let spawn = RunnerCommand::new(program)
            .pass_on(lula_sandbox::HostToolchains::variables())
            .root(&root)
            .state(place.path().join("state"));
        let spawned = spawn.start().await.unwrap();
        let client = spawned.client().clone();
        let workspace = client
            .open(root.to_str().unwrap(), "bench")
            .await
            .unwrap()
            .id;
        let mut caller = Caller {
            client,
            workspace,
            run: RunId::from_parts(1, [1; 10]),
            next: 0,
        };
        let results = race(&mut caller).await;
        spawned.shut_down().await.unwrap();
        results
    });
    if json {
        println!("{}", serde_json::to_string_pretty(&results).unwrap());
        return;
    }
    println!(
        "{:<32} {:>8} {:>10} {:>9} {:>9}",
        "", "calls", "calls/s", "p50 µs", "p99 µs"
    );
    for result in results {
        println!(
            "{:<32} {:>8} {:>10} {:>9} {:>9}",
            result["name"].as_str().unwrap(),
            result["calls"],
            result["calls_per_second"],
            result["p50_us"],
            result["p99_us"]
        );
    }
}
