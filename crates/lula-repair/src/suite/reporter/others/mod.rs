//! Runners that write their results themselves, once they are told where: by a variable of theirs, by
//! what their interpreter loads first, or by a program of ours that stands before them on the PATH.

use std::collections::BTreeMap;

use crate::report::{TestCase, TestOutcome};
use crate::results;

/// The files of these reporters, with what each holds.
pub(super) const FILES: [(&str, &str); 5] = [
    ("lula_shim.sh", include_str!("shim.sh")),
    ("lula_gradle.gradle", include_str!("gradle.gradle")),
    ("python/sitecustomize.py", include_str!("unittest.py")),
    ("lula_rspec.rb", include_str!("rspec.rb")),
    ("lula_phpunit.php", include_str!("phpunit.php")),
];

/// Makes folders before files are written to them.
pub(super) const BEFORE: &str = "mkdir bin python php out; : > mark";

/// Puts our program before those that are there, and tells PHP what to load first.
pub(super) const AFTER: &str = "chmod +x lula_shim.sh; for p in go cargo ctest deno gradle java node; do if command -v $p > /dev/null; then ln -s ../lula_shim.sh bin/$p; fi; done; printf 'auto_prepend_file=%s/lula_phpunit.php\\n' \"$d\" > php/lula.ini";

/// What the environment of a command has for them beside that of the other reporters.
pub(super) fn environment(
    folder: &str,
    path: &str,
    given: &dyn Fn(&str) -> String,
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut set = |name: &str, value: String| all.push((name.to_owned(), value));
    let spec = given("SPEC_OPTS");
    let ini = given("PHP_INI_SCAN_DIR");
    set("PATH", format!("{folder}/bin:{path}"));
    set(
        "SPEC_OPTS",
        format!("--require {folder}/lula_rspec.rb {spec}")
            .trim()
            .to_owned(),
    );
    set("LULA_SPEC_OPTS", spec);
    // An empty place stands for those that PHP was built with.
    set("PHP_INI_SCAN_DIR", format!("{ini}:{folder}/php"));
    set("LULA_PHP_INI_SCAN_DIR", ini);
    let bun = given("BUN_OPTIONS");
    set(
        "BUN_OPTIONS",
        format!("{bun} --reporter=junit --reporter-outfile={folder}/out/bun-0.xml")
            .trim()
            .to_owned(),
    );
    all
}

/// What one runner wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReporterOutput {
    /// The program, as `go`.
    pub(crate) runner: String,
    text: String,
    /// With what it ended, where that was seen.
    exit: Option<i32>,
    /// Whether it was seen to begin, and then must be seen to end.
    begun: bool,
}

impl ReporterOutput {
    /// Whether it came to its end.
    pub(crate) fn finished(&self) -> bool {
        let whole = || {
            let end = self.text.trim_end();
            end.ends_with("</testsuites>") || end.ends_with("</testsuite>")
        };
        self.exit.is_some() || !self.begun && (self.runner == FOUND || whole())
    }

    /// Every test, by the name that the runner has for it.
    pub(crate) fn tests(&self) -> Vec<TestCase> {
        let mut tests = results::of_runner(&self.runner, &self.text);
        let fails =
            |test: &TestCase| matches!(test.outcome, TestOutcome::Failed | TestOutcome::Broken);
        // It saw something that is no test of its report.
        if !tests.is_empty() && self.exit.is_some_and(|code| code != 0) && !tests.iter().any(fails)
        {
            tests.push(TestCase {
                id: format!("{} itself", self.runner),
                outcome: TestOutcome::Broken,
                message: String::new(),
            });
        }
        tests
    }

    /// Whether its own word is enough: one that was seen to end said with what.
    pub(crate) fn sure(&self) -> bool {
        self.exit.is_some()
    }
}

/// What stands for the runner of reports that were found among the project's files.
const FOUND: &str = "found";

/// Where no runner told anything, reports that the run left in the project. In the folder of the run, with
/// the project's at `$top`.
pub(super) const GATHER: &str = r#"set -- out/*
if [ ! -e "$1" ] && [ ! -s report ]; then
  (cd "$top" && find . \( -name .git -o -name node_modules \) -prune -o -type f -name '*.xml' -newer "$OLDPWD/mark" -exec grep -l '<testcase' {} + > "$OLDPWD/xml" 2> /dev/null)
  if grep -qE '/(surefire-reports|failsafe-reports|test-results)/' xml; then grep -E '/(surefire-reports|failsafe-reports|test-results)/' xml > known; else cp xml known; fi
  sort known | while read -r file; do cat "$top/$file"; printf '\n'; done > out/found-0.xml
  [ -s out/found-0.xml ] || rm -f out/found-0.xml
fi"#;

/// What the runners of one command wrote, out of all files of its folder.
pub(super) fn written(files: &BTreeMap<String, String>) -> Vec<ReporterOutput> {
    let mut all: BTreeMap<&str, ReporterOutput> = BTreeMap::new();
    for (name, body) in files {
        let Some((stem, ending)) = name
            .strip_prefix("out/")
            .and_then(|name| name.rsplit_once('.'))
        else {
            continue;
        };
        let written = all.entry(stem).or_default();
        let runner = stem.rsplit_once('-').map_or(stem, |(runner, _)| runner);
        runner.clone_into(&mut written.runner);
        match ending {
            "begun" => written.begun = true,
            "exit" => written.exit = body.trim().parse().ok(),
            "xml" | "jsonl" => body.clone_into(&mut written.text),
            _ => {}
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<ReporterOutput> {
        let file = |(name, text): &(&str, &str)| (format!("out/{name}"), (*text).to_owned());
        written(&files.iter().map(file).collect())
    }

    #[test]
    fn a_runner_that_began_and_did_not_end_is_not_believed() {
        let all = of(&[
            ("go-7.begun", ""),
            ("go-7.jsonl", "{}\n"),
            ("bun-0.xml", "<testsuites>\n</testsuites>\n"),
        ]);
        assert_eq!(all.len(), 2);
        assert!(all[0].finished() && all[0].runner == "bun");
        assert!(!all[1].finished() && all[1].runner == "go");
        assert!(!of(&[("phpunit-3.xml", "<testsuites><testcase")])[0].finished());
        assert!(of(&[("go-7.begun", ""), ("go-7.exit", "1\n")])[0].finished());
    }

    #[test]
    fn what_a_runner_saw_outside_of_its_tests_is_not_lost() {
        let xml = "<testcase name=\"a\" classname=\"./a_test.ts\"/></testsuites>\n";
        let tests = of(&[("deno-7.exit", "1\n"), ("deno-7.xml", xml)])[0].tests();
        let told: Vec<_> = tests.iter().map(|t| (t.id.as_str(), t.outcome)).collect();
        assert_eq!(
            told,
            [
                ("a_test.ts > a", TestOutcome::Passed),
                ("deno itself", TestOutcome::Broken)
            ]
        );
    }
}
