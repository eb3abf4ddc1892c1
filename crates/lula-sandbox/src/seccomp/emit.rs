//! From rules to a program: a balanced tree over ranges of numbers, argument checks at the leaves.

use lula_protocol::Digest;

use super::bpf::{
    self, AND, BpfInstruction, BpfProgramError, BpfReturn, JUMP, JUMP_ANY_BIT, JUMP_EQUAL,
    JUMP_GREATER_EQUAL, LOAD_WORD, RET_ALLOW, RET_ERRNO, RET_USER_NOTIFICATION, RETURN,
};
use super::{
    FilterCondition, FilterRule, RefusedCallReply, SeccompCall, SeccompRules, SeccompVerdict,
    SyscallAbi,
};

/// Offset of the number in the data the kernel shows.
const NUMBER: u32 = 0;
/// Offset of the ABI.
const ARCH: u32 = 4;
/// Offset of the first argument; each has eight bytes, low word first.
const ARGS: u32 = 16;
/// The bit that marks the second numbering on x86.
const X32: u32 = 0x4000_0000;

/// A seccomp program ready to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProgram {
    instructions: Vec<BpfInstruction>,
}

impl SeccompProgram {
    /// The program that gives the verdicts of the rules.
    pub fn compile(abi: SyscallAbi, rules: &SeccompRules) -> Self {
        let shared = Emitter {
            refusals: rules.refusals,
            share: true,
        };
        let plain = Emitter {
            refusals: rules.refusals,
            share: false,
        };
        // Without shared answers every branch reaches: the far ones hop.
        let instructions = shared
            .program(abi, *rules)
            .or_else(|| plain.program(abi, *rules));
        Self {
            instructions: instructions.unwrap_or_default(),
        }
    }

    /// The instructions, in the layout of the kernel's `sock_filter`.
    pub fn instructions(&self) -> &[BpfInstruction] {
        &self.instructions
    }

    /// What receipts carry: a digest over the instructions, little-endian.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(self.instructions.len() * 8);
        for BpfInstruction { code, jt, jf, k } in &self.instructions {
            bytes.extend(code.to_le_bytes());
            bytes.extend([*jt, *jf]);
            bytes.extend(k.to_le_bytes());
        }
        Digest::of_bytes(&bytes)
    }

    /// The same program with an answer at every leaf, as it is for programs beyond a branch's reach.
    #[cfg(test)]
    pub(super) fn compile_plain(abi: SyscallAbi, rules: SeccompRules) -> Self {
        let plain = Emitter {
            refusals: rules.refusals,
            share: false,
        };
        Self {
            instructions: plain.program(abi, rules).unwrap_or_default(),
        }
    }

    /// A program that was not made here, for the interpreter.
    pub fn from_instructions(instructions: Vec<BpfInstruction>) -> Self {
        Self { instructions }
    }

    /// What the kernel would do with a call, and how many instructions it would take.
    pub fn run(&self, call: &SeccompCall) -> Result<(BpfReturn, usize), BpfProgramError> {
        bpf::run(&self.instructions, call)
    }
}

/// The rules by range: each holds from its number up to the next one. The first starts at zero, the
/// last has no end.
fn ranges(abi: SyscallAbi, rules: SeccompRules) -> Vec<(u32, FilterRule)> {
    let unknown = || FilterRule {
        cases: Vec::new(),
        otherwise: SeccompVerdict::ENOSYS,
    };
    let mut ranges: Vec<(u32, FilterRule)> = Vec::new();
    let mut push = |from: u32, rule: FilterRule| {
        if ranges.last().is_none_or(|(_, last)| *last != rule) {
            ranges.push((from, rule));
        }
    };
    let mut next = 0;
    for (name, number) in abi.calls() {
        if *number > next {
            push(next, unknown());
        }
        push(*number, rules.rule(name));
        next = number + 1;
    }
    push(next, unknown());
    ranges
}

/// Where a branch goes.
#[derive(Clone, Copy)]
enum Target {
    /// Past so many of the operations that follow.
    Skip(usize),
    /// To the shared answer at the end of the program.
    Answer(SeccompVerdict),
}

/// An instruction whose branches are not yet measured.
enum Operation {
    Plain(BpfInstruction),
    Branch {
        code: u16,
        k: u32,
        yes: Target,
        no: Target,
    },
}

struct Emitter {
    refusals: RefusedCallReply,
    /// Branches go straight to one shared answer of each kind. A branch reaches 255 instructions,
    /// so this is for programs that are not much longer.
    share: bool,
}

impl Emitter {
    fn program(&self, abi: SyscallAbi, rules: SeccompRules) -> Option<Vec<BpfInstruction>> {
        let unknown = self.answer(SeccompVerdict::ENOSYS);
        let mut instructions = vec![
            load(ARCH),
            jump(JUMP_EQUAL, abi.audit_arch(), 1, 0),
            unknown,
            load(NUMBER),
        ];
        if abi == SyscallAbi::X86_64 {
            instructions.extend([jump(JUMP_GREATER_EQUAL, X32, 0, 1), unknown]);
        }
        instructions.extend(self.measured(&self.tree(&ranges(abi, rules)))?);
        Some(instructions)
    }

    /// Decides between ranges with the number in the accumulator.
    fn tree(&self, ranges: &[(u32, FilterRule)]) -> Vec<Operation> {
        match ranges {
            [] => Vec::new(),
            [(_, rule)] => self.leaf(rule),
            _ => {
                let (left, right) = ranges.split_at(ranges.len() / 2);
                let from = right[0].0;
                let (no, left) = self.side(left);
                let (yes, right) = self.side(right);
                let yes = yes.unwrap_or(Target::Skip(left.len()));
                let mut tree = branch(JUMP_GREATER_EQUAL, from, yes, no.unwrap_or(Target::Skip(0)));
                tree.extend(left);
                tree.extend(right);
                tree
            }
        }
    }

    /// One side of a decision: a shared answer, or code.
    fn side(&self, ranges: &[(u32, FilterRule)]) -> (Option<Target>, Vec<Operation>) {
        match ranges {
            [(_, rule)] if self.share && rule.cases.is_empty() => {
                (Some(Target::Answer(rule.otherwise)), Vec::new())
            }
            _ => (None, self.tree(ranges)),
        }
    }

    /// Decides by the arguments.
    fn leaf(&self, rule: &FilterRule) -> Vec<Operation> {
        let mut code = Vec::new();
        let mut loaded = None;
        for (conditions, verdict) in &rule.cases {
            let case = self.case(conditions, *verdict, &mut loaded);
            code.extend(case);
        }
        code.push(Operation::Plain(self.answer(rule.otherwise)));
        code
    }

    /// Answers if all conditions hold, else falls through to what follows. `loaded` is the argument
    /// that is whole in the accumulator on every way into the code.
    fn case(
        &self,
        conditions: &[FilterCondition],
        verdict: SeccompVerdict,
        loaded: &mut Option<u8>,
    ) -> Vec<Operation> {
        let mut tests: Vec<(Vec<Operation>, u16, u32)> = Vec::new();
        // An early exit leaves whatever its test left in the accumulator; the next case may rely
        // on it only if all exits agree.
        let mut exits: Vec<Option<u8>> = Vec::new();
        for condition in conditions {
            let (arg, mask, operation, operand) = match *condition {
                FilterCondition::Is { arg, mask, value } => (arg, mask, JUMP_EQUAL, value),
                FilterCondition::Has { arg, bits } => (arg, u32::MAX, JUMP_ANY_BIT, bits),
            };
            let mut before = Vec::new();
            if *loaded != Some(arg) {
                before.push(Operation::Plain(load(ARGS + 8 * u32::from(arg))));
                *loaded = Some(arg);
            }
            if mask != u32::MAX {
                before.push(Operation::Plain(BpfInstruction {
                    code: AND,
                    jt: 0,
                    jf: 0,
                    k: mask,
                }));
                *loaded = None;
            }
            exits.push(*loaded);
            tests.push((before, operation, operand));
        }
        let agreed = exits.first().copied().flatten();
        *loaded = agreed.filter(|_| exits.iter().all(|exit| *exit == agreed));

        let (mut yes, mut code) = if self.share && !tests.is_empty() {
            (Target::Answer(verdict), Vec::new())
        } else {
            (
                Target::Skip(0),
                vec![Operation::Plain(self.answer(verdict))],
            )
        };
        for (mut test, operation, operand) in tests.into_iter().rev() {
            let no = Target::Skip(code.len());
            test.push(Operation::Branch {
                code: operation,
                k: operand,
                yes,
                no,
            });
            test.extend(code);
            code = test;
            yes = Target::Skip(0);
        }
        code
    }

    /// The operations with their branches measured, and the shared answers behind them. `None`
    /// where a branch does not reach.
    fn measured(&self, operations: &[Operation]) -> Option<Vec<BpfInstruction>> {
        let mut answers: Vec<SeccompVerdict> = Vec::new();
        let mut instructions = Vec::with_capacity(operations.len() + 4);
        for (at, operation) in operations.iter().enumerate() {
            let mut distance = |target: Target| match target {
                Target::Skip(distance) => u8::try_from(distance).ok(),
                Target::Answer(verdict) => {
                    let known = answers.iter().position(|answer| *answer == verdict);
                    let answer = known.unwrap_or_else(|| {
                        answers.push(verdict);
                        answers.len() - 1
                    });
                    u8::try_from(operations.len() + answer - at - 1).ok()
                }
            };
            instructions.push(match *operation {
                Operation::Plain(instruction) => instruction,
                Operation::Branch { code, k, yes, no } => {
                    jump(code, k, distance(yes)?, distance(no)?)
                }
            });
        }
        instructions.extend(answers.into_iter().map(|verdict| self.answer(verdict)));
        Some(instructions)
    }

    fn answer(&self, verdict: SeccompVerdict) -> BpfInstruction {
        let k = match verdict {
            SeccompVerdict::Errno(_) | SeccompVerdict::Watch | SeccompVerdict::Judge
                if self.refusals == RefusedCallReply::Notify && verdict.is_reported() =>
            {
                RET_USER_NOTIFICATION
            }
            SeccompVerdict::Allow | SeccompVerdict::Watch => RET_ALLOW,
            SeccompVerdict::Errno(errno) => RET_ERRNO | u32::from(errno),
            // No listener is there to judge.
            SeccompVerdict::Judge => RET_ERRNO | EPERM,
        };
        BpfInstruction {
            code: RETURN,
            jt: 0,
            jf: 0,
            k,
        }
    }
}

const EPERM: u32 = 1;

const fn load(offset: u32) -> BpfInstruction {
    BpfInstruction {
        code: LOAD_WORD,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> BpfInstruction {
    BpfInstruction { code, jt, jf, k }
}

/// A branch whose yes may lie beyond its reach: then it hops onto a long jump.
fn branch(code: u16, k: u32, yes: Target, no: Target) -> Vec<Operation> {
    match (yes, no) {
        (Target::Skip(far), Target::Skip(0)) if far > usize::from(u8::MAX) => {
            let distance = u32::try_from(far).unwrap_or(u32::MAX);
            vec![
                Operation::Branch {
                    code,
                    k,
                    yes: Target::Skip(0),
                    no: Target::Skip(1),
                },
                Operation::Plain(jump(JUMP, distance, 0, 0)),
            ]
        }
        _ => vec![Operation::Branch { code, k, yes, no }],
    }
}
