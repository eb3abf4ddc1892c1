//! Whom a signal is for: another process of the sandbox, or one outside.
//!
//! Where neither a pid namespace nor Landlock keeps signals inside, the runner is asked before each one goes.
//! What is named is named by number, so it cannot change under the eyes of who judges. A number could only
//! come to mean another process if the one it means ended meanwhile and the kernel went through all the others
//! first.

use crate::seccomp::{SeccompCall, SignalTarget, SyscallAbi};

/// What the kernel tells of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessFamily {
    parent: i32,
    group: i32,
}

/// No tree of processes is deeper.
const DEEPEST: usize = 100_000;

/// What the signal that `caller` is about to send is for, in a sandbox whose first process is `first`.
pub(crate) fn target(abi: SyscallAbi, first: u32, caller: u32, call: &SeccompCall) -> SignalTarget {
    #[expect(clippy::cast_possible_truncation, reason = "as the kernel reads it")]
    let named = call.args[0] as i32;
    let by_group = abi.name_of(call.number) == Some("kill");
    let first = first.cast_signed();
    match named {
        1.. => process(first, named),
        0 if by_group => match family(caller.cast_signed()) {
            Some(own) => group(first, own.group),
            None => SignalTarget::Gone,
        },
        // Every process that there is.
        -1 => SignalTarget::Outside,
        i32::MIN..-1 if by_group => group(first, named.saturating_neg()),
        _ => SignalTarget::Gone,
    }
}

fn process(first: i32, pid: i32) -> SignalTarget {
    let mut at = pid;
    for _ in 0..DEEPEST {
        if at == first {
            return SignalTarget::Inside;
        }
        match family(at) {
            Some(family) if family.parent > 0 => at = family.parent,
            // Itself, or one of those above it, has just ended: what is left goes to the first process.
            None if at != pid => at = pid,
            None => return SignalTarget::Gone,
            Some(_) => return SignalTarget::Outside,
        }
    }
    SignalTarget::Outside
}

fn group(first: i32, group: i32) -> SignalTarget {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let members = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| family(*pid).is_some_and(|family| family.group == group));
    let mut found = SignalTarget::Gone;
    for member in members {
        match process(first, member) {
            SignalTarget::Outside => return SignalTarget::Outside,
            SignalTarget::Inside => found = SignalTarget::Inside,
            SignalTarget::Gone => {}
        }
    }
    found
}

fn family(pid: i32) -> Option<ProcessFamily> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The fourth and fifth field; the second may hold anything, parentheses included.
fn parse(stat: &str) -> Option<ProcessFamily> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    Some(ProcessFamily {
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, number: i32, first: u32) -> SignalTarget {
        let abi = SyscallAbi::native().unwrap();
        let call = SeccompCall {
            number: abi.number_of(name).unwrap(),
            args: [u64::from(number.cast_unsigned()), 0, 0, 0, 0, 0],
            ..SeccompCall::default()
        };
        target(abi, first, std::process::id(), &call)
    }

    #[test]
    fn children_are_inside_and_parents_are_not() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let number = child.id().cast_signed();
        for name in ["kill", "tkill", "tgkill", "rt_sigqueueinfo"] {
            assert_eq!(asked(name, number, own), SignalTarget::Inside, "{name}");
            assert_eq!(asked(name, number, child.id()), SignalTarget::Inside);
            assert_eq!(
                asked(name, own.cast_signed(), child.id()),
                SignalTarget::Outside
            );
            assert_eq!(asked(name, 1, own), SignalTarget::Outside);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(asked("kill", number, own), SignalTarget::Gone);
    }

    #[test]
    fn a_group_is_inside_only_whole() {
        use std::os::unix::process::CommandExt;
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").process_group(0).spawn().unwrap();
        let group = -child.id().cast_signed();
        assert_eq!(
            asked("kill", group, std::process::id()),
            SignalTarget::Inside
        );
        // The group of this process has others in it, and all is everyone.
        assert_eq!(asked("kill", 0, child.id()), SignalTarget::Outside);
        assert_eq!(asked("kill", -1, 1), SignalTarget::Outside);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_name_full_of_brackets_does_not_hide_the_parent() {
        let family = parse("7 (a) b) R) S 42 43 7").unwrap();
        assert_eq!((family.parent, family.group), (42, 43));
        assert_eq!(parse("7 nothing"), None);
    }
}
