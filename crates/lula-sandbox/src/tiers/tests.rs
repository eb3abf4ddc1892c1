use super::*;

fn with(path: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
    move |asked| (asked == path).then(|| format!("{value}\n"))
}

#[test]
fn the_exact_knob_is_named() {
    let cases: [(&str, &str, u32, &str); 4] = [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            13,
            "apparmor_restrict",
        ),
        (
            "kernel/unprivileged_userns_clone",
            "0",
            1,
            "unprivileged_userns_clone=1",
        ),
        ("user/max_user_namespaces", "0", 28, "max_user_namespaces"),
        ("nothing", "", 1, "seccomp profile"),
    ];
    for (path, value, errno, expected) in cases {
        let remedy = remedy_from(SetupStage::UserNamespace, errno, &with(path, value)).unwrap();
        assert!(remedy.contains(expected), "{remedy}");
    }
}

#[test]
fn a_masked_proc_is_recognised_by_the_step_that_failed() {
    let remedy = remedy_from(SetupStage::Proc, 1, &|_| None).unwrap();
    assert!(remedy.contains("masked"));
    assert_eq!(remedy_from(SetupStage::Proc, 12, &|_| None), None);
}

#[test]
fn the_weakest_tier_is_never_chosen() {
    assert!(!CHOSEN.contains(&IsolationTier::Process));
    assert!(CHOSEN.is_sorted_by(|stronger, weaker| stronger > weaker));
}
