//! From rules to a program: a balanced tree over ranges of numbers, argument checks at the leaves.

use lula_protocol::Digest;

use super::bpf::{
    self, AND, Instruction, JUMP, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD,
    RET_ALLOW, RET_ERRNO, RET_USER_NOTIFICATION, RETURN, Returned, RunError,
};
use super::{Abi, Call, Condition, Refusals, Rule, Rules, Verdict};

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
pub struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    /// The program that gives the verdicts of the rules.
    pub fn compile(abi: Abi, rules: &Rules) -> Self {
        let emitter = Emitter {
            refusals: rules.refusals,
        };
        let unknown = emitter.verdict(Verdict::ENOSYS);
        let mut instructions = vec![
            load(ARCH),
            jump(JUMP_EQUAL, abi.audit_arch(), 1, 0),
            unknown,
            load(NUMBER),
        ];
        if abi == Abi::X86_64 {
            instructions.extend([jump(JUMP_GREATER_EQUAL, X32, 0, 1), unknown]);
        }
        instructions.extend(emitter.tree(&ranges(abi, *rules)));
        Self { instructions }
    }

    /// The instructions, in the layout of the kernel's `sock_filter`.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// What receipts carry: a digest over the instructions, little-endian.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(self.instructions.len() * 8);
        for Instruction { code, jt, jf, k } in &self.instructions {
            bytes.extend(code.to_le_bytes());
            bytes.extend([*jt, *jf]);
            bytes.extend(k.to_le_bytes());
        }
        Digest::of_bytes(&bytes)
    }

    /// A program of somebody else, for the interpreter.
    pub fn from_instructions(instructions: Vec<Instruction>) -> Self {
        Self { instructions }
    }

    /// What the kernel would do with a call, and how many instructions it would take.
    pub fn run(&self, call: &Call) -> Result<(Returned, usize), RunError> {
        bpf::run(&self.instructions, call)
    }
}

/// The rules by range: each holds from its number up to the next one. The first starts at zero, the
/// last has no end.
fn ranges(abi: Abi, rules: Rules) -> Vec<(u32, Rule)> {
    let unknown = || Rule {
        cases: Vec::new(),
        otherwise: Verdict::ENOSYS,
    };
    let mut ranges: Vec<(u32, Rule)> = Vec::new();
    let mut push = |from: u32, rule: Rule| {
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

struct Emitter {
    refusals: Refusals,
}

impl Emitter {
    /// Decides between ranges with the number in the accumulator.
    fn tree(&self, ranges: &[(u32, Rule)]) -> Vec<Instruction> {
        let [lower @ .., _] = ranges else {
            return Vec::new();
        };
        if lower.is_empty() {
            return self.leaf(&ranges[0].1);
        }
        let (left, right) = ranges.split_at(ranges.len() / 2);
        let (from, left) = (right[0].0, self.tree(left));
        let mut tree = skip_if(JUMP_GREATER_EQUAL, from, left.len());
        tree.extend(left);
        tree.extend(self.tree(right));
        tree
    }

    /// Decides by the arguments.
    fn leaf(&self, rule: &Rule) -> Vec<Instruction> {
        let mut code = Vec::new();
        let mut loaded = None;
        for (conditions, verdict) in &rule.cases {
            let case = self.case(conditions, *verdict, &mut loaded);
            code.extend(case);
        }
        code.push(self.verdict(rule.otherwise));
        code
    }

    /// Returns the verdict if all conditions hold, else falls through to what follows. `loaded` is
    /// the argument that is whole in the accumulator on every way into the code.
    fn case(
        &self,
        conditions: &[Condition],
        verdict: Verdict,
        loaded: &mut Option<u8>,
    ) -> Vec<Instruction> {
        let mut tests: Vec<(Vec<Instruction>, u16, u32)> = Vec::new();
        // An early exit leaves whatever its test left in the accumulator; the next case may rely
        // on it only if all exits agree.
        let mut exits: Vec<Option<u8>> = Vec::new();
        for condition in conditions {
            let (arg, mask, operation, operand) = match *condition {
                Condition::Is { arg, mask, value } => (arg, mask, JUMP_EQUAL, value),
                Condition::Has { arg, bits } => (arg, u32::MAX, JUMP_ANY_BIT, bits),
            };
            let mut before = Vec::new();
            if *loaded != Some(arg) {
                before.push(load(ARGS + 8 * u32::from(arg)));
                *loaded = Some(arg);
            }
            if mask != u32::MAX {
                before.push(Instruction {
                    code: AND,
                    jt: 0,
                    jf: 0,
                    k: mask,
                });
                *loaded = None;
            }
            exits.push(*loaded);
            tests.push((before, operation, operand));
        }
        let agreed = exits.first().copied().flatten();
        *loaded = agreed.filter(|_| exits.iter().all(|exit| *exit == agreed));

        let mut code = vec![self.verdict(verdict)];
        for (before, operation, operand) in tests.into_iter().rev() {
            let mut test = before;
            // A case is a handful of instructions, far below the reach of a branch.
            let past = u8::try_from(code.len()).unwrap_or(u8::MAX);
            test.push(jump(operation, operand, 0, past));
            test.extend(code);
            code = test;
        }
        code
    }

    fn verdict(&self, verdict: Verdict) -> Instruction {
        let k = match verdict {
            Verdict::Allow => RET_ALLOW,
            Verdict::Errno(_) if self.refusals == Refusals::Notify && verdict.is_reported() => {
                RET_USER_NOTIFICATION
            }
            Verdict::Errno(errno) => RET_ERRNO | u32::from(errno),
        };
        Instruction {
            code: RETURN,
            jt: 0,
            jf: 0,
            k,
        }
    }
}

const fn load(offset: u32) -> Instruction {
    Instruction {
        code: LOAD_WORD,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// Skips the next `distance` instructions if the comparison holds. A branch reaches 255
/// instructions; beyond that it hops onto a long jump.
fn skip_if(code: u16, k: u32, distance: usize) -> Vec<Instruction> {
    match (u8::try_from(distance), u32::try_from(distance)) {
        (Ok(near), _) => vec![jump(code, k, near, 0)],
        (Err(_), far) => {
            vec![
                jump(code, k, 0, 1),
                jump(JUMP, far.unwrap_or(u32::MAX), 0, 0),
            ]
        }
    }
}
