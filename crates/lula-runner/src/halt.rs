//! Stopping what runs: whoever holds a [`Halt`] ends every command that was begun under it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lula_protocol::EffectId;
use lula_sandbox::{Command, Finished, Process, SandboxError, Session};

/// How long the end of killed commands is waited for.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Most effects that are remembered as stopped before they began.
const REMEMBERED: usize = 1024;

/// Ends commands.
#[derive(Debug, Default)]
pub struct Halt {
    set: AtomicBool,
    running: Mutex<Vec<Arc<Process>>>,
    ended: Condvar,
}

impl Halt {
    fn running(&self) -> MutexGuard<'_, Vec<Arc<Process>>> {
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
        let busy = |running: &mut Vec<Arc<Process>>| !running.is_empty();
        let _ = self
            .ended
            .wait_timeout_while(self.running(), GONE_WITHIN, busy);
    }

    /// Whether nothing more is to be begun.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    /// Runs a command to its end, or to the end of this.
    pub fn run(&self, session: &Session, command: &Command) -> Result<Finished, SandboxError> {
        let process = Arc::new(session.start(command)?);
        self.running().push(Arc::clone(&process));
        // Set before it was known: whoever did that has not killed it.
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
pub(crate) struct Halts {
    all: Mutex<HashMap<EffectId, Arc<Halt>>>,
}

/// An effect under way.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    halts: &'a Halts,
    effect: &'a EffectId,
    pub(crate) halt: Arc<Halt>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.halt.is_set() {
            self.halts.all().remove(self.effect);
        }
    }
}

impl Halts {
    fn all(&self) -> MutexGuard<'_, HashMap<EffectId, Arc<Halt>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something begins for an effect.
    pub(crate) fn begin<'a>(&'a self, effect: &'a EffectId) -> UnderWay<'a> {
        let halt = Arc::clone(self.all().entry(effect.clone()).or_default());
        UnderWay {
            halts: self,
            effect,
            halt,
        }
    }

    /// Ends what runs for an effect. What comes too late for that does not run either.
    pub(crate) fn stop(&self, effect: &EffectId) {
        let halt = {
            let mut all = self.all();
            if all.len() >= REMEMBERED {
                all.retain(|_, halt| Arc::strong_count(halt) > 1);
            }
            Arc::clone(all.entry(effect.clone()).or_default())
        };
        halt.set();
        halt.wait();
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
        let halts = Halts::default();
        halts.stop(&effect(1));
        let one = effect(1);
        assert!(halts.begin(&one).halt.is_set());
        let other = effect(2);
        assert!(!halts.begin(&other).halt.is_set());
    }

    #[test]
    fn what_is_over_is_forgotten_and_what_is_remembered_is_bounded() {
        let halts = Halts::default();
        let one = effect(1);
        drop(halts.begin(&one));
        assert!(halts.all().is_empty());
        let kept = halts.begin(&one);
        for number in 2..2000 {
            halts.stop(&effect(number));
        }
        assert!(halts.all().len() <= REMEMBERED);
        assert!(!kept.halt.is_set());
        halts.stop(&one);
        assert!(kept.halt.is_set());
    }
}
