//! `CTest`.

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    if !project.has("CMakeLists.txt") {
        return;
    }
    let declares = |path: &&String| {
        let text = project.text(path).to_ascii_lowercase();
        let text: String = text.split_whitespace().collect();
        text.contains("enable_testing(") || text.contains("include(ctest)")
    };
    let lists = project
        .files
        .iter()
        .filter(|path| path.rsplit('/').next() == Some("CMakeLists.txt"));
    let Some(list) = lists.take(100).find(declares) else {
        return;
    };
    // A folder that was configured before keeps its choices.
    let cache = project.files.iter().find_map(|path| {
        let folder = path.strip_suffix("/CMakeCache.txt")?;
        (!folder.contains('\'')).then_some(folder)
    });
    let folder = super::shell_words(&[cache.unwrap_or("build").to_owned()]);
    let line =
        format!("cmake -S . -B {folder} && cmake --build {folder} && ctest --test-dir {folder}");
    let reason = format!("{list} declares tests");
    out.push(found(
        TestFramework::Ctest,
        &["sh", "-c", &line],
        Vec::new(),
        reason,
    ));
}
