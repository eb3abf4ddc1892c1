use super::*;
use crate::policy::Profile;

fn plan(policy: &SandboxPolicy, path: &Path) -> Result<MountPlan, SandboxError> {
    let workspace = MountedWorkspace {
        path,
        writable: true,
        overlaid: false,
    };
    PolicySurroundings::look(policy, &HostToolchains::none(), &SystemDirectories::look()?)?
        .plan(workspace)
}

#[test]
fn below_goes_by_component() {
    assert!(is_below("/tmp/x", "/tmp"));
    assert!(is_below("/tmp", "/tmp"));
    assert!(!is_below("/tmpx", "/tmp"));
    assert!(is_below("/x", "/"));
}

#[test]
fn a_workspace_is_writable_at_its_own_path_and_nothing_else_of_the_host_is() {
    let workspace = tempfile::tempdir().unwrap();
    let real = workspace.path().canonicalize().unwrap();
    let plan = plan(&Profile::Strict.policy(), workspace.path()).unwrap();
    assert_eq!(plan.writable(), [real.to_str().unwrap()]);
    let home = std::env::var("HOME").unwrap_or_default();
    assert!(!plan.read_only().contains(&home));
    assert!(plan.read_only().contains(&"/usr".to_owned()));
}

#[test]
fn passwords_and_host_names_are_not_shown() {
    let workspace = tempfile::tempdir().unwrap();
    let plan = plan(&Profile::Build.policy(), workspace.path()).unwrap();
    for hidden in [
        "/etc/shadow",
        "/etc",
        "/root",
        "/home",
        "/var",
        "/run",
        "/sys",
    ] {
        assert!(!plan.read_only().contains(&hidden.to_owned()), "{hidden}");
    }
    assert!(
        plan.root
            .files
            .iter()
            .any(|(path, _)| path == "/etc/passwd")
    );
}

#[test]
fn a_granted_path_that_is_not_there_is_said_to_be_missing() {
    let workspace = tempfile::tempdir().unwrap();
    let mut policy = Profile::Strict.policy();
    policy.paths.read.insert("/nowhere/at/all".parse().unwrap());
    let plan = plan(&policy, workspace.path()).unwrap();
    assert_eq!(plan.held_back.len(), 1);
}

#[test]
fn a_workspace_that_is_not_there_is_refused() {
    let refused = plan(&Profile::Strict.policy(), Path::new("/nowhere/at/all"));
    assert!(matches!(refused, Err(SandboxError::Path { .. })));
}
