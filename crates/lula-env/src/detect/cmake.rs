//! C and C++, by `cmake`: a build folder.

use super::{EnvironmentPart, MissingTool, Surroundings};
use crate::project::{ProjectFiles, within};

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Option<EnvironmentPart> {
    let at = |name: &str| within(folder, name);
    let text = files.text(&at("CMakeLists.txt"))?;
    let mut part = EnvironmentPart {
        language: "C and C++",
        manager: "cmake",
        folder: folder.to_owned(),
        installed: vec![at("build")],
        ..EnvironmentPart::default()
    };
    part.reason(at("CMakeLists.txt"), "a project of CMake");
    if !around.machine.has("cmake") {
        part.missing.push(MissingTool {
            what: "no cmake on this machine".to_owned(),
            remedy: "install CMake and a compiler".to_owned(),
        });
        return Some(part);
    }
    if text.contains("FetchContent_Declare") {
        part.missing.push(MissingTool {
            what: "CMakeLists.txt fetches sources while it is configured".to_owned(),
            remedy: "name where from with `lula env build --net`".to_owned(),
        });
    }
    let mut options = String::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let about_tests = word.ends_with("BUILD_TESTS")
            || word.ends_with("BUILD_TESTING")
            || word.ends_with("ENABLE_TESTS");
        let option = format!("-D{word}=ON");
        if about_tests && text.contains(&format!("option({word}")) && !options.contains(&option) {
            part.reason(at("CMakeLists.txt"), format!("has an option {word}"));
            options.push(' ');
            options.push_str(&option);
        }
    }
    part.step(format!("cmake -B build -S .{options}"), "the build folder")
        .otherwise = vec![
        format!("cmake -B build -S .{options} -DCMAKE_POLICY_VERSION_MINIMUM=3.5"),
        "cmake -B build -S .".to_owned(),
    ];
    part.step("cmake --build build -j 2", "a build of the tests");
    Some(part)
}
