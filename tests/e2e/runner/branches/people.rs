//! What people see of integration branches, and archive.

use lula_runner_api::BranchWorkspaceStart;

use super::{merged, of, scene};
use crate::runner::Scene;

#[test]
fn a_person_sees_branches_and_archives_them_and_strangers_are_set_aside() {
    let mut scene = scene();
    let branch = scene.branch_in(&scene.tree());
    scene.agent(&of(&branch), &[], BranchWorkspaceStart::Branch);
    scene.puts("new.txt", "new\n");
    let made = scene.commit_step(&of(&branch), "t");
    merged(scene.merge(&of(&branch), "t", &made.commit, None));
    let stranger = scene.state().join("lines/strange");
    std::fs::create_dir_all(&stranger).unwrap();
    std::fs::write(stranger.join("work"), "somebody's").unwrap();
    let state = scene.state().display().to_string();
    let lula = |scene: &Scene, arguments: &[&str]| {
        let variables = [("LULA_STATE_DIR", state.as_str())];
        scene.world.run_with(&variables, arguments)
    };
    let run = scene.run.to_string();
    // An agent is at work there.
    lula(&scene, &["workspaces", "--archive", &run]).exits(6);
    scene.crash();
    let listed = lula(&scene, &["workspaces", "--branches", "--json"])
        .exits(0)
        .json();
    assert_eq!(listed["lines"][0]["integrated"], 1, "{listed}");
    assert_eq!(listed["quarantined"][0], "strange.0", "{listed}");
    let kept = scene.state().join("quarantine/strange.0/work");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "somebody's");
    lula(&scene, &["workspaces", "--archive", &run])
        .exits(0)
        .says("archived");
    let bundle = scene
        .state()
        .join("lines")
        .join(&branch.branch)
        .join("archive.bundle");
    assert!(bundle.is_file());
    let none = lula(&scene, &["workspaces", "--archive", "run_none"]);
    none.exits(2).says("has no integration branch");
}
