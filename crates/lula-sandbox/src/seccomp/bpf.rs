//! Classic BPF as seccomp uses it: the instruction, and an interpreter with the kernel's rules.

use super::{SeccompCall, SeccompVerdict};

/// One instruction, laid out as the kernel's `sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BpfInstruction {
    /// The operation, as `BPF_*` of the kernel encodes it.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// The operand of the operation.
    pub k: u32,
}

pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const AND: u16 = 0x54;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_GREATER_EQUAL: u16 = 0x35;
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;

pub(super) const RET_ALLOW: u32 = 0x7fff_0000;
pub(super) const RET_ERRNO: u32 = 0x0005_0000;
pub(super) const RET_USER_NOTIFICATION: u32 = 0x7fc0_0000;

/// The kernel takes no longer program.
const LONGEST: usize = 4096;
/// Size of `struct seccomp_data`.
const DATA_BYTES: u32 = 64;

/// What a program returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BpfReturn {
    /// A verdict the kernel carries out by itself.
    Verdict(SeccompVerdict),
    /// The listener is asked.
    Notify,
    /// Anything else; our programs never return it.
    Other(u32),
}

impl From<u32> for BpfReturn {
    fn from(value: u32) -> Self {
        match (value & 0xffff_0000, value & 0xffff) {
            (RET_ALLOW, _) => Self::Verdict(SeccompVerdict::Allow),
            #[expect(clippy::cast_possible_truncation, reason = "masked to 16 bits")]
            (RET_ERRNO, errno) => Self::Verdict(SeccompVerdict::Errno(errno as u16)),
            (RET_USER_NOTIFICATION, _) => Self::Notify,
            _ => Self::Other(value),
        }
    }
}

/// Why a program is not one the kernel would take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BpfProgramError {
    /// Too long or empty.
    #[error("a program has 1 to {LONGEST} instructions, this one has {0}")]
    Length(usize),
    /// An operation seccomp does not know.
    #[error("instruction {at}: operation {code:#x} is not allowed in a seccomp program")]
    Operation {
        /// Index of the instruction.
        at: usize,
        code: u16,
    },
    /// A load outside the call's data, or not at a word.
    #[error("instruction {at}: no word of the call lies at offset {offset}")]
    Load {
        /// Index of the instruction.
        at: usize,
        offset: u32,
    },
    /// A jump or the last instruction leaves the program.
    #[error("instruction {at}: control leaves the program")]
    Escape {
        /// Index of the instruction.
        at: usize,
    },
}

/// Runs a program on a call. Returns the value and the number of instructions taken. Every jump
/// goes forward, so that every program ends.
pub(super) fn run(
    program: &[BpfInstruction],
    call: &SeccompCall,
) -> Result<(BpfReturn, usize), BpfProgramError> {
    if program.is_empty() || program.len() > LONGEST {
        return Err(BpfProgramError::Length(program.len()));
    }
    let (mut at, mut steps, mut accumulator) = (0_usize, 0_usize, 0_u32);
    loop {
        let BpfInstruction { code, jt, jf, k } = program[at];
        steps += 1;
        let branch = |taken: bool| usize::from(if taken { jt } else { jf });
        let skip = match code {
            LOAD_WORD => {
                accumulator = word(call, k).ok_or(BpfProgramError::Load { at, offset: k })?;
                0
            }
            AND => {
                accumulator &= k;
                0
            }
            JUMP => usize::try_from(k).unwrap_or(usize::MAX - 1),
            JUMP_EQUAL => branch(accumulator == k),
            JUMP_GREATER_EQUAL => branch(accumulator >= k),
            JUMP_ANY_BIT => branch(accumulator & k != 0),
            RETURN => return Ok((BpfReturn::from(k), steps)),
            code => return Err(BpfProgramError::Operation { at, code }),
        };
        // The kernel checks this before it takes a program; here every step is checked instead.
        let next = at
            .checked_add(1 + skip)
            .filter(|next| *next < program.len());
        at = next.ok_or(BpfProgramError::Escape { at })?;
    }
}

/// A word of `struct seccomp_data` on a little-endian machine.
fn word(call: &SeccompCall, offset: u32) -> Option<u32> {
    if !offset.is_multiple_of(4) || offset >= DATA_BYTES {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the low word is meant")]
    Some(match offset {
        0 => call.number,
        4 => call.arch,
        // The instruction pointer plays no part in any verdict.
        8 | 12 => 0,
        _ => {
            let arg = call.args[usize::try_from((offset - 16) / 8).ok()?];
            if offset.is_multiple_of(8) {
                arg as u32
            } else {
                (arg >> 32) as u32
            }
        }
    })
}
