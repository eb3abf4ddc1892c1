//! Any program ends in the interpreter; our programs give the declared verdict for any call.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_sandbox::seccomp::{
    SyscallAbi, SeccompCall, BpfInstruction, SeccompProgram, RefusedCallReply, BpfReturn, SeccompRules, UnixSocketRule, WatchedCalls,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((call, rest)) = bytes.split_first_chunk::<57>() else { return };
    let (switches, call) = (call[0], &call[1..]);
    let word = |at: usize| u32::from_le_bytes([call[at], call[at + 1], call[at + 2], call[at + 3]]);
    let mut args = [0_u64; 6];
    for (index, arg) in args.iter_mut().enumerate() {
        let at = 8 + index * 8;
        *arg = u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    }
    let call = SeccompCall { number: word(0), arch: word(4), args };

    let instruction = |b: &[u8]| BpfInstruction {
        code: u16::from_le_bytes([b[0], b[1]]),
        jt: b[2],
        jf: b[3],
        k: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
    };
    let _ = SeccompProgram::from_instructions(rest.chunks_exact(8).map(instruction).collect()).run(&call);

    let on = |bit: u8| switches & (1 << bit) != 0;
    let rules = SeccompRules {
        nested_userns: on(0),
        internet_sockets: on(1),
        unix_sockets: if on(2) { UnixSocketRule::All } else { UnixSocketRule::ConnectedPairs },
        private_ids: on(3),
        refusals: if on(4) { RefusedCallReply::Notify } else { RefusedCallReply::Errno },
        watched: if on(6) { WatchedCalls::ConnectionsAndPaths } else { WatchedCalls::Nothing },
    };
    for abi in SyscallAbi::ALL {
        let here = SeccompCall { arch: if on(5) { call.arch } else { abi.audit_arch() }, ..call };
        let verdict = rules.decide(abi, &here);
        let expected = match rules.refusals {
            RefusedCallReply::Notify if verdict.is_reported() => BpfReturn::Notify,
            _ => BpfReturn::Verdict(verdict),
        };
        let (returned, _) = SeccompProgram::compile(abi, &rules).run(&here).expect("our programs are valid");
        assert_eq!(returned, expected);
    }
});
