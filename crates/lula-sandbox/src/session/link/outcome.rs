//! What became of a command: its receipt, or why there is none.

use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use lula_protocol::denial::{DeniedAttempt, SandboxDenial};

use super::HelperLink;
use crate::cgroup::{CgroupLimitEvents, CgroupUsage};
use crate::error::SandboxError;
use crate::frames::{KernelPosture, SetupStage};
use crate::receipt::{self, CommandOutcome};
use crate::session::books::{CommandCutoff, SessionCommandEntry};
use crate::session::command::FinishedCommand;
use crate::sys::exec::LaunchStep;

impl HelperLink {
    pub(super) fn measure(&self) -> (CgroupUsage, CgroupLimitEvents) {
        let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        leaf.as_ref()
            .map_or_else(Default::default, |leaf| (leaf.usage(), leaf.events()))
    }

    pub(super) fn finish(
        &self,
        entry: SessionCommandEntry,
        sandbox: Option<KernelPosture>,
        ended: Option<String>,
    ) -> Result<FinishedCommand, SandboxError> {
        if let Some((step, errno)) = &entry.not_started {
            return Err(not_started(&entry.program, step, *errno));
        }
        let (used, events_now) = self.measure();
        let peak = used.peak_memory_bytes;
        let (cpu_before, events_before) = entry.before;
        let whole_tree = used
            .cpu_us
            .zip(cpu_before)
            .map(|(now, before)| now.saturating_sub(before));
        let exit = entry.exited.as_ref();
        let outcome = CommandOutcome {
            how: exit.map(|exit| exit.how),
            timed_out: entry.cut_short == Some(CommandCutoff::Deadline),
            timeout_ms: entry.timeout_ms,
            wall_us: micros(exit.map_or_else(Instant::now, |exit| exit.at) - entry.begun),
            cpu_us: if entry.alone { whole_tree } else { None }.or(exit.map(|exit| exit.cpu_us)),
            peak_memory_bytes: if entry.alone { peak } else { None }
                .or(exit.map(|exit| exit.peak_memory_bytes)),
            events: CgroupLimitEvents {
                oom_kills: events_now.oom_kills.saturating_sub(events_before.oom_kills),
                pids_refused: events_now
                    .pids_refused
                    .saturating_sub(events_before.pids_refused),
            },
            stdout: (entry.captured[0].total(), entry.captured[0].dropped()),
            stderr: (entry.captured[1].total(), entry.captured[1].dropped()),
            disk_full: entry.cut_short == Some(CommandCutoff::Disk),
            scratch_full: exit.and_then(|exit| exit.scratch_left) == Some(0),
        };
        let (Some(end), Some(sandbox)) = (receipt::ended(&outcome), sandbox) else {
            return Err(SandboxError::Ended { reason: ended });
        };
        let command = entry
            .started
            .map(|(_, posture)| posture)
            .unwrap_or_default();
        let layers = self.context.layers(&sandbox, &command, &entry.names);
        let [stdout, stderr] = entry.captured;
        let mut receipt = receipt::receipt(&self.context, &sandbox, layers, &outcome, end);
        receipt.denials.extend(entry.denials);
        if let Some(door) = self.keep.door() {
            receipt.denials.extend(door.denials_since(entry.door_mark));
        }
        if let Some(standing) = self.standing.get() {
            receipt.usage.setup_us = standing.setup_us;
            receipt
                .not_applied
                .extend(standing.held_back.iter().cloned());
        }
        Ok(FinishedCommand {
            stdout,
            stderr,
            receipt,
        })
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn setup_error(stage: SetupStage, detail: String, errno: u32) -> SandboxError {
    SandboxError::Setup {
        stage,
        detail,
        source: os_error(errno),
        remedy: crate::tiers::remedy(stage, errno),
    }
}

fn os_error(errno: u32) -> io::Error {
    match i32::try_from(errno) {
        Ok(0) | Err(_) => io::Error::other("refused"),
        Ok(errno) => io::Error::from_raw_os_error(errno),
    }
}

pub(super) fn not_started(program: &str, step: &str, errno: u32) -> SandboxError {
    if step == LaunchStep::BuiltIn.name() {
        return SandboxError::BuiltIn {
            name: program.to_owned(),
            source: os_error(errno),
        };
    }
    SandboxError::NotStarted {
        program: program.to_owned(),
        step: step.to_owned(),
        source: os_error(errno),
        denial: Box::new(SandboxDenial {
            attempt: DeniedAttempt::Execute {
                program: program.to_owned(),
            },
            rule: format!("exec ({step})"),
            grant: program
                .starts_with('/')
                .then(|| format!("paths.read = [\"{program}\"]")),
            count: 1,
        }),
    }
}
