//! The words of a command that starts pytest.

/// Options that take the next word.
const VALUED: &[&str] = &[
    "-k",
    "-m",
    "-c",
    "-p",
    "-o",
    "-n",
    "-W",
    "-r",
    "--rootdir",
    "--ignore",
    "--deselect",
    "--cov",
    "--durations",
    "--maxfail",
    "--tb",
    "--junitxml",
    "--confcutdir",
    "--basetemp",
    "--timeout",
    "--import-mode",
    "--dist",
    "--ds",
];

/// Where pytest's own words begin; none where the command starts something else.
pub(super) fn own(argv: &[String]) -> Option<usize> {
    let name = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
    match argv.first().map(name)?.as_str() {
        "pytest" | "py.test" => Some(1),
        python if python.starts_with("python") => argv
            .windows(2)
            .position(|pair| pair[0] == "-m" && pair[1] == "pytest")
            .map(|at| at + 2),
        _ => None,
    }
}

/// The command without the files and tests that it names: options alone.
pub(super) fn without_targets(argv: &[String], is_target: &dyn Fn(&str) -> bool) -> Vec<String> {
    let start = own(argv).unwrap_or(argv.len());
    let mut kept = argv[..start].to_vec();
    let mut valued = false;
    for word in &argv[start..] {
        let target = !valued && !word.starts_with('-') && is_target(word);
        valued = VALUED.contains(&word.as_str());
        // What stops at the first failure does not tell what fails.
        if !target && !matches!(word.as_str(), "-x" | "--exitfirst" | "--lf" | "--ff") {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_their_values_and_targets_go() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let target = |word: &str| word.contains('/');
        assert_eq!(
            without_targets(&words("python3 -m pytest -q -k a/b tests/x.py::t"), &target),
            words("python3 -m pytest -q -k a/b")
        );
        assert_eq!(own(&words("make test")), None);
    }
}
