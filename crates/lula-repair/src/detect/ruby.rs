//! `RSpec`.

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    let specs = |path: &&String| path.ends_with("_spec.rb");
    let files: Vec<String> = project.files.iter().filter(specs).cloned().collect();
    if files.is_empty() {
        return;
    }
    let count = files.len();
    let (argv, reason): (&[&str], _) = if project.has("Gemfile") {
        (
            &["bundle", "exec", "rspec"],
            format!("Gemfile declares gems; {count} files of specs"),
        )
    } else {
        (&["rspec"], format!("{count} files of specs"))
    };
    out.push(found(TestFramework::Rspec, argv, files, reason));
}
