//! The program and the declarative policy give the same answers.

use std::collections::BTreeMap;

use proptest::prelude::*;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::*;

const VARIANTS: [SeccompRules; 6] = [
    SeccompRules::NAMESPACE,
    SeccompRules::SHARED,
    SeccompRules {
        nested_userns: true,
        ..SeccompRules::NAMESPACE
    },
    SeccompRules {
        refusals: RefusedCallReply::Notify,
        ..SeccompRules::NAMESPACE
    },
    SeccompRules {
        refusals: RefusedCallReply::Notify,
        watched: WatchedCalls::ConnectionsAndPaths,
        ..SeccompRules::SHARED
    },
    SeccompRules {
        refusals: RefusedCallReply::Notify,
        signals: SignalRule::Inside { key: [7, 8, 9] },
        truncation: TruncationRule::Written,
        ..SeccompRules::SHARED
    },
];

/// Argument words that sit on and beside every edge the rules know.
const WORDS: [u64; 40] = [
    0,
    1,
    2,
    3,
    5,
    8,
    10,
    16,
    17,
    38,
    40,
    0x80,
    0x7f,
    0o100,
    0o755,
    0o4755,
    0o2755,
    0o20_755,
    0o60_755,
    0o100_644,
    0o20_000_000,
    0o20_200_102,
    0x5411,
    0x5412,
    0x541c,
    0x541d,
    0x5423,
    0x1_0000_5412,
    0xffff_ffff_0000_541c,
    0x1000_0000,
    0x0002_0000,
    0x7e02_0000,
    0x0100_0011,
    0x3d_0f00,
    0x8_0001,
    0x8_0802,
    0x1_0000_0001,
    0xffff_ffff,
    0x1_0000_0000,
    u64::MAX,
];

fn as_returned(rules: SeccompRules, verdict: SeccompVerdict) -> BpfReturn {
    match rules.refusals {
        RefusedCallReply::Notify if verdict.is_reported() => BpfReturn::Notify,
        // No listener is there to judge.
        RefusedCallReply::Errno if verdict == SeccompVerdict::Judge => {
            BpfReturn::Verdict(SeccompVerdict::EPERM)
        }
        _ => BpfReturn::Verdict(verdict),
    }
}

/// Every number up to 4096, the same with the x32 bit, and the far ends.
fn numbers() -> impl Iterator<Item = u32> {
    let far = [
        0x3fff_ffff,
        0x4000_0000,
        0x7fff_ffff,
        0x8000_0000,
        0xbfff_ffff,
        u32::MAX - 1,
        u32::MAX,
    ];
    (0..=4096)
        .chain((0..=4096).map(|number| number | 0x4000_0000))
        .chain(far)
}

/// Argument vectors in which each of the first four takes every word, beside several fillings.
fn arguments() -> Vec<[u64; 6]> {
    let mut all = Vec::new();
    for filling in [0, 1, 2, 0o100, 0o4755, 0x1_0000_0000, u64::MAX] {
        for position in 0..4 {
            for word in WORDS {
                let mut args = [filling; 6];
                args[position] = word;
                all.push(args);
            }
        }
    }
    all
}

#[test]
fn the_program_gives_the_declared_verdict_for_every_number_and_abi() {
    let arguments = arguments();
    for abi in SyscallAbi::ALL {
        for rules in VARIANTS {
            let programs = [
                SeccompProgram::compile(abi, &rules),
                SeccompProgram::compile_plain(abi, rules),
            ];
            for number in numbers() {
                let plain = abi
                    .name_of(number)
                    .is_none_or(|name| rules.rule(name).cases.is_empty());
                let arguments = if plain {
                    &arguments[..1]
                } else {
                    &arguments[..]
                };
                for args in arguments {
                    let call = SeccompCall {
                        arch: abi.audit_arch(),
                        number,
                        args: *args,
                    };
                    let declared = as_returned(rules, rules.decide(abi, &call));
                    for program in &programs {
                        let (returned, _) = program.run(&call).unwrap();
                        assert_eq!(returned, declared, "{abi:?} {rules:?} {call:x?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_foreign_instruction_set_is_told_that_nothing_exists() {
    const I386: u32 = 0x4000_0003;
    const ARM: u32 = 0x4000_0028;
    for abi in SyscallAbi::ALL {
        let program = SeccompProgram::compile(abi, &SeccompRules::NAMESPACE);
        let other = SyscallAbi::ALL
            .into_iter()
            .find(|other| *other != abi)
            .unwrap();
        for arch in [I386, ARM, other.audit_arch(), 0, u32::MAX] {
            for number in numbers() {
                let call = SeccompCall {
                    arch,
                    number,
                    args: [0; 6],
                };
                assert_eq!(
                    program.run(&call).unwrap().0,
                    BpfReturn::Verdict(SeccompVerdict::ENOSYS)
                );
                assert_eq!(
                    SeccompRules::NAMESPACE.decide(abi, &call),
                    SeccompVerdict::ENOSYS
                );
            }
        }
    }
}

#[test]
fn no_call_is_answered_by_killing() {
    for abi in SyscallAbi::ALL {
        for rules in VARIANTS {
            for instruction in SeccompProgram::compile(abi, &rules).instructions() {
                if instruction.code == bpf::RETURN {
                    assert!(!matches!(
                        BpfReturn::from(instruction.k),
                        BpfReturn::Other(_)
                    ));
                }
            }
        }
    }
}

#[test]
fn every_name_in_the_rules_is_a_call_of_some_abi() {
    let families = [
        families::NAMESPACES,
        families::KERNEL_IPC,
        families::REFUSED,
        families::MISSING,
    ];
    let source = include_str!("rules.rs");
    let arms = source
        .split("match name {")
        .nth(1)
        .unwrap()
        .split("_ => Rule")
        .next()
        .unwrap();
    let arms: Vec<_> = arms.split('"').skip(1).step_by(2).collect();
    assert!(arms.len() > 10);
    for name in families.into_iter().flatten().chain(&arms) {
        assert!(
            SyscallAbi::ALL
                .iter()
                .any(|abi| abi.number_of(name).is_some()),
            "{name}"
        );
    }
}

#[test]
fn names_and_numbers_find_each_other() {
    for abi in SyscallAbi::ALL {
        assert!(abi.calls().is_sorted_by(|a, b| a.1 < b.1));
        for (name, number) in abi.calls() {
            assert_eq!(abi.name_of(*number), Some(*name));
            assert_eq!(abi.number_of(name), Some(*number));
        }
    }
    assert_eq!(SyscallAbi::X86_64.number_of("execve"), Some(59));
    assert_eq!(SyscallAbi::Aarch64.number_of("execve"), Some(221));
    assert_eq!(SyscallAbi::Aarch64.number_of("open"), None);
}

#[test]
fn what_libraries_merely_try_is_never_sent_to_the_listener() {
    let rules = SeccompRules {
        refusals: RefusedCallReply::Notify,
        ..SeccompRules::NAMESPACE
    };
    let program = SeccompProgram::compile(SyscallAbi::X86_64, &rules);
    for (name, expected) in [
        ("clone3", BpfReturn::Verdict(SeccompVerdict::ENOSYS)),
        ("openat2", BpfReturn::Verdict(SeccompVerdict::ENOSYS)),
        ("read", BpfReturn::Verdict(SeccompVerdict::Allow)),
        ("bpf", BpfReturn::Notify),
    ] {
        let number = SyscallAbi::X86_64.number_of(name).unwrap();
        let call = SeccompCall {
            arch: SyscallAbi::X86_64.audit_arch(),
            number,
            args: [0; 6],
        };
        assert_eq!(program.run(&call).unwrap().0, expected, "{name}");
    }
}

/// The program is short and shallow; a change that makes it otherwise must be meant.
#[test]
fn the_program_stays_small() {
    for (abi, most, deepest) in [
        (SyscallAbi::X86_64, 199, 30),
        (SyscallAbi::Aarch64, 166, 30),
    ] {
        let program = SeccompProgram::compile(abi, &SeccompRules::NAMESPACE);
        let length = program.instructions().len();
        assert!(length <= most, "{abi:?}: {length} instructions");
        let mut whole_numbers_deepest = 0;
        for (name, number) in abi.calls() {
            for args in arguments() {
                let call = SeccompCall {
                    arch: abi.audit_arch(),
                    number: *number,
                    args,
                };
                let (_, steps) = program.run(&call).unwrap();
                assert!(steps <= deepest, "{abi:?} {name}: {steps}");
                if SeccompRules::NAMESPACE.rule(name).cases.is_empty() {
                    whole_numbers_deepest = steps.max(whole_numbers_deepest);
                }
            }
        }
        assert!(whole_numbers_deepest <= 12, "{whole_numbers_deepest}");
    }
}

#[test]
fn a_denial_names_the_call_and_the_grant() {
    let number = SyscallAbi::X86_64.number_of("unshare").unwrap();
    let call = SeccompCall {
        arch: 0,
        number,
        args: [0x1000_0000, 0, 0, 0, 0, 0],
    };
    let denial = refused(SyscallAbi::X86_64, &call);
    assert_eq!(denial.grant.as_deref(), Some("nested_userns = true"));
    assert_eq!(
        denial.attempt,
        lula_protocol::denial::DeniedAttempt::Syscall {
            name: "unshare(0x10000000)".to_owned()
        }
    );
}

#[test]
fn programs_the_kernel_would_refuse_are_refused() {
    let one = |code, k| {
        vec![BpfInstruction {
            code,
            jt: 0,
            jf: 0,
            k,
        }]
    };
    let run =
        |instructions| SeccompProgram::from_instructions(instructions).run(&SeccompCall::default());
    assert_eq!(run(vec![]), Err(BpfProgramError::Length(0)));
    assert_eq!(
        run(one(bpf::LOAD_WORD, 0)),
        Err(BpfProgramError::Escape { at: 0 })
    );
    assert_eq!(
        run(one(bpf::LOAD_WORD, 64)),
        Err(BpfProgramError::Load { at: 0, offset: 64 })
    );
    assert_eq!(
        run(one(bpf::LOAD_WORD, 2)),
        Err(BpfProgramError::Load { at: 0, offset: 2 })
    );
    assert_eq!(
        run(one(bpf::JUMP, u32::MAX)),
        Err(BpfProgramError::Escape { at: 0 })
    );
    assert_eq!(
        run(one(0x99, 0)),
        Err(BpfProgramError::Operation { at: 0, code: 0x99 })
    );
}

/// The same policy written for `seccompiler`, an independent compiler. It can only say "these calls
/// get this action, all others that one", so each verdict is asked by its own filter.
fn oracle(abi: SyscallAbi, rules: SeccompRules) -> Vec<(SeccompVerdict, SeccompProgram)> {
    let arch = match abi {
        SyscallAbi::X86_64 => seccompiler::TargetArch::x86_64,
        SyscallAbi::Aarch64 => seccompiler::TargetArch::aarch64,
    };
    let mut by_verdict: BTreeMap<u16, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
    for (name, number) in abi.calls() {
        let rule = rules.rule(name);
        // Unconditional verdicts only: first-match order has no counterpart there, so conditional
        // rules are compared by hand in `conditions_agree_with_seccompiler`.
        if rule.cases.is_empty() {
            let code = match rule.otherwise {
                SeccompVerdict::Allow | SeccompVerdict::Watch => 0,
                SeccompVerdict::Judge => 1,
                SeccompVerdict::Errno(errno) => errno,
            };
            by_verdict
                .entry(code)
                .or_default()
                .insert(i64::from(*number), vec![]);
        }
    }
    let build = |rules: BTreeMap<i64, Vec<SeccompRule>>| {
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Errno(9999),
            SeccompAction::Allow,
            arch,
        )
        .unwrap();
        let program: seccompiler::BpfProgram = filter.try_into().unwrap();
        let convert = |i: &seccompiler::sock_filter| BpfInstruction {
            code: i.code,
            jt: i.jt,
            jf: i.jf,
            k: i.k,
        };
        SeccompProgram::from_instructions(program.iter().map(convert).collect())
    };
    by_verdict
        .into_iter()
        .map(|(code, rules)| {
            let verdict = if code == 0 {
                SeccompVerdict::Allow
            } else {
                SeccompVerdict::Errno(code)
            };
            (verdict, build(rules))
        })
        .collect()
}

#[test]
fn unconditional_verdicts_agree_with_seccompiler() {
    for abi in SyscallAbi::ALL {
        for rules in [SeccompRules::NAMESPACE, SeccompRules::SHARED] {
            let ours = SeccompProgram::compile(abi, &rules);
            let oracle = oracle(abi, rules);
            for (name, number) in abi.calls() {
                if !rules.rule(name).cases.is_empty() {
                    continue;
                }
                let call = SeccompCall {
                    arch: abi.audit_arch(),
                    number: *number,
                    args: [0; 6],
                };
                let claimed: Vec<_> = oracle
                    .iter()
                    .filter(|(_, program)| {
                        program.run(&call).unwrap().0 == BpfReturn::Verdict(SeccompVerdict::Allow)
                    })
                    .map(|(verdict, _)| BpfReturn::Verdict(*verdict))
                    .collect();
                assert_eq!(claimed, [ours.run(&call).unwrap().0], "{abi:?} {name}");
            }
        }
    }
}

#[test]
fn conditions_agree_with_seccompiler() {
    let condition = |condition: &FilterCondition| match *condition {
        FilterCondition::Is { arg, mask, value } => SeccompCondition::new(
            arg,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(u64::from(mask)),
            u64::from(value),
        )
        .unwrap(),
        // "Some of these bits" is "not none of them", which seccompiler cannot say; its negation
        // can be said and is compared instead.
        FilterCondition::Has { arg, bits } => SeccompCondition::new(
            arg,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(u64::from(bits)),
            0,
        )
        .unwrap(),
    };
    let mut compared = 0;
    for abi in SyscallAbi::ALL {
        for rules in [SeccompRules::NAMESPACE, SeccompRules::SHARED] {
            for (name, number) in abi.calls() {
                for (conditions, _) in rules.rule(name).cases {
                    for one in conditions {
                        let negated = matches!(one, FilterCondition::Has { .. });
                        let arch = match abi {
                            SyscallAbi::X86_64 => seccompiler::TargetArch::x86_64,
                            SyscallAbi::Aarch64 => seccompiler::TargetArch::aarch64,
                        };
                        let filter = SeccompFilter::new(
                            [(
                                i64::from(*number),
                                vec![SeccompRule::new(vec![condition(&one)]).unwrap()],
                            )]
                            .into(),
                            SeccompAction::Errno(1),
                            SeccompAction::Allow,
                            arch,
                        )
                        .unwrap();
                        let program: seccompiler::BpfProgram = filter.try_into().unwrap();
                        let program = SeccompProgram::from_instructions(
                            program
                                .iter()
                                .map(|i| BpfInstruction {
                                    code: i.code,
                                    jt: i.jt,
                                    jf: i.jf,
                                    k: i.k,
                                })
                                .collect(),
                        );
                        for args in arguments() {
                            let call = SeccompCall {
                                arch: abi.audit_arch(),
                                number: *number,
                                args,
                            };
                            let theirs = program.run(&call).unwrap().0
                                == BpfReturn::Verdict(SeccompVerdict::Allow);
                            assert_eq!(
                                one.holds(&args),
                                theirs != negated,
                                "{name} {one:?} {args:x?}"
                            );
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 10_000);
}

proptest! {
    #[test]
    fn any_call_gets_the_declared_verdict(
        number in prop_oneof![0_u32..600, any::<u32>()],
        args: [u64; 6],
        x86: bool, nested_userns: bool, internet_sockets: bool, pairs: bool, private_ids: bool, notify: bool,
        inside: bool, truncation: bool,
        watch in 0..3_u8,
    ) {
        let abi = if x86 { SyscallAbi::X86_64 } else { SyscallAbi::Aarch64 };
        let unix_sockets = if pairs { UnixSocketRule::ConnectedPairs } else { UnixSocketRule::All };
        let refusals = if notify { RefusedCallReply::Notify } else { RefusedCallReply::Errno };
        let watched = match watch {
            0 => WatchedCalls::Nothing,
            1 => WatchedCalls::Connections,
            _ => WatchedCalls::ConnectionsAndPaths,
        };
        let truncation = if truncation { TruncationRule::Any } else { TruncationRule::Written };
        let signals = if inside { SignalRule::Inside { key: [7, 8, 9] } } else { SignalRule::Any };
        let rules = SeccompRules { nested_userns, internet_sockets, unix_sockets, private_ids, signals, truncation, refusals, watched };
        let call = SeccompCall { arch: abi.audit_arch(), number, args };
        let returned = SeccompProgram::compile(abi, &rules).run(&call).unwrap().0;
        prop_assert_eq!(returned, as_returned(rules, rules.decide(abi, &call)));
    }
}
