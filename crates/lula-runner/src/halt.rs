//! Stopping what runs: a holder of a [`CommandStopper`] ends every command that was begun under it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lula_protocol::EffectId;
use lula_sandbox::{FinishedCommand, SandboxCommand, SandboxError, SandboxProcess, SandboxSession};

/// How long the end of killed commands is waited for.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Most effects that are remembered as stopped. A runner lives as long as a run, which has fewer.
const REMEMBERED: usize = 1 << 16;

/// Ends the commands of one effect, those under way and those to come.
#[derive(Debug, Default)]
pub struct CommandStopper {
    set: AtomicBool,
    running: Mutex<Vec<Arc<SandboxProcess>>>,
    ended: Condvar,
}

impl CommandStopper {
    fn running(&self) -> MutexGuard<'_, Vec<Arc<SandboxProcess>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills what runs, and lets nothing more run for long.
    pub fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
        for process in self.running().iter() {
            // One that has ended needs no killing.
            let _ = process.kill();
        }
    }

    /// Waits until nothing of it runs any more, for a while.
    fn wait(&self) {
        let busy = |running: &mut Vec<Arc<SandboxProcess>>| !running.is_empty();
        let _ = self
            .ended
            .wait_timeout_while(self.running(), GONE_WITHIN, busy);
    }

    /// Whether nothing more is to be begun.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    /// Runs a command to its end, or to the end of this.
    pub fn run(
        &self,
        session: &SandboxSession,
        command: &SandboxCommand,
    ) -> Result<FinishedCommand, SandboxError> {
        let process = Arc::new(session.start(command)?);
        self.running().push(Arc::clone(&process));
        // Set before it was known: the thread that set it has not killed it.
        if self.is_set() {
            let _ = process.kill();
        }
        let finished = process.wait();
        self.running().retain(|other| !Arc::ptr_eq(other, &process));
        self.ended.notify_all();
        finished
    }
}

/// What runs for effects, and effects that must not run any more.
#[derive(Debug, Default)]
pub(crate) struct EffectStopper {
    known: Mutex<StoppableEffects>,
}

#[derive(Debug, Default)]
struct StoppableEffects {
    under_way: HashMap<EffectId, Arc<CommandStopper>>,
    /// Stopped, whether they had begun or not: whatever of them comes later does not run.
    stopped: HashSet<EffectId>,
    /// More were stopped than are remembered. Any effect may be one of those: nothing begins any more.
    full: bool,
}

/// An effect under way.
#[derive(Debug)]
pub(crate) struct RunningEffect<'a> {
    halts: &'a EffectStopper,
    effect: &'a EffectId,
    pub(crate) halt: Arc<CommandStopper>,
}

impl Drop for RunningEffect<'_> {
    fn drop(&mut self) {
        let mut known = self.halts.known();
        // The map and this: no other call is at it.
        if Arc::strong_count(&self.halt) <= 2 {
            known.under_way.remove(self.effect);
        }
    }
}

impl EffectStopper {
    fn known(&self) -> MutexGuard<'_, StoppableEffects> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something begins for an effect.
    pub(crate) fn begin<'a>(&'a self, effect: &'a EffectId) -> RunningEffect<'a> {
        let mut known = self.known();
        let stopped = known.full || known.stopped.contains(effect);
        let halt = Arc::clone(known.under_way.entry(effect.clone()).or_default());
        drop(known);
        if stopped {
            halt.set();
        }
        RunningEffect {
            halts: self,
            effect,
            halt,
        }
    }

    /// Ends what runs for an effect. What comes too late for that does not run either.
    pub(crate) fn stop(&self, effect: &EffectId) {
        let halt = {
            let mut known = self.known();
            if known.stopped.len() < REMEMBERED {
                known.stopped.insert(effect.clone());
            } else if !known.stopped.contains(effect) {
                known.full = true;
            }
            known.under_way.get(effect).map(Arc::clone)
        };
        if let Some(halt) = halt {
            halt.set();
            halt.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(number: u64) -> EffectId {
        EffectId::from_parts(number, [0; 10])
    }

    #[test]
    fn an_effect_that_was_stopped_before_it_began_is_known_when_it_begins() {
        let halts = EffectStopper::default();
        halts.stop(&effect(1));
        let one = effect(1);
        assert!(halts.begin(&one).halt.is_set());
        let other = effect(2);
        assert!(!halts.begin(&other).halt.is_set());
    }

    #[test]
    fn what_is_over_is_forgotten_and_what_was_stopped_is_not() {
        let halts = EffectStopper::default();
        let one = effect(1);
        drop(halts.begin(&one));
        assert!(halts.known().under_way.is_empty());
        let kept = halts.begin(&one);
        for number in 2..5000 {
            halts.stop(&effect(number));
        }
        assert!(!kept.halt.is_set());
        halts.stop(&one);
        assert!(kept.halt.is_set());
        drop(kept);
        // However many were stopped since, whichever comes late does not run.
        for number in 1..5000 {
            assert!(halts.begin(&effect(number)).halt.is_set(), "{number}");
        }
        assert!(halts.known().under_way.is_empty());
    }

    #[test]
    fn where_no_more_can_be_remembered_nothing_begins_any_more() {
        let halts = EffectStopper::default();
        let before = effect(1);
        let running = halts.begin(&before);
        for number in 0..u64::try_from(REMEMBERED).unwrap() {
            halts.stop(&effect(number + 2));
        }
        let free = effect(0);
        assert!(!halts.begin(&free).halt.is_set());
        // Stopping one of them again takes no room.
        halts.stop(&effect(2));
        assert!(!halts.begin(&free).halt.is_set());
        halts.stop(&effect(u64::MAX >> 20));
        assert!(
            halts.begin(&free).halt.is_set(),
            "it may be the one that was not remembered"
        );
        assert!(!running.halt.is_set(), "what runs goes on");
        assert_eq!(halts.known().stopped.len(), REMEMBERED);
    }

    #[test]
    fn two_that_are_at_one_effect_are_stopped_together() {
        let halts = EffectStopper::default();
        let one = effect(1);
        let (first, second) = (halts.begin(&one), halts.begin(&one));
        drop(first);
        halts.stop(&one);
        assert!(second.halt.is_set());
    }
}
