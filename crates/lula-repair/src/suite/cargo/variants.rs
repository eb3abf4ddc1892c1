//! Many candidates of one build, run one after the other by a single command.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::build::TestBinary;
use super::schemata::VARIANT;
use crate::ground::{ForkCommand, ProjectFork};
use crate::report::TestCase;
use crate::results;
use crate::suite::{RepairGoal, SuiteError, nonce};

/// Starting a command in a sandbox costs more than running a test: the shell starts them all. It
/// stops at the first one that leaves a change in the project, so that the next one meets none.
/// Tests that run for ever are ended by the processor time that they burn, which a busy machine
/// does not stretch.
const SCRIPT: &str = r#"
marker=$1 patience=$2 burn=$3 seconds=$4 variants=$5
shift 5
root=$(pwd)
end=$(( $(date +%s) + seconds ))
stamp=$(mktemp) || exit 1
sleep 0.02
ulimit -v 8388608 2>/dev/null
run() {
    while [ $# -ge 4 ]; do
        out=$(cd "$2" && ulimit -t "$burn" && LULA_VARIANT=$v timeout -s KILL "$patience" "$3" --exact $4 2>/dev/null </dev/null | grep '^test ')
        printf '%s\n' "$out" | sed "s|^|$marker$v $1 |"
        case $out in *FAILED*) return ;; esac
        shift 4
    done
}
for v in $variants; do
    [ "$(date +%s)" -lt "$end" ] || break
    run "$@"
    echo "$marker$v end"
    if [ -n "$(find "$root" -path "$root/target" -prune -o -newer "$stamp" -print 2>/dev/null | head -n 1)" ]; then
        break
    fi
done
rm -f "$stamp"
"#;

/// The tests of each candidate that was run, by its number.
pub(super) fn run_variants(
    fork: &mut dyn ProjectFork,
    goal: &RepairGoal,
    binaries: &[TestBinary],
    variants: &[usize],
    burn: Duration,
    seconds: Duration,
) -> Result<BTreeMap<usize, Vec<TestCase>>, SuiteError> {
    let marker = format!("lula-variant-{} ", nonce());
    let patience = goal
        .patience
        .clamp(Duration::from_secs(2), Duration::from_secs(4));
    let numbers: Vec<String> = variants
        .iter()
        .map(|index| (index + 1).to_string())
        .collect();
    let mut argv: Vec<String> = ["sh", "-c", SCRIPT, "sh", &marker]
        .map(str::to_owned)
        .to_vec();
    argv.push(patience.as_secs().to_string());
    argv.push(burn.as_secs().max(1).to_string());
    argv.push(seconds.as_secs().max(1).to_string());
    argv.push(numbers.join(" "));
    for (index, binary) in binaries.iter().enumerate() {
        let names: Vec<&str> = goal
            .failing
            .iter()
            .filter_map(|id| binary.name_of(id))
            .collect();
        if !names.is_empty() {
            argv.extend([
                index.to_string(),
                binary.folder().to_owned(),
                binary.path().to_owned(),
                names.join(" "),
            ]);
        }
    }
    let command =
        ForkCommand::new(argv, goal.at_most(seconds + patience * 2)).env("RUST_BACKTRACE", "0");
    debug_assert!(SCRIPT.contains(VARIANT));
    let ran = fork.run(&command)?;
    Ok(read(&ran.out(), &marker, binaries))
}

/// What the script told of each candidate that came to its end.
fn read(out: &str, marker: &str, binaries: &[TestBinary]) -> BTreeMap<usize, Vec<TestCase>> {
    let mut found: BTreeMap<usize, Vec<TestCase>> = BTreeMap::new();
    let mut ended: HashSet<usize> = HashSet::new();
    for line in out.lines().filter_map(|line| line.strip_prefix(marker)) {
        let Some((number, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some(index) = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1)) else {
            continue;
        };
        if rest == "end" {
            ended.insert(index);
            found.entry(index).or_default();
        } else if let Some((binary, test)) = rest.split_once(' ')
            && let Some(binary) = binary.parse().ok().and_then(|at: usize| binaries.get(at))
        {
            let tests = results::libtest(test).into_iter().map(|mut test| {
                test.id = binary.id(&test.id);
                test
            });
            found.entry(index).or_default().extend(tests);
        }
    }
    found.retain(|index, _| ended.contains(index));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_candidates_that_came_to_their_end_are_told() {
        let binaries = [TestBinary::named("tests/depot")];
        let out =
            "m 3 0 test a ... ok\nm 3 0 test b ... FAILED\nm 3 end\nnoise\nm 4 0 test a ... ok\n";
        let found = read(out, "m ", &binaries);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&2]);
        let ids: Vec<&str> = found[&2].iter().map(|test| test.id.as_str()).collect();
        assert_eq!(ids, ["tests/depot a", "tests/depot b"]);
    }
}
