//! Killing the first process of a sandbox through the helper, for an engine that cannot hold processes by
//! descriptor: only a process's parent can tell its number from a later one's.

/// The message's first byte; others are in `blueprint.rs` and `remains.rs`.
const KILL: u8 = 4;

/// As a message: the first process with that number is to die. There is no answer.
pub(crate) fn ask_for(pid: u32) -> Vec<u8> {
    [&[KILL][..], &pid.to_le_bytes()].concat()
}

/// The number in such a message.
pub(super) fn asked_for(message: &[u8]) -> Option<u32> {
    let (&KILL, number) = message.split_first()? else {
        return None;
    };
    Some(u32::from_le_bytes(number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_message_asks() {
        assert_eq!(asked_for(&ask_for(70_000)), Some(70_000));
        for other in [&[][..], &[KILL], &[KILL, 1, 2], &[1, 0, 0, 0, 0]] {
            assert_eq!(asked_for(other), None, "{other:?}");
        }
    }
}
