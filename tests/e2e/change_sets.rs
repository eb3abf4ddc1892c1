//! `lula run --repo A --repo B`: one plan for several repositories, branches in all of them or in none

use std::path::{Path, PathBuf};
use std::time::Duration;

use lula_models::mock::MockModelServer;
use serde_json::{Value, json};

use crate::agents::{self, TASK, plan, project, scripted, sent, status, writes};
use crate::support::{Dice, LulaEnv, Models, Ran, begin, does, git, kill_child, logs};

const RULES: &str = r#"
[[rule]]
id = "test.guarded"
paths = ["guarded/**"]
decision = "ask"
reason = "it is guarded"
"#;

/// A second repository beside the world's own.
fn client(world: &LulaEnv) -> PathBuf {
    let tree = world.work().with_file_name("client");
    std::fs::create_dir(&tree).unwrap();
    git(&tree, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(tree.join("call.py"), "def call():\n    return 1\n").unwrap();
    git(&tree, &["add", "--all"]);
    git(&tree, &["commit", "--quiet", "--message=one"]);
    tree
}

fn name(tree: &Path) -> &str {
    tree.file_name().unwrap().to_str().unwrap()
}

/// A task in one of the repositories that writes one file.
fn job(id: &str, needs: &[&str], tree: &Path, file: &str) -> Value {
    json!({"id": id, "goal": format!("do the {id} thing"), "needs": needs, "files": [file],
        "done_when": [format!("test -f {file}")], "role": "coder", "repository": name(tree)})
}

fn models(world: &LulaEnv, tree: &Path, file: &str) -> MockModelServer {
    let work = world.work();
    let tasks = [
        job("serve", &[], &work, "serve.py"),
        job("call", &["serve"], tree, file),
    ];
    scripted(vec![
        plan(TASK, &tasks),
        // What was integrated in one repository is no part of the other.
        does(
            &agents::own("serve"),
            &[writes("serve.py", "def serve():\n    return 7\n")],
        ),
        does(&agents::own("call"), &[writes(file, "seven\n")]),
    ])
}

fn line(world: &LulaEnv, tree: &Path, server: &MockModelServer) -> Vec<String> {
    let own = world.work();
    let words = [
        "run", "--json", "--task", TASK, "--coder", "model", "--agents", "2",
    ];
    let mut line: Vec<String> = words.map(str::to_owned).to_vec();
    line.extend(["--model".to_owned(), Models::strong(server)]);
    for repository in [own.as_path(), tree] {
        line.extend(["--repo".to_owned(), repository.display().to_string()]);
    }
    line
}

fn run(world: &LulaEnv, tree: &Path, server: &MockModelServer) -> Ran {
    let line = line(world, tree, server);
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    world.run(&words)
}

fn branches(tree: &Path) -> Vec<String> {
    let format = ["branch", "--list", "--format=%(refname:short)", "lula/*"];
    git(tree, &format).lines().map(str::to_owned).collect()
}

#[test]
fn two_repositories_get_their_parts_of_one_change() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    let work = world.work();
    let heads = || [&work, &tree].map(|tree| git(tree, &["rev-parse", "HEAD"]));
    let before = heads();
    let server = models(&world, &tree, "seven.txt");
    let report = run(&world, &tree, &server).exits(0).json();
    for job in ["serve", "call"] {
        assert_eq!(status(&report, job), "integrated");
    }
    assert_eq!(branches(&work), branches(&tree), "one name for all of it");
    let [branch] = &branches(&tree)[..] else {
        panic!("{:?}", branches(&tree));
    };
    assert_eq!(
        git(&tree, &["show", &format!("{branch}:seven.txt")]),
        "seven"
    );
    let text = git(&work, &["show", &format!("{branch}:serve.py")]);
    assert!(text.contains("return 7"), "{text}");
    // Neither got anything of the other.
    let files = |tree: &Path| git(tree, &["ls-tree", "-r", "--name-only", branch]);
    assert!(!files(&tree).contains("serve.py"));
    assert!(!files(&work).contains("seven.txt"));
    assert_eq!(heads(), before);
    let run = report["run"].as_str().unwrap();
    assert_eq!(
        report["repositories"][0]["delivered"]["branch"],
        json!(branch)
    );
    for tree in [&work, &tree] {
        let message = git(tree, &["log", "-1", "--format=%B", branch]);
        assert!(message.contains(&format!("Lula-Run: {run}")), "{message}");
    }
    world.run(&["replay", run, "--verify"]).exits(0);
    let shown = world.run(&["show", run]).exits(0).stdout;
    assert!(shown.contains("client"), "{shown}");
    world.run(&["undo", run]).exits(0);
    assert!(branches(&work).is_empty() && branches(&tree).is_empty());
}

#[test]
fn where_one_repository_cannot_take_its_part_no_other_gets_one() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    // A branch of this name leaves no room for lula/….
    git(&tree, &["branch", "lula"]);
    let server = models(&world, &tree, "seven.txt");
    let report = run(&world, &tree, &server).exits(1).json();
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.contains("not delivered"), "{summary}");
    assert!(branches(&world.work()).is_empty());
    assert_eq!(report["delivered"], Value::Null);
    assert_eq!(report["repositories"][0]["delivered"], Value::Null);
}

#[test]
fn what_a_rule_asks_about_in_one_repository_holds_the_others_until_people_agree() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    let rules = world.home().join(".config/lula/rules.toml");
    std::fs::create_dir_all(rules.parent().unwrap()).unwrap();
    std::fs::write(rules, RULES).unwrap();
    let own = world.work();
    // Written in a way that no rule about commands understands: only the delivery is asked about.
    let command = json!({"command": "python3 -c \"import os; os.mkdir('gu' + 'arded'); open('gu' + 'arded/a.txt', 'w').write('x')\""});
    let server = scripted(vec![
        plan(
            TASK,
            &[
                job("serve", &[], &own, "serve.py"),
                job("call", &[], &tree, "guarded/a.txt"),
            ],
        ),
        does(
            &agents::own("serve"),
            &[writes("serve.py", "def serve():\n    return 7\n")],
        ),
        does(&agents::own("call"), &[("run", command)]),
    ]);
    let report = run(&world, &tree, &server).exits(3).json();
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("it is guarded"),
        "{report}"
    );
    assert!(branches(&own).is_empty() && branches(&tree).is_empty());
    let asked = world.run(&["approvals", "--json"]).exits(0).json();
    let id = asked[0]["id"].as_str().unwrap().to_owned();
    let shown = world.run(&["diff", &id]).exits(0).stdout;
    // People see all of it.
    assert!(
        shown.contains("serve.py") && shown.contains("guarded/a.txt"),
        "{shown}"
    );
    world.run(&["approve", &id, "--yes"]).exits(0);
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(branches(&own).len(), 1);
    assert_eq!(branches(&tree).len(), 1);
}

#[test]
fn a_plan_that_names_no_repository_of_the_run_is_sent_back() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    let own = world.work();
    let stray = job("stray", &[], Path::new("/elsewhere"), "x.txt");
    let good = [
        job("serve", &[], &own, "serve.py"),
        job("call", &[], &tree, "seven.txt"),
    ];
    let server = scripted(vec![
        plan(TASK, &[stray]),
        plan("must be one of", &good),
        does(
            &agents::own("serve"),
            &[writes("serve.py", "def serve():\n    return 7\n")],
        ),
        does(&agents::own("call"), &[writes("seven.txt", "seven\n")]),
    ]);
    run(&world, &tree, &server).exits(0);
    assert_eq!(branches(&tree).len(), 1);
}

#[test]
fn several_repositories_need_agents_and_are_several() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    let (own, other) = (world.work(), tree.to_str().unwrap());
    let own = own.to_str().unwrap();
    let two = ["run", "--task", TASK, "--repo", own, "--repo"];
    world
        .run(&[&two[..], &[other]].concat())
        .exits(2)
        .says("--agents");
    world
        .run(&[&two[..], &[own, "--agents", "2"]].concat())
        .exits(2)
        .says("named twice");
    let worktree = [other, "--agents", "2", "--deliver", "worktree"];
    world
        .run(&[&two[..], &worktree].concat())
        .exits(2)
        .says("--deliver");
}

#[test]
fn undoing_takes_the_branches_of_all_repositories_back_or_of_none() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    let work = world.work();
    let server = models(&world, &tree, "seven.txt");
    let report = run(&world, &tree, &server).exits(0).json();
    let run = report["run"].as_str().unwrap();
    let branch = branches(&tree).pop().unwrap();
    // A person works on what arrived in one of them.
    git(&tree, &["checkout", "--quiet", &branch]);
    world
        .run(&["undo", run])
        .exits(1)
        .says("nothing was changed");
    assert_eq!(branches(&work).len(), 1, "the other one stays too");
    git(&tree, &["checkout", "--quiet", "main"]);
    // Cut off at any moment, all of it can be undone, and brought back.
    let commits = [&work, &tree].map(|tree| git(tree, &["rev-parse", &branch]));
    let mut dice = Dice(5);
    let mut kills = 0;
    for _ in 0..6 {
        let mut undoing = begin(&world, &["undo", run]);
        std::thread::sleep(Duration::from_micros(dice.roll(120_000)));
        kills += u32::from(kill_child(&mut undoing));
        let ran = world.run(&["undo", run]);
        let gone = [&work, &tree].map(|tree| branches(tree).is_empty());
        assert_eq!(gone, [true, true], "{}{}", ran.stdout, ran.stderr);
        for (tree, commit) in [&work, &tree].into_iter().zip(&commits) {
            let kept = format!("refs/lula/undone/{}", branch.rsplit('/').next().unwrap());
            assert_eq!(git(tree, &["rev-parse", &kept]), *commit);
            git(tree, &["branch", &branch, commit]);
            git(tree, &["update-ref", "-d", &kept]);
        }
    }
    assert!(kills > 0, "every undo ended before its kill");
}

/// The client with files of its own for the coder that works there.
fn particular(world: &LulaEnv) -> PathBuf {
    let tree = client(world);
    let guideline = "[[guideline]]\nid = \"client-small\"\nphase = \"change\"\ntext = \"Changes are \
                     small.\"\ncheck = \"small_diff\"\nlimit = 1\n";
    std::fs::create_dir(tree.join(".lula")).unwrap();
    let role = "[role.coder]\nnote = \"Speak kindly to the server.\"\n";
    std::fs::write(tree.join(".lula/roles.toml"), role).unwrap();
    std::fs::write(tree.join(".lula-guidelines.toml"), guideline).unwrap();
    git(&tree, &["add", "--all"]);
    git(&tree, &["commit", "--quiet", "--message=two"]);
    tree
}

#[test]
fn each_repository_has_its_own_roles_and_guidelines() {
    let world = LulaEnv::new();
    project(&world);
    let tree = particular(&world);
    let server = models(&world, &tree, "seven.txt");
    let report = run(&world, &tree, &server).exits(0).json();
    let arrived = server.arrived();
    let told = |goal: &str| {
        let bodies = arrived.iter().map(|one| String::from_utf8_lossy(&one.body));
        let mut about = bodies.filter(|body| body.contains(goal));
        about.any(|body| body.contains("Speak kindly"))
    };
    assert!(told(&sent("call")));
    assert!(!told(&sent("serve")), "that is another's repository");
    let rated = |job: &str| {
        let begun = format!("{job} begins as ");
        let logs = logs(&world);
        let mut texts = logs.iter().filter_map(|line| line["text"].as_str());
        let run = texts.find_map(|text| text.split(&begun).nth(1)).unwrap();
        let run = run.split(';').next().unwrap();
        let shown = world.run(&["show", run, "--json"]);
        shown.exits(0).json()["ratings"].to_string()
    };
    assert!(rated("call").contains("client-small"));
    assert!(!rated("serve").contains("client-small"));
    assert!(report["ratings"].to_string().contains("client-small"));
}

#[test]
fn a_command_must_succeed_in_every_repository_or_in_the_one_it_names() {
    let world = LulaEnv::new();
    project(&world);
    let tree = client(&world);
    let held = |accept: &str| {
        let server = models(&world, &tree, "seven.txt");
        let mut line = line(&world, &tree, &server);
        line.extend(["--max-loops", "0", "--accept", accept].map(str::to_owned));
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        world.run(&words)
    };
    held("client: test -f seven.txt").exits(0);
    let wrong = held("client: test -f serve.py").exits(1).json();
    let summary = wrong["summary"].as_str().unwrap();
    assert!(
        summary.contains("client") && summary.contains("test -f serve.py"),
        "{summary}"
    );
    assert_eq!(branches(&tree).len(), 1, "only what was right arrived");
    // Without a name it is for both, and only one of them has the file.
    held("test -f serve.py").exits(1);
}
