//! Plans that agents rewire, with edits that meet, over kill -9 of the driver and of its runner.

use lula_models::script::ScriptTurn;
use serde_json::{Value, json};

use super::{
    SEVEN, belongings, line, module, own, plan, project_with, runs, scripted, told, writes,
};
use crate::support::{BLOWS, Dice, LulaEnv, Models, Repo, acts, always, blows, does, events, git};

/// What everybody writes into beside a file of their own.
const SHARED: &str = "log.txt";

/// A plan drawn by lot: modules, some of which need others, some of which write into one file.
struct Drawn {
    tasks: Vec<Value>,
    shared: Vec<bool>,
}

fn drawn(dice: &mut Dice) -> Drawn {
    let count = 3 + dice.roll(2);
    let (mut tasks, mut shared) = (Vec::new(), Vec::new());
    for number in 0..count {
        let needs: Vec<String> = (0..number)
            .filter(|_| dice.roll(3) == 0)
            .map(|other| format!("m{other}"))
            .collect();
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let mut task = module(&format!("m{number}"), &needs);
        let mut files = vec![format!("m{number}.py")];
        let writes_there = dice.roll(2) == 0;
        if writes_there {
            // By a pattern: those who may write it wait for each other.
            files.push("log.*".to_owned());
        }
        if number == 0 {
            // Room for what it will want to have done by another.
            files.push("extra.py".to_owned());
        }
        task["files"] = json!(files);
        tasks.push(task);
        shared.push(writes_there);
    }
    Drawn { tasks, shared }
}

/// Models that answer the same to the same, however often they are asked. The first agent wants one
/// task more before it does its own.
fn turns(drawn: &Drawn) -> Vec<ScriptTurn> {
    let acts_of = |number: usize| {
        let name = format!("m{number}");
        let mut acts = vec![writes(&format!("{name}.py"), SEVEN)];
        if drawn.shared[number] {
            // Done twice, or half, it shows.
            let line = format!("echo {name} >> {SHARED}; sleep 0.1; echo {name} >> {SHARED}");
            acts.push(runs(&line));
        }
        acts
    };
    let extra = json!({"add": [module("extra", &[])]});
    let mut turns = vec![
        always(plan("Roles: ", &drawn.tasks)),
        always(does("Accepted.", &acts_of(0))),
        always(does(&own("extra"), &[writes("extra.py", SEVEN)])),
    ];
    for number in (1..drawn.tasks.len()).rev() {
        turns.push(always(does(&own(&format!("m{number}")), &acts_of(number))));
    }
    turns.push(always(acts(&own("m0"), &[("propose", extra)])));
    turns
}

/// What a run came to, without what differs between two runs of the same plan: who was first.
fn outcome(world: &LulaEnv) -> Value {
    let [branch] = &Repo::of(world).branches()[..] else {
        panic!("{:?}", Repo::of(world).branches());
    };
    let work = world.work();
    let listed = git(&work, &["ls-tree", "-r", branch]);
    let files: Vec<&str> = listed
        .lines()
        .filter(|line| !line.ends_with(SHARED))
        .collect();
    let log = git(&work, &["show", &format!("{branch}:{SHARED}")]);
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    let jobs = shown["plan"]["jobs"].as_object().unwrap();
    let jobs: Vec<(&String, &Value)> = jobs.iter().map(|(id, job)| (id, &job["status"])).collect();
    json!({
        "files": files,
        "log": lines,
        "jobs": jobs,
        "version": shown["plan"]["version"],
        "verdict": shown["verdict"]["verdict"],
        "wished": told(world, "wants another plan").len(),
    })
}

/// So many kills in the suite; `LULA_PLAN_KILLS` makes it more.
#[test]
fn wherever_driver_and_runner_are_killed_a_plan_ends_the_same() {
    let kills = std::env::var("LULA_PLAN_KILLS").ok();
    let kills: u64 = kills.map_or(BLOWS, |text| text.parse().unwrap());
    let mut dice = Dice(kills);
    let mut struck = 0;
    let mut killed = 0;
    let mut early = 0;
    while struck < kills {
        let seed = dice.0;
        let drawn = drawn(&mut dice);
        let server = scripted(turns(&drawn));
        let model = Models::strong(&server);
        let line = line(&model, &[]);
        let fresh = || {
            let world = LulaEnv::new();
            project_with(&world, &[(SHARED, "begin\n")]);
            world
        };
        let calm = fresh();
        calm.run(&line).exits(0);
        let whole = events(&calm);
        let expected = outcome(&calm);
        assert_eq!(expected["wished"], 1, "{expected}");
        let asked = server.arrived().len();
        // Two runs of each plan are struck.
        for _ in 0..2 {
            let world = fresh();
            let before = belongings(&world);
            let untouched = || assert_eq!(belongings(&world), before, "seed {seed}");
            let blows = blows(&world, &line, (&mut dice, whole), untouched);
            struck += BLOWS;
            killed += blows.kills;
            early += blows.moments.iter().filter(|at| **at < whole).count();
            world.run(&blows.next).exits(0);
            untouched();
            assert_eq!(outcome(&world), expected, "seed {seed}");
            world.run(&["replay", "last", "--verify"]).exits(0);
            world.run(&["audit", "verify"]).exits(0);
            if struck >= kills {
                break;
            }
        }
        assert!(asked > 0);
    }
    println!("{struck} blows, {killed} kills, {early} blows before the end");
    assert!(killed > 0, "none of {struck} blows killed anything");
    assert!(early > 0, "every kill came too late");
}
